package client_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// A squatter holds the port in the daemon's place and keeps every byte that it
// is sent.
type squatter struct {
	addr     string
	mu       sync.Mutex
	received []*bytes.Buffer // by connection
	stop     chan struct{}
	wg       sync.WaitGroup
}

// squat answers each connection with answer, which gets the first request.
func squat(t testing.TB, answer func(s *squatter, c net.Conn, nonce []byte)) *squatter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &squatter{addr: l.Addr().String(), stop: make(chan struct{})}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			got := &bytes.Buffer{}
			s.mu.Lock()
			s.received = append(s.received, got)
			s.mu.Unlock()
			s.wg.Go(func() {
				defer c.Close()
				r := bufio.NewReader(io.TeeReader(c, writer(func(p []byte) { s.mu.Lock(); got.Write(p); s.mu.Unlock() })))
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				nonce, _ := hex.DecodeString(req.URL.Query().Get("nonce"))
				answer(s, c, nonce)
				_, _ = io.Copy(io.Discard, r) // whatever else the client sends
			})
		}
	})
	t.Cleanup(func() {
		close(s.stop)
		l.Close()
		s.wg.Wait()
	})
	return s
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func (s *squatter) local() netip.AddrPort { return netip.MustParseAddrPort(s.addr) }

func (s *squatter) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, b := range s.received {
		out = append(out, b.String())
	}
	return out
}

func ok(c net.Conn, body string) {
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func helloBody(proof string) string {
	b, _ := json.Marshal(api.Hello{Proof: proof, Version: "1.0.0"})
	return string(b)
}

// Promise 9: whatever a squatter answers, all that it gets is nonces.
func TestSquattersGetOnlyNonces(t *testing.T) {
	h := newHome(t)
	h.start() // a real daemon of the same user, elsewhere
	tok, err := token.Read(h.file)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range behaviours(tok, h.addr) {
		t.Run(name, func(t *testing.T) {
			s := squat(t, b)
			c := h.clientWith(func(o *client.Options) { o.URL.Host = s.addr })
			c.SetPatience(250 * time.Millisecond)
			_, err := c.Run(t.Context(), &api.RunRequest{ID: "a", Args: json.RawMessage(`{"canary":"in the arguments"}`)})
			if code(t, err) != "BRIDGE_BAD_ANSWER" || !strings.Contains(err.Error(), "another program holds ") || !strings.Contains(err.Error(), s.addr) {
				t.Errorf("%v", err)
			}
			if err.(*fault.Error).Retryable {
				t.Error("retryable")
			}
			got := s.all()
			if len(got) == 0 || len(got) > 2 {
				t.Errorf("dialled %d times, want once or twice", len(got))
			}
			nonces := map[string]bool{}
			for _, text := range got {
				if !onlyNonce.MatchString(text) {
					t.Errorf("the squatter received %q", text)
				}
				nonces[text] = true
			}
			if len(nonces) != len(got) {
				t.Error("a nonce was used twice")
			}
		})
	}
	if n := h.backend.calls.Load(); n != 0 {
		t.Errorf("%d calls reached the daemon", n)
	}
}

// behaviours are the ways in which a squatter answers, by name: tok is what it
// takes for the token, daemon where the real daemon listens.
func behaviours(tok, daemon string) map[string]func(s *squatter, c net.Conn, nonce []byte) {
	var earlier []byte // a nonce for which the squatter has seen the right proof
	var mu sync.Mutex
	return map[string]func(s *squatter, c net.Conn, nonce []byte){
		"silent":      func(s *squatter, c net.Conn, _ []byte) { <-s.stop },
		"closes":      func(_ *squatter, c net.Conn, _ []byte) { c.Close() },
		"wrong proof": func(_ *squatter, c net.Conn, _ []byte) { ok(c, helloBody(strings.Repeat("ab", 32))) },
		"empty proof": func(_ *squatter, c net.Conn, _ []byte) { ok(c, helloBody("")) },
		"no proof":    func(_ *squatter, c net.Conn, _ []byte) { ok(c, `{"ok":true}`) },
		"empty key":   func(s *squatter, c net.Conn, n []byte) { ok(c, helloBody(api.Proof("", s.local(), n))) },
		"echoes":      func(_ *squatter, c net.Conn, n []byte) { ok(c, helloBody(hex.EncodeToString(n))) },
		"replays": func(s *squatter, c net.Conn, n []byte) {
			mu.Lock()
			defer mu.Unlock()
			if earlier == nil {
				earlier = n
			}
			proof := api.Proof(tok, s.local(), earlier)
			if bytes.Equal(earlier, n) {
				proof = strings.Repeat("0", 64) // the first time it has nothing to replay yet
			}
			ok(c, helloBody(proof))
		},
		"relays from another port": func(_ *squatter, c net.Conn, n []byte) {
			resp, err := http.Get("http://" + daemon + "/hello?nonce=" + hex.EncodeToString(n))
			if err != nil {
				return
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			ok(c, string(b))
		},
		"right proof, wrong status": func(s *squatter, c net.Conn, n []byte) {
			b := helloBody(api.Proof(tok, s.local(), n))
			fmt.Fprintf(c, "HTTP/1.1 203 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
		},
		"right proof, then more": func(s *squatter, c net.Conn, n []byte) {
			b := helloBody(api.Proof(tok, s.local(), n))
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%sHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", len(b), b)
		},
		"html": func(_ *squatter, c net.Conn, _ []byte) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 22\r\n\r\n<html><b>hi</b></html>")
		},
		"redirects": func(s *squatter, c net.Conn, n []byte) {
			fmt.Fprintf(c, "HTTP/1.1 302 Found\r\nLocation: http://%s/hello?nonce=%x\r\nContent-Length: 0\r\n\r\n", daemon, n)
		},
		"asks for a password": func(_ *squatter, c net.Conn, _ []byte) {
			fmt.Fprint(c, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n")
		},
		"not http": func(_ *squatter, c net.Conn, _ []byte) { fmt.Fprint(c, "SSH-2.0-OpenSSH_9.9\r\n") },
		"huge header": func(_ *squatter, c net.Conn, _ []byte) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX: %s\r\n\r\n", strings.Repeat("x", 1<<20))
		},
		"endless header": func(s *squatter, c net.Conn, _ []byte) { drip(s, c, "HTTP/1.1 200 OK\r\n", "X: y\r\n", 0) },
		"slow": func(s *squatter, c net.Conn, _ []byte) {
			drip(s, c, "HTTP/1.1 200 OK\r\n", "X: y\r\n", 20*time.Millisecond)
		},
		"huge body": func(_ *squatter, c net.Conn, _ []byte) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 1<<20, strings.Repeat(" ", 1<<20))
		},
		"short body": func(_ *squatter, c net.Conn, _ []byte) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{}")
			c.Close()
		},
		"chunked": func(s *squatter, c net.Conn, n []byte) {
			b := helloBody(strings.Repeat("0", 64))
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(b), b)
		},
		"continues": func(s *squatter, c net.Conn, _ []byte) { drip(s, c, "", "HTTP/1.1 100 Continue\r\n\r\n", 0) },
	}
}

