package outbound_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// addrs are the addresses of testdata/addresses.txt of these classes.
func addrs(t testing.TB, classes ...string) (out []netip.Addr) {
	t.Helper()
	text, err := os.ReadFile("testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); slices.Contains(classes, words[0]) {
			for _, word := range words[1:] {
				out = append(out, netip.MustParseAddr(word))
			}
		}
	}
	return out
}

func TestCheckAddr(t *testing.T) {
	strict, open := outbound.Policy{}, outbound.Policy{AllowPrivate: true}
	check := func(class string, strictOK, openOK bool) {
		for _, a := range addrs(t, class) {
			if err := strict.CheckAddr(a); (err == nil) != strictOK || err != nil && code(err) != "POLICY_PRIVATE_ADDRESS" {
				t.Errorf("%s strict: %v", a, err)
			}
			if err := open.CheckAddr(a); (err == nil) != openOK {
				t.Errorf("%s with private allowed: %v", a, err)
			}
		}
	}
	check("closed", false, false)
	check("private", false, true)
	check("public", true, true)
	for _, zoned := range []string{"fe80::1%eth0", "::1%lo", "2606:4700::1%eth0", "fd00::1%1", "::ffff:8.8.8.8%x"} {
		if open.CheckAddr(netip.MustParseAddr(zoned)) == nil {
			t.Errorf("%s accepted", zoned)
		}
	}
	if open.CheckAddr(netip.Addr{}) == nil {
		t.Error("the zero address accepted")
	}
}

// The message names the address and its class; the hint does not offer a switch
// where none exists.
func TestCheckAddrSays(t *testing.T) {
	f := wantFault(t, outbound.Policy{}.CheckAddr(netip.MustParseAddr("::ffff:10.0.0.1")), "POLICY_PRIVATE_ADDRESS", "private (RFC 1918)")
	if !strings.Contains(f.Hint, "HB_WRAP_ALLOW_PRIVATE") || f.Retryable || f.Field != "wrapper.request.url" {
		t.Errorf("%+v", f)
	}
	f = wantFault(t, outbound.Policy{}.CheckAddr(netip.MustParseAddr("64:ff9b::a9fe:a9fe")), "POLICY_PRIVATE_ADDRESS", "link-local")
	if strings.Contains(f.Hint, "HB_WRAP") {
		t.Error(f.Hint)
	}
}

// Promise 1: no special address by literal, by redirect or by a name's answer.
// Every refused request is counted against the dialer, which is the only way to
// a socket.
func TestNoSpecialAddressByAnyWay(t *testing.T) {
	w := newWorld(t)
	var location atomic.Value
	w.serve("https://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", location.Load().(string))
		rw.WriteHeader(302)
	}))
	c := w.client(outbound.Policy{})
	all := addrs(t, "closed", "private")
	if len(all) < 120 {
		t.Fatalf("only %d addresses", len(all))
	}
	for i, a := range all {
		literal := a.String()
		if a.Is6() {
			literal = "[" + literal + "]"
		}
		if _, err := get(t, c, "https://"+literal+"/"); code(err) != "POLICY_PRIVATE_ADDRESS" {
			t.Errorf("literal %s: %v", literal, err)
		}
		location.Store("https://" + literal + "/")
		if _, err := get(t, c, "https://api.example.com/"); code(err) != "POLICY_REDIRECT" {
			t.Errorf("redirect to %s: %v", literal, err)
		}
		name := fmt.Sprintf("n%d.example.com", i)
		w.names[name] = []netip.Addr{a}
		if _, err := get(t, c, "https://"+name+"/"); code(err) != "POLICY_PRIVATE_ADDRESS" {
			t.Errorf("answer %s: %v", a, err)
		}
		location.Store("https://" + name + "/")
		if _, err := get(t, c, "https://api.example.com/"); code(err) != "POLICY_REDIRECT" {
			t.Errorf("redirect to a name with %s: %v", a, err)
		}
	}
	_, traps := w.counts()
	if traps != 0 {
		t.Errorf("%d dials to special addresses", traps)
	}
	soak.Measured(t, "%d special addresses, each by literal, by a name's answer, and by a redirect to both: %d dials to them", len(all), traps)
}

