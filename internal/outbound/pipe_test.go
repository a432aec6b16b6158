package outbound_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A pipeWorld is an API behind pipes, for tests in a bubble: there the clock
// stands still while anything is under way, and a goroutine that is left over
// fails the test.
type pipeWorld struct {
	answer func(n int, r *http.Request, c net.Conn) (again bool) // n counts from 1; false closes the connection

	mu    sync.Mutex // guards the rest
	start time.Time
	at    []time.Duration // when the requests came
	what  []string        // their paths
	dials int
	seen  []outbound.Exchange // what the client reported
}

// say answers 200 after a while.
func say(while time.Duration) func(int, *http.Request, net.Conn) bool {
	return func(_ int, _ *http.Request, c net.Conn) bool {
		time.Sleep(while)
		_, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
		return err == nil
	}
}

// pipes makes a client whose connections are pipes to w.
func (w *pipeWorld) pipes(t *testing.T, p outbound.Policy) *outbound.Client {
	w.start = time.Now()
	p.AllowHTTP = true
	c := outbound.New(p, outbound.Options{
		Interfaces: func() []netip.Addr { return nil },
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		DialAddr: w.dial,
		Observe: func(_ context.Context, x outbound.Exchange) {
			w.mu.Lock()
			w.seen = append(w.seen, x)
			w.mu.Unlock()
		},
	})
	t.Cleanup(c.Close)
	return c
}

// dial connects to w by a pipe.
func (w *pipeWorld) dial(context.Context, netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dials++
	w.mu.Unlock()
	ours, theirs := net.Pipe()
	go w.serve(theirs)
	return ours, nil
}

func (w *pipeWorld) serve(c net.Conn) {
	defer c.Close()
	for b := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(b)
		if err != nil {
			return
		}
		if r.ContentLength > 0 {
			if _, err := b.Discard(int(r.ContentLength)); err != nil {
				return
			}
		}
		w.mu.Lock()
		w.at = append(w.at, time.Since(w.start))
		w.what = append(w.what, r.URL.Path)
		n := len(w.at)
		w.mu.Unlock()
		if !w.answer(n, r, c) {
			return
		}
	}
}

func (w *pipeWorld) came() ([]time.Duration, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.at...), append([]string(nil), w.what...)
}

// request is a GET of http://HOST/path, where HOST is an address.
func request(host, path string) *outbound.Request {
	r := outbound.NewRequest("GET", &url.URL{Scheme: "http", Host: host, Path: path}, nil)
	r.Timeout = time.Minute
	return r
}

const here, there = "93.184.216.34", "93.184.216.35"
