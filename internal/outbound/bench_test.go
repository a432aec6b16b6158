package outbound_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// One small GET over a kept-alive connection: what every call pays.
func BenchmarkSend(b *testing.B) {
	w := newWorld(b)
	w.serve("http://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"id":1}`)
	}))
	c := w.client(outbound.Policy{AllowHTTP: true})
	u := mustURL(b, "http://api.example.com/x")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Send(context.Background(), outbound.NewRequest("GET", u, nil)); err != nil {
			b.Fatal(err)
		}
	}
}