// D05, D06, S-04: spellings of loopback are refused before any resolver.
func TestSpellings(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		t.Errorf("%s went to the resolver", host)
		return nil, context.Canceled
	}
	c := outbound.New(outbound.Policy{}, o)
	for in, want := range map[string]string{
		"https://2130706433/": "POLICY_URL", "https://0x7f.1/": "POLICY_URL", "https://0177.0.0.1/": "POLICY_URL", "https://127.1/": "POLICY_URL",
		"https://017700000001/": "POLICY_URL", "https://0x7f000001/": "POLICY_URL", "https://127.0.0.0x1/": "POLICY_URL",
		"https://①②⑦.⓪.⓪.①/": "POLICY_PRIVATE_ADDRESS", "https://127。0。0。1/": "POLICY_PRIVATE_ADDRESS", "https://127.0.0.1./": "POLICY_PRIVATE_ADDRESS",
		"https://localhost/": "POLICY_PRIVATE_ADDRESS", "https://localhost./": "POLICY_PRIVATE_ADDRESS", "https://LOCALHOST/": "POLICY_PRIVATE_ADDRESS",
		"https://a.localhost/": "POLICY_PRIVATE_ADDRESS", "https://ｌocalhost/": "POLICY_PRIVATE_ADDRESS",
		"https://[::1]/": "POLICY_PRIVATE_ADDRESS", "https://[::ffff:127.0.0.1]/": "POLICY_PRIVATE_ADDRESS", "https://0.0.0.0/": "POLICY_PRIVATE_ADDRESS",
		"https://100.64.0.1/": "POLICY_PRIVATE_ADDRESS", "https://[fe80::1%25eth0]/": "POLICY_URL", "https://[::1%25lo]/": "POLICY_URL",
		"https://user:pw@api.example.com/": "POLICY_URL", "https://example.com@127.0.0.1/": "POLICY_URL",
		"https://[64:ff9b::a9fe:a9fe]/": "POLICY_PRIVATE_ADDRESS", "https://[2002:7f00:1::]/": "POLICY_PRIVATE_ADDRESS", "https://[2001:0:1::1]/": "POLICY_PRIVATE_ADDRESS",
		"ftp://a.example/": "POLICY_SCHEME", "file:///etc/passwd": "POLICY_SCHEME", "data:text/plain,x": "POLICY_SCHEME", "gopher://a.example/": "POLICY_SCHEME", "javascript:1": "POLICY_SCHEME",
		"https:///x": "POLICY_URL", "https://a.example:22/": "POLICY_URL", "https://a.example:6667/": "POLICY_URL", "https://a.example:0/": "POLICY_URL",
		"http://api.example.com/": "POLICY_SCHEME",
	} {
		u := mustURL(t, in)
		if err := (outbound.Policy{}).CheckURL(u); string(code(err)) != want {
			t.Errorf("CheckURL(%s): %v, want %s", in, err, want)
		}
		if _, err := get(t, c, in); string(code(err)) != want {
			t.Errorf("Send(%s): %v, want %s", in, err, want)
		} else if strings.Contains(err.Error(), "pw@") {
			t.Error(err)
		}
	}
	for _, x := range w.exchanges() {
		if strings.Contains(x.Host, "pw") || strings.Contains(x.Host, "@") {
			t.Errorf("observed host %q", x.Host)
		}
	}
	if dials, _ := w.counts(); dials != 0 {
		t.Errorf("%d dials", dials)
	}
}

