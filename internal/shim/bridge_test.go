package shim

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
)

// A fakeBridge speaks the bridge's routes from canned answers and keeps what
// it was asked, byte for byte.
type fakeBridge struct {
	url       *url.URL
	tokenFile string

	mu       sync.Mutex
	revision uint64
	changed  chan struct{} // closed when revision grows
	polls    int           // waiting calls for news
	deaf     bool          // does not wait for news, as an old daemon
	token    string
	answers  map[string]string // "POST /wrap/run" to a body
	status   map[string]int    // absent: 200
	seen     []string          // "POST /wrap/run BODY"
	hold     func(*http.Request)
	server   *httptest.Server
}

const (
	tokenA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	tokenB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// newBridge starts one that has written its token.
func newBridge(t *testing.T) *fakeBridge {
	t.Helper()
	b := &fakeBridge{revision: 7, changed: make(chan struct{}), answers: map[string]string{}, status: map[string]int{}, tokenFile: filepath.Join(t.TempDir(), "token")}
	b.start(t, "127.0.0.1:0", tokenA)
	t.Cleanup(func() { b.stop() })
	return b
}

// start listens on addr under a token, as a daemon's start does.
func (b *fakeBridge) start(t *testing.T, addr, token string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.token = token
	b.mu.Unlock()
	b.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: b}}
	b.server.Start()
	if b.url, err = url.Parse(b.server.URL); err != nil {
		t.Fatal(err)
	}
}

// stop ends it with every connection, also one that arrives meanwhile and then
// waits for news.
func (b *fakeBridge) stop() {
	done := make(chan struct{})
	go func() {
		b.server.Close()
		close(done)
	}()
	for {
		_ = b.server.Config.Close()
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (b *fakeBridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(api.HeaderVersion, "test")
	b.mu.Lock()
	token, hold := b.token, b.hold
	w.Header().Set(api.HeaderRevision, fmt.Sprint(b.revision))
	b.mu.Unlock()
	if r.URL.Path == "/hello" {
		nonce, _ := hex.DecodeString(r.URL.Query().Get("nonce"))
		local := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort()
		_ = json.NewEncoder(w).Encode(api.Hello{Proof: api.Proof(token, local, nonce), Version: "test"})
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"ok":false,"code":"UNAUTHORIZED","status":null,"field":null,"retryable":false,"hint":"","message":"wrong token","details":[]}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	route := r.Method + " " + r.URL.Path
	line := strings.TrimSpace(r.Method + " " + r.URL.RequestURI() + " " + string(bytes.TrimSpace(body)))
	b.mu.Lock()
	b.seen = append(b.seen, line)
	b.mu.Unlock()
	if after := r.URL.Query().Get("after"); route == "GET /wrap/manifest" && after != "" && !b.waited(r, after) {
		return
	}
	b.mu.Lock()
	w.Header().Set(api.HeaderRevision, fmt.Sprint(b.revision))
	answer, ok := b.answers[route]
	status := b.status[route]
	b.mu.Unlock()
	if hold != nil {
		hold(r)
	}
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"ok":false,"code":"ROUTE_NOT_FOUND","status":null,"field":null,"retryable":false,"hint":"","message":"no canned answer","details":[]}`)
		return
	}
	if status != 0 {
		w.WriteHeader(status)
	}
	_, _ = io.WriteString(w, answer)
}

// waited waits until the revision is above after; false when the caller went.
func (b *fakeBridge) waited(r *http.Request, after string) bool {
	n, _ := strconv.ParseUint(after, 10, 64)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.polls++
	defer func() { b.polls-- }()
	for b.revision <= n && !b.deaf {
		c := b.changed
		b.mu.Unlock()
		gone := false
		select {
		case <-c:
		case <-r.Context().Done():
			gone = true
		}
		b.mu.Lock()
		if gone {
			return false
		}
	}
	return true
}

// publish makes a manifest the current one.
func (b *fakeBridge) publish(revision uint64, entries ...api.ManifestEntry) {
	raw, err := json.Marshal(api.Manifest{Revision: revision, Wrappers: append([]api.ManifestEntry{}, entries...)})
	if err != nil {
		panic(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers["GET /wrap/manifest"] = string(raw)
	b.answers["GET /wrap/status"] = fmt.Sprintf(`{"ok":true,"version":"test","revision":%d}`, revision)
	b.revision = revision
	close(b.changed)
	b.changed = make(chan struct{})
}

// answer cans the answer of a route.
func (b *fakeBridge) answer(route, body string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[route] = body
}

// requests returns what came in since the last call.
func (b *fakeBridge) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen
	b.seen = nil
	return seen
}

func (b *fakeBridge) client() *client.Client {
	return client.New(client.Options{
		URL: b.url, TokenFiles: []string{b.tokenFile}, Version: "test", Timeout: 10 * time.Second,
		Started: time.Now().Add(-time.Hour),
	}) // a daemon that is not there is not waited for
}
