package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// specialAddresses are those that a strict daemon may not connect to, from the
// file that internal/outbound keeps.
func specialAddresses(t *testing.T) (out []netip.Addr) {
	t.Helper()
	text, err := os.ReadFile("../outbound/testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); words[0] == "closed" || words[0] == "private" {
			for _, word := range words[1:] {
				out = append(out, netip.MustParseAddr(word))
			}
		}
	}
	return out
}

// Promise 1: no special address by any way into a whole daemon: a saved wrapper,
// a call, a redirect, the link to a next page, a token endpoint, an example to
// learn from; each with the address itself and, where that can be, with a name
// that has it. Whatever passed would be accepted by a trap on this machine.
func TestNoWayToASpecialAddress(t *testing.T) {
	t.Parallel()
	all := specialAddresses(t)
	if len(all) < 120 {
		t.Fatalf("only %d addresses", len(all))
	}
	step := soak.Rounds(17, 1)
	tr := newTrap(t)
	var special atomic.Pointer[netip.Addr] // what the names lead to
	var flips, served, dials atomic.Int64
	n := newInternet(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		served.Add(1)
		to := r.URL.Query().Get("to")
		rw.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(rw, r, to, http.StatusFound)
		case "/page":
			_, _ = fmt.Fprintf(rw, `{"items":[{"n":1}],"next":%q}`, to)
		default:
			_, _ = io.WriteString(rw, `{"items":[{"n":2}],"next":null}`)
		}
	}))
	n.server.Config.SetKeepAlivesEnabled(false) // each request resolves its name anew
	seams := n.seams()
	seams.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		switch {
		case host == "special.example.com", host == "flip.example.com" && flips.Add(1)%2 == 0:
			return []netip.Addr{*special.Load()}, nil
		case host == "example.com", host == "flip.example.com":
			return []netip.Addr{public}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	seams.DialAddr = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
		if a.Addr() == public {
			return (&net.Dialer{}).DialContext(ctx, "tcp", n.server.Listener.Addr().String())
		}
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, "tcp", tr.Addr().String())
	}
	w := newWorld(t, nil, seams)
	w.options.Key = func(context.Context, bool) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }
	w.stop()
	w.start()
	person := control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})

	const named = "https://special.example.com/x"
	w.create(get("named", named))
	w.create(authed("minted", "https://example.com/", "o"))
	w.create(`{"schemaVersion":1,"id":"redirect","name":"R","request":{"method":"GET","url":"https://example.com/redirect","query":{"to":"{{to}}"}},"inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}`)
	const paged = `,"response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"N":"n"},"pagination":{"type":"link","nextUrl":"next"}}`
	for id, host := range map[string]string{"page": "example.com", "flip": "flip.example.com"} {
		w.create(`{"schemaVersion":1,"id":"` + id + `","name":"P","request":{"method":"GET","url":"https://` + host + `/page","query":{"to":"{{to}}"}},"inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}` + paged + `}`)
	}
	// The same ways with an address that is public work: a refusal below is one of the address.
	special.Store(&public)
	for id, args := range map[string]string{"named": `{}`, "redirect": `{"to":"` + named + `"}`, "page": `{"to":"/2"}`, "flip": `{"to":"/2"}`} {
		if a := w.run(id, args); !a.OK {
			t.Fatalf("%s with a public address: %s", id, a.Raw)
		}
	}

	var tried int
	refused := func(way string, a *answer, codes ...string) {
		tried++
		if a.OK || !slices.Contains(codes, a.Code) {
			t.Errorf("%s by %s: want %v, got %s", special.Load(), way, codes, a.Raw)
		}
	}
	put := func(tokenURL string) error {
		_, err := person.PutSecret(t.Context(), minted("o", "client-secret-1", tokenURL, "body", "example.com"))
		return err
	}
	addresses := 0
	for i := 0; i < len(all); i += step {
		addresses++
		address := all[i]
		special.Store(&address)
		literal := "https://" + address.String() + "/x"
		if address.Is6() {
			literal = "https://[" + address.String() + "]/x"
		}
		const code = "POLICY_PRIVATE_ADDRESS"
		arg := func(to string) string { b, _ := json.Marshal(map[string]string{"to": to}); return string(b) }

		refused("save", w.once("saved", get("saved", literal), `{}`), code) // a document is a document; the policy is of the daemon
		refused("call", w.post("/wrap/test", `{"dryRun":false,"wrapper":`+get("v", literal)+`}`), code)
		refused("call, by name", w.run("named", `{}`), code)
		refused("redirect", w.run("redirect", arg(literal)), "POLICY_REDIRECT")
		refused("redirect, by name", w.run("redirect", arg(named)), "POLICY_REDIRECT")
		refused("derive", w.post("/wrap/derive", fmt.Sprintf(`{"url":%q}`, literal)), code)
		refused("derive, by name", w.post("/wrap/derive", fmt.Sprintf(`{"url":%q}`, named)), code)
		refused("derive, by redirect", w.post("/wrap/derive", fmt.Sprintf(`{"url":%q}`, "https://example.com/redirect?to="+url.QueryEscape(literal))), "POLICY_REDIRECT")
		// What was read of the first page is shown, and no second page is.
		for way, run := range map[string][2]string{"next page": {"page", literal}, "next page, by name": {"page", named}, "next page, name changed": {"flip", "/2"}} {
			tried++
			flips.Store(0)
			if a := w.run(run[0], arg(run[1])); string(a.Records) != `[{"N":1}]` {
				t.Errorf("%s by %s: %s", address, way, a.Raw)
			}
		}
		tried++
		var f *fault.Error
		if err := put(literal); !errors.As(err, &f) || f.Code != code {
			t.Errorf("%s as a token endpoint: %v", address, err)
		}
		if err := put(named); err != nil { // a name is looked up when it is needed
			t.Fatal(err)
		}
		before := served.Load()
		refused("token endpoint, by name", w.run("minted", `{}`), code)
		if served.Load() != before {
			t.Errorf("%s: a call went out without its token", address)
		}
	}
	if dials.Load() != 0 {
		t.Errorf("%d dials to special addresses", dials.Load())
	}
	accepted := tr.hits.Load()
	tr.silent(t, "special addresses")
	soak.Measured(t, "%d special addresses by 6 ways in, 13 with names: %d tries, %d connections", addresses, tried, accepted)
}

