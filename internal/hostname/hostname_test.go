package hostname_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
)

type vector struct{ In, Out, Error, Why string }

// vectors is the one file of right answers for host names.
func vectors(t testing.TB) (v struct {
	Canonical, Origin []vector
	Same              []struct {
		A, B string
		Same bool
	}
},
) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func check(t *testing.T, v vector, got string, err error) {
	t.Helper()
	if v.Error == "" {
		if err != nil || got != v.Out {
			t.Errorf("%q: got %q, %v; want %q (%s)", v.In, got, err, v.Out, v.Why)
		}
		return
	}
	var typed *hostname.Error
	if !errors.As(err, &typed) || !strings.Contains(err.Error(), v.Error) || got != "" {
		t.Errorf("%q: got %q, %v; want an *Error about %q (%s)", v.In, got, err, v.Error, v.Why)
	}
}

func TestCanonicalVectors(t *testing.T) {
	for _, v := range vectors(t).Canonical {
		got, err := hostname.Canonical(v.In)
		check(t, v, got, err)
	}
}

func TestOriginVectors(t *testing.T) {
	for _, v := range vectors(t).Origin {
		u, err := url.Parse(v.In)
		if err != nil {
			t.Fatalf("%q: %v", v.In, err)
		}
		got, err := hostname.Origin(u)
		check(t, v, got, err)
	}
}

func TestSameOriginVectors(t *testing.T) {
	for _, v := range vectors(t).Same {
		a, errA := url.Parse(v.A)
		b, errB := url.Parse(v.B)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := hostname.SameOrigin(a, b); got != v.Same {
			t.Errorf("SameOrigin(%s, %s) = %v", v.A, v.B, got)
		}
		if got := hostname.SameOrigin(b, a); got != v.Same {
			t.Errorf("SameOrigin(%s, %s) = %v", v.B, v.A, got)
		}
	}
}

func TestCanonicalLimits(t *testing.T) {
	label := strings.Repeat("a", hostname.MaxLabel)
	name := strings.Join([]string{label, label, label, strings.Repeat("b", 61)}, ".") // 63*3+61+3 = 253
	for in, ok := range map[string]bool{
		label: true, label + "a": false,
		name: true, name + ".": true, name + "b": false,
	} {
		if _, err := hostname.Canonical(in); (err == nil) != ok {
			t.Errorf("%d bytes: %v", len(in), err)
		}
	}
}

// A URL made by hand can hold host texts that url.Parse refuses.
func TestFromURLByHand(t *testing.T) {
	for _, host := range []string{"::1", "::1:80", "a:b", "a:80:80", "u@a.example", "[::1]x", "[::1]:80:80", "[::1", "::1]", "a.example:x", "a.example:+80", "a]:80"} {
		if got, port, err := hostname.FromURL(&url.URL{Scheme: "https", Host: host}); err == nil {
			t.Errorf("%q: accepted as %q %q", host, got, port)
		}
	}
	if _, _, err := hostname.FromURL(nil); err == nil {
		t.Error("nil URL accepted")
	}
}

func TestErrorNeverShowsPassword(t *testing.T) {
	u, err := url.Parse("https://user:hunter2@api.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hostname.Origin(u); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestJoin(t *testing.T) {
	for _, c := range [][3]string{
		{"a.example", "443", "a.example:443"},
		{"a.example", "", "a.example"},
		{"::1", "443", "[::1]:443"},
		{"::1", "", "[::1]"},
	} {
		if got := hostname.Join(c[0], c[1]); got != c[2] {
			t.Errorf("Join(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// Laws: a canonical host is its own canonical form, is ASCII, and survives a
// journey through a URL.
func FuzzCanonical(f *testing.F) {
	for _, v := range vectors(f).Canonical {
		f.Add(v.In)
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := hostname.Canonical(in)
		if err != nil {
			return
		}
		again, err := hostname.Canonical(c)
		if err != nil || again != c {
			t.Fatalf("%q -> %q -> %q, %v", in, c, again, err)
		}
		if len(c) > hostname.MaxName || c != strings.ToLower(c) || strings.ContainsAny(c, "@/\\?#%[] \t\r\n\x00") {
			t.Fatalf("%q -> %q", in, c)
		}
		u, err := url.Parse("https://" + hostname.Join(c, "8443") + "/")
		if err != nil {
			t.Fatalf("%q -> %q: %v", in, c, err)
		}
		if host, port, err := hostname.FromURL(u); err != nil || host != c || port != "8443" {
			t.Fatalf("%q -> %q -> %q %q %v", in, c, host, port, err)
		}
	})
}

// Values of the public suffix list.
func TestSite(t *testing.T) {
	for host, want := range map[string]string{
		"api.example.com": "example.com", "example.com": "example.com", "a.b.example.co.uk": "example.co.uk",
		"login.example.org": "example.org", "co.uk": "co.uk", "localhost": "localhost", "127.0.0.1": "127.0.0.1", "::1": "::1",
		"alice.github.io": "alice.github.io", "bob.github.io": "bob.github.io",
	} {
		if got := hostname.Site(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}