// onlyNonce is all that a squatter may get.
var onlyNonce = regexp.MustCompile(`^GET /hello\?nonce=[0-9a-f]{64} HTTP/1\.1\r\nHost: 127\.0\.0\.1:[0-9]+\r\n\r\n$`)

// drip writes first, then again and again the same line.
func drip(s *squatter, c net.Conn, first, line string, pause time.Duration) {
	if _, err := io.WriteString(c, first); err != nil {
		return
	}
	for {
		if _, err := io.WriteString(c, line); err != nil {
			return
		}
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
		}
	}
}

// Random answers are never a proof, and never a panic.
func TestRandomAnswers(t *testing.T) {
	h := newHome(t)
	h.renew()
	rng := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	parts := []string{
		"HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n", "Content-Length: 0\r\n", "Content-Length: 9999999999999\r\n", "Content-Length: -1\r\n",
		"Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "\r\n", "\n", "{}", `{"proof":"`, `"}`, "ffffffffffffffff\r\n", "0\r\n\r\n", ": \r\n", "\x00", "\xff\xfe",
	}
	s := squat(t, func(_ *squatter, c net.Conn, _ []byte) {
		mu.Lock()
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		mu.Unlock()
		_, _ = io.WriteString(c, b.String())
		c.Close()
	})
	c := h.clientWith(func(o *client.Options) { o.URL.Host = s.addr })
	c.SetPatience(time.Second)
	for range 300 {
		if _, err := c.Status(t.Context()); code(t, err) != "BRIDGE_BAD_ANSWER" {
			t.Fatalf("%v", err)
		}
	}
	for _, text := range s.all() {
		if strings.Contains(text, "Authorization") {
			t.Fatalf("the token was sent: %q", text)
		}
	}
}

// The token file may be renewed between reading it and dialling: a proof under
// the newer token is looked for once.
func TestRenewedWhileDialling(t *testing.T) {
	h := newHome(t)
	h.renew()
	first := true
	s := squat(t, func(s *squatter, c net.Conn, n []byte) {
		if first {
			first = false
			h.renew() // the daemon has started in the meantime
		}
		ok(c, helloBody(api.Proof(h.holder.Current(), s.local(), n)))
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil && req.Header.Get("Authorization") == "Bearer "+h.holder.Current() {
			ok(c, `{"ok":true,"version":"1.0.0"}`)
		}
	})
	c := h.clientWith(func(o *client.Options) { o.URL.Host = s.addr })
	if st, err := c.Status(t.Context()); err != nil || !st.OK {
		t.Errorf("%v %v", st, err)
	}
	if n := len(s.all()); n != 2 {
		t.Errorf("dialled %d times, want 2", n)
	}
}