// Promise 4 for a whole daemon: a rule that a person adds opens its place for the
// calls that follow, and one that is taken away closes it for the next, in turn,
// 500 times each, although the API keeps its connections open all the time.
func TestRulesDoNotOutliveTheirCalls(t *testing.T) {
	t.Parallel()
	up := newParty(t, nil)
	w := newWorld(t, nil, outbound.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	w.create(get("w", up.at("api.test")+"/x"))
	_, port, _ := net.SplitHostPort(up.Listener.Addr().String())
	rule := &control.AllowRule{Host: "api.test", Port: port, HTTP: true}
	rounds := soak.Rounds(30, 500)
	for range rounds {
		if a := w.run("w", `{}`); a.Code != "POLICY_SCHEME" && a.Code != "POLICY_PRIVATE_ADDRESS" {
			t.Fatalf("without the rule: %s", a.Raw)
		}
		if _, err := w.d.Allow(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		if a := w.run("w", `{}`); !a.OK {
			t.Fatalf("with the rule: %s", a.Raw)
		}
		if _, err := w.d.Disallow(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
	}
	hits := len(up.take())
	if hits != rounds {
		t.Errorf("%d requests arrived, %d were allowed", hits, rounds)
	}
	soak.Measured(t, "%d calls with a rule that opens a private place and %d without it, in turn, in one daemon: %d crossings", rounds, rounds, hits-rounds)
}

// Promise 19: 200 numbers, up to 2^200 and with up to 17 digits behind and before
// the point, reach the API byte by byte as the caller wrote them: in the path, in
// the query, in a header, as a value of the body, inside a text and inside an
// argument of many levels.
func TestNumbersArriveExact(t *testing.T) {
	t.Parallel()
	const seed = 19
	random := rand.New(rand.NewPCG(seed, 200))
	up := newWire(t, `{}`)
	w := newWorld(t, private, outbound.Options{})
	w.create(`{"schemaVersion":1,"id":"n","name":"N","request":{"method":"POST","url":"` + up.url() + `/{{n}}","query":{"n":"{{n}}"},"headers":{"X-N":"{{n}}"},"body":{"n":"{{n}}","t":"no. {{n}}","o":"{{o}}"}},
	 "inputSchema":{"type":"object","properties":{"n":{"type":"number"},"o":{"type":"object"}}}}`)
	w.create(`{"schemaVersion":1,"id":"i","name":"I","request":{"method":"POST","url":"` + up.url() + `/{{n}}","query":{"n":"{{n}}"},"headers":{"X-N":"{{n}}"},"body":{"n":"{{n}}","t":"no. {{n}}","o":"{{o}}"}},
	 "inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"o":{"type":"object"}}}}`)

	var integers, fractions []string
	two := big.NewInt(2)
	for _, bits := range []int64{53, 63, 64, 65, 100, 127, 128, 199, 200} { // where a float, an int64 and a uint64 end, and beyond
		power := new(big.Int).Exp(two, big.NewInt(bits), nil)
		for d := int64(-1); d <= 1; d++ {
			x := new(big.Int).Add(power, big.NewInt(d))
			integers = append(integers, x.String(), new(big.Int).Neg(x).String())
		}
	}
	digits := func(n int) string { // n digits, the first and the last of them not 0
		var b strings.Builder
		for i := range n {
			first := 0
			if i == 0 || i == n-1 {
				first = 1
			}
			b.WriteByte(byte('0' + first + random.IntN(10-first)))
		}
		return b.String()
	}
	for len(integers) < 100 {
		integers = append(integers, digits(17+random.IntN(44))) // up to 60 digits: 2^200 has 61
	}
	fractions = append(fractions, "0.1", "0.30000000000000004", "1.10", "30.00", "-0.0", "0.0", "9007199254740993.0", "0.00000000000000001", "1.7976931348623157", "4.9406564584124654")
	for len(fractions) < 100 {
		whole := 1 + random.IntN(16)
		switch random.IntN(3) {
		case 0:
			fractions = append(fractions, digits(whole)+"."+digits(17-whole))
		case 1:
			fractions = append(fractions, "-"+digits(17)+"."+digits(17))
		case 2:
			fractions = append(fractions, "0."+digits(17))
		}
	}
	exact := 0
	for id, list := range map[string][]string{"i": integers, "n": fractions} {
		for _, number := range list {
			object := `{"a":[` + number + `,{"b":` + number + `}]}`
			a := w.run(id, `{"n":`+number+`,"o":`+object+`}`)
			got := up.take()
			if !a.OK || len(got) != 1 {
				t.Errorf("seed %d, %s: sent %q, answer %s", seed, number, got, a.Raw)
				continue
			}
			line, body := head(got[0])
			want := `{"n":` + number + `,"t":"no. ` + number + `","o":` + object + `}`
			if line != "POST /"+number+"?n="+number+" HTTP/1.1" || body != want || !strings.Contains(got[0], "\nX-N: "+number+"\n") {
				t.Errorf("seed %d, %s: sent\n%s", seed, number, got[0])
				continue
			}
			exact++
		}
	}
	if exact != 200 {
		t.Errorf("%d of 200 numbers arrived as they were written", exact)
	}
	soak.Measured(t, "%d integers up to 2^200 + 1 and %d fractions of 17 digits (seed %d), in 6 places of a request each: %d arrived byte by byte", len(integers), len(fractions), seed, exact)
}
