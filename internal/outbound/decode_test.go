package outbound

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

func packed(t testing.TB, coding, plain string) []byte {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		z = gzip.NewWriter(&b)
	case "deflate":
		z = zlib.NewWriter(&b)
	case "br":
		z = brotli.NewWriter(&b)
	case "zstd":
		z, err = zstd.NewWriter(&b)
	}
	if err == nil {
		_, err = io.WriteString(z, plain)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Whatever comes, decoding ends with at most the cap, or with an error that has
// a code of its own.
func FuzzDecode(f *testing.F) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		f.Add(packed(f, coding, strings.Repeat(`{"a":1},`, 50)), coding+",")
		f.Add(packed(f, coding, string(packed(f, "gzip", "{}"))), "gzip,"+coding)
	}
	f.Fuzz(func(t *testing.T, data []byte, header string) {
		codings, err := contentCodings([]string{header})
		if err != nil || len(codings) > maxCodings {
			return
		}
		const limit = 1 << 16
		out, err := decode(data, codings, limit)
		var enc *encodingError
		if err != nil && !errors.Is(err, errTooLarge) && !errors.As(err, &enc) && err != io.ErrUnexpectedEOF { //nolint:errorlint // that very one
			t.Fatalf("%v", err)
		}
		if err == nil && len(codings) > 0 && len(out) > limit {
			t.Fatalf("%d bytes", len(out))
		}
	})
}

// No more calls decode at once than there are processors; who waits for that
// leaves when its time is over. What is not compressed waits for nobody.
func TestDecodingPlaces(t *testing.T) {
	c := New(Policy{}, Options{})
	defer c.Close()
	for range cap(c.decoding) {
		c.decoding <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	answer := func(coding string, body []byte) *http.Response {
		req := (&http.Request{}).WithContext(ctx)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Encoding": {coding}}, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(body)), Request: req}
	}
	if _, err := c.read(answer("br", packed(t, "br", "{}")), "GET"); !errors.Is(err, context.Canceled) {
		t.Errorf("no place free: %v", err)
	}
	if body, err := c.read(answer("", []byte("{}")), "GET"); err != nil || string(body) != "{}" {
		t.Errorf("not compressed: %v", err)
	}
	<-c.decoding
	ctx = context.Background()
	for range 2 { // the place is given back
		if body, err := c.read(answer("br", packed(t, "br", "{}")), "GET"); err != nil || string(body) != "{}" {
			t.Errorf("a place free: %v", err)
		}
	}
	if n := runtime.GOMAXPROCS(0); cap(c.decoding) != n {
		t.Errorf("%d places, want %d", cap(c.decoding), n)
	}
}

// What an answer of a usual size costs in each encoding.
func BenchmarkDecode(b *testing.B) {
	for _, size := range []int{2_000, 200_000, 4_000_000} {
		var text strings.Builder
		for i := 0; text.Len() < size; i++ {
			fmt.Fprintf(&text, `{"id":%d,"name":"item %x","price":%d.5},`, i, i*7919, i%977)
		}
		for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
			data := packed(b, coding, text.String())
			b.Run(fmt.Sprintf("%s/%d", coding, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(text.Len()))
				for b.Loop() {
					if out, err := decode(data, []string{coding}, 5<<20); err != nil || len(out) != text.Len() {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
