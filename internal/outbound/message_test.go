package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// The status of an answer that is no success decides, whatever is wrong with the
// body: of that a part is enough, and it is not waited for long.
func TestStatusWins(t *testing.T) {
	const most = 1 << 20
	text := `{"message":"no"}`
	gz := string(pack(t, "gzip", []byte(text)))
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n", n) }
	for name, c := range map[string]struct {
		status        int
		answer        string // without the status line
		hold          bool   // the connection stays open
		limit         time.Duration
		body          string
		partial, stay bool // stay: the connection can be used again
		took          time.Duration
	}{
		"whole":                {status: 400, answer: length(16) + text, hold: true, body: text, stay: true},
		"half":                 {status: 500, answer: length(99) + text, body: text, partial: true},
		"half of a chunk":      {status: 500, answer: "Transfer-Encoding: chunked\r\n\r\nff\r\n" + text, body: text, partial: true},
		"malformed chunk":      {status: 500, answer: "Transfer-Encoding: chunked\r\n\r\n10\r\n" + text + "\r\nzz\r\n", hold: true, body: text, partial: true},
		"chunk line too long":  {status: 502, answer: "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 8192), hold: true, partial: true},
		"malformed trailer":    {status: 502, answer: "Transfer-Encoding: chunked\r\n\r\n10\r\n" + text + "\r\n0\r\n:\r\n\r\n", hold: true, body: text, partial: true},
		"at the limit":         {status: 401, answer: length(most) + strings.Repeat("x", most), hold: true, body: strings.Repeat("x", most), stay: true},
		"one over":             {status: 401, answer: length(most+1) + strings.Repeat("x", most+1), hold: true, body: strings.Repeat("x", most), partial: true, stay: true},
		"6 MB":                 {status: 401, answer: length(6<<20) + strings.Repeat("x", 6<<20), hold: true, body: strings.Repeat("x", most), partial: true},
		"gzip":                 {status: 404, answer: "Content-Encoding: gzip\r\n" + length(len(gz)) + gz, hold: true, body: text, stay: true},
		"no gzip":              {status: 404, answer: "Content-Encoding: gzip\r\n" + length(16) + text, hold: true, partial: true, stay: true},
		"half a gzip":          {status: 404, answer: "Content-Encoding: gzip\r\n" + length(99) + gz, partial: true},
		"gzip, much":           {status: 404, answer: "Content-Encoding: gzip\r\n\r\n" + string(pack(t, "gzip", make([]byte, most+1))), partial: true},
		"unknown encoding":     {status: 403, answer: "Content-Encoding: compress\r\n" + length(16) + text, hold: true, partial: true},
		"slow":                 {status: 429, answer: "Retry-After: 7\r\n" + length(99) + text, hold: true, body: text, partial: true, took: 2 * time.Second},
		"slow, little time":    {status: 429, answer: "Retry-After: 7\r\n" + length(99) + text, hold: true, limit: time.Second, body: text, partial: true, took: time.Second},
		"slow gzip":            {status: 503, answer: "Content-Encoding: gzip\r\n" + length(99) + gz[:5], hold: true, partial: true, took: 2 * time.Second},
		"an event and no more": {status: 503, answer: "Content-Type: text/event-stream\r\n\r\ndata: x\n\n", hold: true, body: "data: x\n\n", took: 0},
		"events, silent":       {status: 503, answer: "Content-Type: text/event-stream\r\n\r\n", hold: true, partial: true, took: 2 * time.Second},
		"not modified":         {status: 304, answer: "\r\n", hold: true, stay: true},
		"multiple choices":     {status: 300, answer: length(99) + text, body: text, partial: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &pipeWorld{answer: func(_ int, _ *http.Request, conn net.Conn) bool {
					_, err := fmt.Fprintf(conn, "HTTP/1.1 %d X\r\n%s", c.status, c.answer)
					return err == nil && c.hold
				}}
				client := w.pipes(t, outbound.Policy{})
				send := func() {
					begin := time.Now()
					r := request(here, "/")
					r.Method = "POST"
					if c.limit > 0 {
						r.Timeout = c.limit
					}
					resp, err := client.Send(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					if resp.Status != c.status || string(resp.Body) != c.body || resp.Partial != c.partial || resp.Header.Get("Content-Encoding") != "" {
						t.Errorf("status %d, %d bytes, partial %v, want %d, %d, %v", resp.Status, len(resp.Body), resp.Partial, c.status, len(c.body), c.partial)
					}
					if strings.Contains(c.answer, "Retry-After") && resp.Header.Get("Retry-After") != "7" {
						t.Error("Retry-After is lost")
					}
					if took := time.Since(begin); took != c.took {
						t.Errorf("it took %s, want %s", took, c.took)
					}
				}
				send()
				synctest.Wait()
				send()
				if stayed := w.dials == 1; stayed != c.stay {
					t.Errorf("%d dials for two requests", w.dials)
				}
				client.Close()
			})
		})
	}
}

// A redirect is followed whatever comes behind its header.
func TestRedirectStalledBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: func(n int, _ *http.Request, c net.Conn) bool {
			text := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
			if n == 1 {
				text = "HTTP/1.1 302 Found\r\nLocation: /there\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n<html>"
			}
			_, err := io.WriteString(c, text)
			return err == nil
		}}
		client := w.pipes(t, outbound.Policy{})
		begin := time.Now()
		resp, err := client.Send(t.Context(), request(here, "/"))
		if err != nil || resp.Hops != 1 || string(resp.Body) != "{}" {
			t.Fatalf("%+v %v", resp, err)
		}
		if took := time.Since(begin); took != 100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		client.Close()
	})
}

// A success has to be whole: of it nothing is given away.
func TestSuccessIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: func(_ int, _ *http.Request, c net.Conn) bool {
			_, err := io.WriteString(c, "HTTP/1.1 299 X\r\nContent-Length: 99\r\n\r\n{}")
			return err == nil
		}}
		client := w.pipes(t, outbound.Policy{})
		begin := time.Now()
		r := request(here, "/")
		r.Timeout = 10 * time.Second
		wantFault(t, second(client.Send(t.Context(), r)), "UPSTREAM_TIMEOUT", "within 10s")
		if took := time.Since(begin); took != r.Timeout {
			t.Errorf("it took %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.Send(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		client.Close()
	})
}
