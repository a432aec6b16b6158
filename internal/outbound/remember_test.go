package outbound_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// What a client has let pass before changes no verdict: each is that of the
// policy itself, which remembers nothing, whatever was asked in between and by
// how many at once.
func TestRememberedPlacesChangeNoVerdict(t *testing.T) {
	hosts := []string{
		"a.example", "A.Example", "a.example.", "a.example..", "b.example", "xn--mnchen-3ya.example", "münchen.example", "MÜNCHEN.example", "ａ.example", "a。example", "a%2eexample",
		"127.0.0.1", "127.1", "0x7f000001", "2130706433", "017700000001", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "10.0.0.1", "10.0.0.1.", "169.254.169.254", "[fd00::1]", "[fe80::1%25eth0]",
		"8.8.8.8", "[2606:4700:4700::1111]", "localhost", "LOCALHOST", "localhost.", "x.localhost", "a_b.example", "-a.example", "", " ", "a b", "user@a.example", "a.example@10.0.0.1", "intranet", "a.example\t",
	}
	ports := []string{"", ":", ":443", ":80", ":8080", ":0", ":22", ":6000", ":65536", ":0443", ":00080", ":x", ":-1", ":443:80"}
	schemes := []string{"https", "http", "HTTPS", "Http", "ftp", "", "file", "https:"}
	users := []*url.Userinfo{nil, nil, nil, nil, url.User("u"), url.UserPassword("u", "p"), url.User("")}
	rests := []func(*url.URL){
		func(*url.URL) {}, func(u *url.URL) { u.Path = "/x" }, func(u *url.URL) { u.Path = "x" }, func(u *url.URL) { u.Opaque = "//10.0.0.1/x" }, func(u *url.URL) { u.Opaque = "/x" },
		func(u *url.URL) { u.Opaque = "x" }, func(u *url.URL) { u.RawQuery = "a=b c" }, func(u *url.URL) { u.RawQuery = "a\r\nX: y" }, func(u *url.URL) { u.Fragment = "@10.0.0.1" },
		func(u *url.URL) { u.RawQuery = fmt.Sprintf("%017000d", 7) }, func(u *url.URL) { u.Path, u.RawPath = "/a/b", "/a%2Fb" },
	}
	policies := []outbound.Policy{
		{},
		{AllowHTTP: true},
		{AllowPrivate: true},
		{Allowed: []outbound.HostPort{{Host: "10.0.0.1"}}},
		{Allowed: []outbound.HostPort{{Host: "10.0.0.1", Port: "8080", HTTP: true}}},
		{Allowed: []outbound.HostPort{{Host: "localhost", Port: "8080"}, {Host: "[::1]", HTTP: true}}},
		{Allowed: []outbound.HostPort{{Host: "MÜNCHEN.example", HTTP: true}, {Host: "127.0.0.1"}}},
	}
	for i, p := range policies {
		c := outbound.New(p, outbound.Options{})
		t.Cleanup(c.Close)
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(n)))
				passed := 0
				for range 3000 {
					u := &url.URL{Scheme: schemes[r.IntN(len(schemes))], Host: hosts[r.IntN(len(hosts))] + ports[r.IntN(len(ports))], User: users[r.IntN(len(users))]}
					if r.IntN(2) == 0 {
						u.Scheme, u.Host = schemes[r.IntN(2)], hosts[r.IntN(len(hosts))]+ports[r.IntN(5)]
					}
					rests[r.IntN(len(rests))](u)
					before := *u
					got, want := c.CheckURL(u), c.Policy().CheckURL(u)
					if d := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); d != "" {
						t.Errorf("policy %d, %#v (-want +got)\n%s", i, u, d)
						return
					}
					if *u != before {
						t.Errorf("the URL was changed: %v, %v", before, u)
					}
					if want == nil {
						passed++
					}
				}
				if passed < 20 {
					t.Errorf("policy %d: only %d of the URLs passed", i, passed)
				}
			})
		}
		wg.Wait()
	}
}

// A place that passed is judged anew at each dial: by its addresses of then.
func TestRememberedNameMovesToAPrivateAddress(t *testing.T) {
	w := newWorld(t)
	w.serve("https://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Connection", "close")
		_, _ = io.WriteString(rw, "ok")
	}))
	c := w.client(outbound.Policy{})
	public := w.names["api.example.com"]
	for range 20 {
		if _, err := get(t, c, "https://api.example.com/"); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.names["api.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
		w.mu.Unlock()
		_, err := get(t, c, "https://api.example.com/")
		wantFault(t, err, "POLICY_PRIVATE_ADDRESS", "10.0.0.1")
		w.mu.Lock()
		w.names["api.example.com"] = public
		w.mu.Unlock()
	}
	if dials, traps := w.counts(); dials != 20 || traps != 0 {
		t.Errorf("%d dials, %d of them to nothing", dials, traps)
	}
}

// One request may be sent by many at once: its header, URL and body are only
// read, and each sender gets its own answer, redirects and cancellations among
// them.
func TestOneRequestSentByMany(t *testing.T) {
	w := newWorld(t)
	w.serve("https://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			rw.Header().Set("Location", "https://other.example.com/"+r.URL.RawQuery)
			rw.WriteHeader(http.StatusFound)
			return
		}
		if r.URL.Path == "/see" {
			rw.Header().Set("Location", "/"+r.URL.RawQuery)
			rw.WriteHeader(http.StatusSeeOther)
			return
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %s %s %s %s %s %s", r.Method, r.URL.RawQuery, r.Header["X-Many"], r.Header["Idempotency-Key"], r.Header["Authorization"], r.UserAgent(), b)
	}))
	w.serve("https://other.example.com", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "other %s %s %s", r.URL.Path, r.Header["Authorization"], r.Header["X-Many"])
	}))
	c := w.client(outbound.Policy{PerHost: 8})
	header := http.Header{"X-Many": {"1", "2"}, "Idempotency-Key": {"k"}, "Authorization": {"Bearer s"}}
	held := header.Clone()
	body := []byte(`{"a":1}`)
	write := &outbound.Request{Method: "POST", URL: mustURL(t, "https://api.example.com/x?w"), Header: header, Body: body}
	read := &outbound.Request{Method: "GET", URL: mustURL(t, "https://api.example.com/x?r"), Header: header}
	away := &outbound.Request{Method: "GET", URL: mustURL(t, "https://api.example.com/away?there"), Header: header, SecretHeaders: []string{"Authorization"}}
	see := &outbound.Request{Method: "POST", URL: mustURL(t, "https://api.example.com/see?r"), Header: header, Body: body}
	want := map[*outbound.Request]string{
		write: `POST w [1 2] [k] [Bearer s] hb-rest/test {"a":1}`,
		read:  `GET r [1 2] [k] [Bearer s] hb-rest/test `,
		away:  `other /there [] []`,
		see:   `GET  [1 2] [k] [Bearer s] hb-rest/test `,
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 60 {
				for _, r := range []*outbound.Request{write, read, away, see} {
					ctx, cancel := context.WithCancel(t.Context())
					if i%4 == 3 {
						time.AfterFunc(time.Duration(rand.IntN(1500))*time.Microsecond, cancel)
					}
					resp, err := c.Send(ctx, r)
					cancel()
					if err != nil && i%4 == 3 && code(err) == "not a fault: context canceled" {
						continue
					}
					if err != nil || string(resp.Body) != want[r] {
						t.Errorf("%s %s: %v, %+v", r.Method, r.URL, err, resp)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if d := cmp.Diff(held, header); d != "" {
		t.Errorf("the caller's header was changed: %s", d)
	}
}