func TestCheckURLPermissions(t *testing.T) {
	list := []outbound.HostPort{
		{Host: "NAS.internal.", Port: "5000", HTTP: true},
		{Host: "10.0.0.7"},
		{Host: "[fd00::5]", Port: "8443"},
		{Host: "169.254.169.254", HTTP: true},
		{Host: "localhost", HTTP: true},
		{Host: "not a host"},
	}
	allow, private, plain := outbound.Policy{Allowed: list}, outbound.Policy{AllowPrivate: true}, outbound.Policy{AllowHTTP: true}
	for _, c := range []struct {
		p    outbound.Policy
		in   string
		want string
	}{
		{plain, "http://api.example.com/", ""},
		{plain, "http://10.0.0.1/", "POLICY_PRIVATE_ADDRESS"},
		{private, "http://10.0.0.1/", ""},
		{private, "http://localhost:8080/", ""},
		{private, "http://169.254.169.254/", "POLICY_PRIVATE_ADDRESS"},
		{private, "https://[fd00:ec2::254]/", "POLICY_PRIVATE_ADDRESS"},
		{private, "https://a.example:25/", "POLICY_URL"},
		{allow, "http://nas.internal:5000/", ""},
		{allow, "http://nas.internal:5001/", "POLICY_SCHEME"},
		{allow, "https://nas.internal:5001/", ""},
		{allow, "https://10.0.0.7/", ""},
		{allow, "https://10.0.0.7:9999/", ""},
		{allow, "http://10.0.0.7/", "POLICY_SCHEME"},
		{allow, "https://10.0.0.8/", "POLICY_PRIVATE_ADDRESS"},
		{allow, "https://[fd00::5]:8443/", ""},
		{allow, "https://[fd00::5]/", "POLICY_PRIVATE_ADDRESS"},
		{allow, "https://[::ffff:10.0.0.7]/", "POLICY_PRIVATE_ADDRESS"},
		{allow, "http://169.254.169.254/", "POLICY_PRIVATE_ADDRESS"},
		{allow, "http://localhost/", ""},
		{allow, "http://127.0.0.1/", "POLICY_SCHEME"},
		{allow, "https://127.0.0.1/", "POLICY_PRIVATE_ADDRESS"},
	} {
		if err := c.p.CheckURL(mustURL(t, c.in)); string(code(err)) != c.want {
			t.Errorf("%+v %s: %v, want %q", c.p, c.in, err, c.want)
		}
	}
}

// Laws, stated by bits and by the standard library rather than by the table.
func FuzzAddr(f *testing.F) {
	for _, a := range addrs(f, "closed", "private", "public") {
		f.Add(a.AsSlice(), "")
	}
	f.Add([]byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "eth0")
	f.Fuzz(func(t *testing.T, b []byte, zone string) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		if a.Is6() {
			a = a.WithZone(zone)
		}
		strict, open := outbound.Policy{}.CheckAddr(a) == nil, outbound.Policy{AllowPrivate: true}.CheckAddr(a) == nil
		if strict && !open {
			t.Fatalf("%s: the switch closed it", a)
		}
		if open && a.Zone() != "" {
			t.Fatalf("%s: accepted with a zone", a)
		}
		u := a.Unmap()
		if open && (u.IsUnspecified() || u.IsMulticast() || u.IsLinkLocalUnicast()) {
			t.Fatalf("%s: open", a)
		}
		if strict && (!u.IsGlobalUnicast() || u.IsPrivate() || u.IsLoopback()) {
			t.Fatalf("%s: strict", a)
		}
		if open && u.Is6() && !u.IsLoopback() {
			first := u.As16()[0]
			if nat := u.As16(); first>>5 != 1 && first>>1 != 0x7e && string(nat[:12]) != "\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00" {
				t.Fatalf("%s: outside the public space", a)
			}
		}
		if u.Is4() { // the three spellings of an IPv4 address have one verdict
			v4 := u.As4()
			nat := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: v4[0], 13: v4[1], 14: v4[2], 15: v4[3]})
			mapped := netip.AddrFrom16(u.As16())
			for _, other := range []netip.Addr{nat, mapped} {
				if (outbound.Policy{}.CheckAddr(other) == nil) != strict && a.Zone() == "" {
					t.Fatalf("%s and %s differ", a, other)
				}
			}
		}
	})
}
