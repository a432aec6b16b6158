//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// An API that sends more than it announced: the rest is no line of the log.
func TestStrayBytesStayOutOfTheLog(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"id\":1}Authorization: Bearer canary-token {\"ssn\":\"canary\"}")
			}
		}
	}()
	p := startDaemon(t, filepath.Join(t.TempDir(), "home"), "HB_WRAP_ALLOW_PRIVATE=1")
	doc := `{"schemaVersion":1,"id":"s","name":"S","request":{"method":"GET","url":"http://` + l.Addr().String() + `/"}}`
	if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := p.client.Run(t.Context(), &api.RunRequest{ID: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	p.kill()
	if s := p.stderr.String(); strings.Contains(s, "canary") {
		t.Errorf("the answer of the API is in the log:\n%s", s)
	}
}
