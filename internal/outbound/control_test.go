package outbound

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
)

// The second net judges the address by itself, whatever the first one let by.
func TestControl(t *testing.T) {
	strict := New(Policy{}, Options{}).control("api.example.com")
	open := New(Policy{AllowPrivate: true}, Options{}).control("api.example.com")
	for _, c := range []struct {
		address        string
		strictOK, open bool
	}{
		{"93.184.216.34:443", true, true},
		{"127.0.0.1:443", false, true},
		{"[::1]:443", false, true},
		{"169.254.169.254:80", false, false},
		{"[fe80::1%lo]:80", false, false},
		{"[::ffff:10.0.0.1]:443", false, true},
		{"api.example.com:443", false, false},
		{"", false, false},
	} {
		if err := strict(context.Background(), "tcp4", c.address, nil); (err == nil) != c.strictOK {
			t.Errorf("strict %s: %v", c.address, err)
		}
		if err := open(context.Background(), "tcp4", c.address, nil); (err == nil) != c.open {
			t.Errorf("open %s: %v", c.address, err)
		}
	}
	if err := strict(context.Background(), "tcp", "10.0.0.1:1", nil); !fault.Is(err, "POLICY_PRIVATE_ADDRESS") {
		t.Error(err)
	}
}

// Whatever the URL, what goes into the request line is printable ASCII without
// spaces, and the host is the one that was judged.
func FuzzTarget(f *testing.F) {
	f.Add("https://api.example.com/a%20b?x=1", "", "")
	f.Add("https://api.example.com/", "a b\xff#\"", "/é x")
	f.Add("https://user@api.example.com:8443", "x", "//evil.example/")
	f.Fuzz(func(t *testing.T, raw, query, opaque string) {
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		if query != "" {
			u.RawQuery = query
		}
		u.Opaque += opaque
		got, err := Policy{AllowPrivate: true}.target(u)
		if err != nil {
			return
		}
		line := got.url.RequestURI()
		if line[0] != '/' || strings.HasPrefix(got.url.Opaque, "//") || len(line) > MaxURL {
			t.Fatalf("%q", line)
		}
		for i := range len(line) {
			if line[i] <= ' ' || line[i] >= 0x7f {
				t.Fatalf("%q has %q", line, line[i])
			}
		}
		if host, port, err := hostname.FromURL(got.url); err != nil || host != got.host || port != got.port || got.url.User != nil {
			t.Fatalf("%s: %q %q %v", got.url, host, port, err)
		}
	})
}
