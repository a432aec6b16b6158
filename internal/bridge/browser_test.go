package bridge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// A pageReport is what one page could do.
type pageReport struct {
	Origin string
	Tries  int
	Read   [][3]any // way, status, body
}

// Promise 6, with a browser that others wrote: pages of this machine and of a name
// that was led to it, two of them with the bridge's own origin, because they were
// loaded from that port before hbrestd had it. They know the token, and try every
// way a page has. Each request that arrives is answered 403 before any work, and
// no page reads anything but that.
func TestChromiumPages(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("no Chromium here (the Debian package chromium); TestBrowserRequestsAreForbidden sends what one sends")
	}
	page, err := os.ReadFile("testdata/page.html")
	if err != nil {
		t.Fatal(err)
	}
	show := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	}
	// The port that will be the bridge's, held by somebody else's page.
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { show(w) }))
	before.Config.SetKeepAlivesEnabled(false)
	_, port, _ := net.SplitHostPort(before.Listener.Addr().String())

	loaded, reports := make(chan string, 20), make(chan pageReport, 20)
	var ready atomic.Bool
	var shown atomic.Pointer[[]string]
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			for _, f := range *shown.Load() {
				_, _ = fmt.Fprintf(w, "<iframe src=%q></iframe>\n", f)
			}
		case "/page":
			show(w)
		case "/loaded":
			loaded <- string(body)
		case "/go":
			if ready.Load() {
				_, _ = io.WriteString(w, "go")
			}
		case "/report":
			var p pageReport
			if err := json.Unmarshal(body, &p); err != nil {
				t.Error(err)
			}
			reports <- p
		}
	}))
	t.Cleanup(home.Close)
	_, homePort, _ := net.SplitHostPort(home.Listener.Addr().String())
	query := "/page?" + url.Values{"bridge": {port}, "home": {home.URL}, "token": {testToken}, "all": {os.Getenv(soak.Variable)}}.Encode()
	var frames []string
	for _, host := range []string{"127.0.0.1", "localhost", "evil.example"} {
		for _, p := range []string{port, homePort} {
			frames = append(frames, "http://"+host+":"+p+query)
		}
	}
	shown.Store(&frames)

	args := []string{
		"--headless=new", "--disable-gpu", "--no-first-run", "--user-data-dir=" + t.TempDir(),
		// Nothing outside of this machine is resolved or asked.
		"--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
		"--disable-domain-reliability", "--disable-client-side-phishing-detection", "--no-pings", "--no-proxy-server",
		"--disable-features=OptimizationHints,MediaRouter,DnsOverHttps,AsyncDns",
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // which does not start as root
	}
	var said strings.Builder
	cmd := exec.Command(browser, append(args, home.URL+"/")...)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	t.Cleanup(stop)
	end := time.After(4 * time.Minute)
	late := func(n int, what string) {
		t.Helper()
		stop()
		t.Fatalf("%d of %d pages %s\n%s", n, len(frames), what, said.String())
	}
	for n := range frames {
		select {
		case <-loaded:
		case <-end:
			late(n, "were loaded")
		}
	}

	before.Close()
	var mu sync.Mutex
	seen := map[string]int{} // requests by method
	total, allowed := 0, 0
	f := &fake{}
	serveWith(t, f, "127.0.0.1:"+port, func(srv *http.Server) {
		inner := srv.Handler
		srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			inner.ServeHTTP(rec, r)
			mu.Lock()
			total++
			seen[r.Method]++
			cors := ""
			for name := range rec.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					cors = name
				}
			}
			if rec.Code != 403 || cors != "" || !strings.Contains(rec.Body.String(), "FORBIDDEN_ORIGIN") {
				if allowed++; allowed <= 10 {
					t.Errorf("%s %s with %v: %d %s %s", r.Method, r.URL, r.Header, rec.Code, cors, rec.Body)
				}
			}
			mu.Unlock()
			for name, values := range rec.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		})
	})
	ready.Store(true)
	tries, read := 0, 0
	for n := range frames {
		select {
		case p := <-reports:
			tries += p.Tries
			for _, r := range p.Read {
				read++
				if !strings.Contains(fmt.Sprint(r[2]), "FORBIDDEN_ORIGIN") {
					t.Errorf("%s read %v", p.Origin, r)
				}
			}
		case <-end:
			late(n, "reported")
		}
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	if seen["GET"] == 0 || seen["POST"] == 0 || seen["OPTIONS"] == 0 || total < 100 {
		t.Errorf("only %v arrived", seen)
	}
	calls, revision := f.asked()
	if len(calls) != 0 || revision != 0 {
		t.Errorf("the backend was asked: %v, revision %d times", calls, revision)
	}
	soak.Measured(t, "Chromium, %d pages of 6 origins: %d tries, %d requests arrived (%d GET, %d POST, %d OPTIONS), %d not answered 403, %d reached the backend; %d answers could be read, each of them the 403", len(frames), tries, total, seen["GET"], seen["POST"], seen["OPTIONS"], allowed, len(calls)+revision, read)
}
