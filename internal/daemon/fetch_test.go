package daemon_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A document is fetched under the outbound policy, without a credential, up to
// its own limit of size, and leaves a row.
func TestFetch(t *testing.T) {
	var seen http.Header
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		switch r.URL.Path {
		case "/doc":
			_, _ = w.Write([]byte("\xef\xbb\xbfopenapi: 3.0.0\n"))
		case "/latin":
			w.Header().Set("Content-Type", "text/yaml; charset=iso-8859-1")
			_, _ = w.Write([]byte("title: Gr\xf6\xdfe\n"))
		case "/most":
			_, _ = w.Write(bytes.Repeat([]byte("a"), control.MaxFetch))
		case "/over":
			_, _ = w.Write(bytes.Repeat([]byte("a"), control.MaxFetch+1))
		case "/moved":
			http.Redirect(w, r, "/doc", http.StatusFound)
		case "/private":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}))
	defer up.Close()
	s := newSafe(t)
	fetch := func(path string) ([]byte, error) {
		r, err := s.person.Fetch(t.Context(), &control.FetchRequest{URL: path})
		if err != nil {
			return nil, err
		}
		return r.Body, nil
	}
	for path, want := range map[string]string{
		"/doc": "openapi: 3.0.0\n", "/latin": "title: Größe\n", "/moved": "openapi: 3.0.0\n", "/most": strings.Repeat("a", control.MaxFetch),
	} {
		if got, err := fetch(up.URL + path); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
		if seen.Get("Authorization") != "" || seen.Get("Cookie") != "" || !strings.Contains(seen.Get("Accept"), "yaml") {
			t.Errorf("%s was asked with %v", path, seen)
		}
	}
	for url, code := range map[string]fault.Code{
		up.URL + "/over": "RESPONSE_TOO_LARGE", up.URL + "/none": "UPSTREAM_NOT_FOUND", up.URL + "/private": "AUTH_REQUIRED",
		"http://169.254.169.254/x?k=canary-4711": "POLICY_PRIVATE_ADDRESS", "ftp://a.test/canary-4711": "POLICY_SCHEME",
		"http://u:canary-4711@a.test/": "POLICY_URL", "http://a.test/%zz?k=canary-4711": "POLICY_URL", "canary-4711": "POLICY_SCHEME",
	} {
		_, err := fetch(url)
		f := fault.From(err)
		if f.Code != code || strings.Contains(f.Error()+f.Hint, "canary") || strings.Contains(f.Hint, "sample") {
			t.Errorf("%s: %v (%s), want %s", url, err, f.Hint, code)
		}
	}
	page, err := s.person.Audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	imports := 0
	for _, row := range page.Rows {
		if row.Kind == "import" {
			imports++
		}
	}
	if imports == 0 {
		t.Error("no row of an import")
	}
	if strings.Contains(s.log.String(), "canary") {
		t.Error("the log has the address")
	}
}
