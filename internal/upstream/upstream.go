// Package upstream is a scripted HTTP server that plays an API in tests: it
// serves the routes of a text file and writes down every request it got. It is
// for tests and the demonstration only. Start with [Parse] and [Script.Handler].
package upstream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Script is a list of routes. In its text form a route is
//
//	METHOD /path?query
//	HTTP 200
//	Header-Name: value
//
//	body up to a line of four dashes
//	----
//
// A route without a query answers any query. "*" as the method answers all.
// Routes are tried in order; a route with "HTTP 200 once" is used one time.
// The header "X-Delay: 300ms" makes the server wait before it answers. The
// body "@echo" answers with a JSON account of the request.
type Script struct {
	mu     sync.Mutex // guards the fields below
	routes []*route
	hits   []Hit
}

type route struct {
	method, path string
	query        string
	hasQuery     bool
	status       int
	once, used   bool
	header       http.Header
	delay        time.Duration
	body         string
}

// A Hit is one request as it arrived.
type Hit struct {
	Method string
	URI    string // as on the wire
	Header http.Header
	Body   string
}

// Parse reads the text form.
func Parse(text string) (*Script, error) {
	s := &Script{}
	for i, block := range strings.Split("\n"+strings.TrimSuffix(text, "\n")+"\n", "\n----\n") {
		if strings.TrimSpace(block) == "" {
			continue
		}
		r, err := parseRoute(strings.TrimLeft(block, "\n"))
		if err != nil {
			return nil, fmt.Errorf("route %d: %w", i+1, err)
		}
		s.routes = append(s.routes, r)
	}
	return s, nil
}

func parseRoute(block string) (*route, error) {
	head, body, _ := strings.Cut(block, "\n\n")
	in := bufio.NewScanner(strings.NewReader(head))
	r := &route{header: http.Header{}, body: strings.TrimSuffix(body, "\n")}
	for n := 0; in.Scan(); n++ {
		line := in.Text()
		switch {
		case n == 0:
			method, target, ok := strings.Cut(line, " ")
			if !ok || !strings.HasPrefix(target, "/") {
				return nil, fmt.Errorf("want METHOD /path, got %q", line)
			}
			r.method = method
			r.path, r.query, r.hasQuery = strings.Cut(target, "?")
		case n == 1:
			f := strings.Fields(line)
			if len(f) < 2 || f[0] != "HTTP" {
				return nil, fmt.Errorf("want HTTP STATUS, got %q", line)
			}
			status, err := strconv.Atoi(f[1])
			if err != nil {
				return nil, fmt.Errorf("status %q: %w", f[1], err)
			}
			r.status, r.once = status, len(f) > 2 && f[2] == "once"
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return nil, fmt.Errorf("want Name: value, got %q", line)
			}
			value = strings.TrimSpace(value)
			if name == "X-Delay" {
				d, err := time.ParseDuration(value)
				if err != nil {
					return nil, err
				}
				r.delay = d
				continue
			}
			r.header.Add(name, value)
		}
	}
	if r.status == 0 {
		return nil, fmt.Errorf("no HTTP line")
	}
	if r.header.Get("Content-Type") == "" && r.body != "" {
		r.header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// Hits returns the requests so far.
func (s *Script) Hits() []Hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Hit(nil), s.hits...)
}

// Handler serves the script.
func (s *Script) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(io.LimitReader(req.Body, 16<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		hit := Hit{Method: req.Method, URI: req.RequestURI, Header: req.Header.Clone(), Body: string(body)}
		r := s.take(hit, req.URL)
		if r == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"message":%q}`, "no route for "+req.Method+" "+req.URL.Path)
			return
		}
		if r.delay > 0 {
			select {
			case <-time.After(r.delay):
			case <-req.Context().Done():
				return
			}
		}
		for k, v := range r.header {
			w.Header()[k] = v
		}
		out := r.body
		if out == "@echo" {
			out = echo(hit)
		}
		w.WriteHeader(r.status)
		_, _ = io.WriteString(w, out) // the caller may be gone; that is its affair
	})
}

func (s *Script) take(h Hit, u *url.URL) *route {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits = append(s.hits, h)
	for _, r := range s.routes {
		if r.used || r.method != "*" && r.method != h.Method || r.path != u.EscapedPath() || r.hasQuery && r.query != u.RawQuery {
			continue
		}
		r.used = r.once
		return r
	}
	return nil
}

func echo(h Hit) string {
	out, err := json.Marshal(map[string]any{"method": h.Method, "uri": h.URI, "headers": h.Header, "body": h.Body})
	if err != nil {
		return err.Error()
	}
	return string(out)
}
