package daemon_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// An encoding is a way by which an API sends back what it was sent.
type encoding struct {
	name string
	make func(v string) string // as the text of a JSON value, before JSON's own escapes
}

func backslashU(v string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(v)) {
		fmt.Fprintf(&b, `\u%04x`, u)
	}
	return b.String()
}

func everyPercent(v string) string {
	var b strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&b, "%%%02x", v[i])
	}
	return b.String()
}

func numericHTML(v string) string {
	var b strings.Builder
	for _, r := range v {
		fmt.Fprintf(&b, "&#%d;", r)
	}
	return b.String()
}

// encodings are the 16 in which the tests of this file echo a credential. With
// Base64 at its three alignments, the last two of which begin inside of other data.
var encodings = []encoding{
	{"plain", func(v string) string { return v }},
	{"base64", func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) }},
	{"base64, one byte before", func(v string) string { return base64.StdEncoding.EncodeToString([]byte("x" + v + "y")) }},
	{"base64, two bytes before", func(v string) string { return base64.StdEncoding.EncodeToString([]byte("xx" + v)) }},
	{"base64url", func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte("user:" + v)) }},
	{"hex", func(v string) string { return hex.EncodeToString([]byte(v)) }},
	{"HEX", func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) }},
	{"percent", url.QueryEscape},
	{"percent of everything", everyPercent},
	{"percent twice", func(v string) string { return url.QueryEscape(url.QueryEscape(v)) }},
	{"JSON in JSON", func(v string) string { b, _ := json.Marshal(map[string]string{"sent": v}); return string(b) }},
	{`\u escapes`, backslashU},
	{"HTML", html.EscapeString},
	{"HTML numbers", numericHTML},
	{"base64 of hex", func(v string) string { return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString([]byte(v)))) }},
	{"spread by spaces", func(v string) string { return strings.Join(strings.Split(v, ""), " ") }},
}

// sentBack reports how v, which was sent back as e, is in text: in any spelling
// that shows knows, or just as it was sent back.
func sentBack(text, v string, e encoding) string {
	if how := shows(text, v); how != "" {
		return how
	}
	made := e.make(v)
	escaped, _ := json.Marshal(made)
	for _, s := range []string{made, string(escaped[1 : len(escaped)-1])} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(s)) {
			return e.name
		}
	}
	return ""
}

// echoValues are the values of one round of TestEchoedCredential.
type echoValues struct{ value, user, password, app, token, client string }

// randomValues are others of the kinds that people have: letters and digits, or
// with every character that a header may carry. A Basic user has no colon.
func randomValues(r *rand.Rand) (v echoValues) {
	text := func(not string) string {
		out := make([]byte, 12+r.IntN(40))
		awkward := r.IntN(2) == 0
		for i := range out {
			for out[i] = 0; out[i] == 0; {
				c := byte('!' + r.IntN('~'-'!'+1))
				if plain := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'; (plain || awkward) && !strings.Contains(not, string(c)) {
					out[i] = c
				}
			}
		}
		return string(out)
	}
	return echoValues{text(""), text(":"), text(""), text(""), text(`"\`), text("")}
}

// shows reports the first spelling of v that is in text: as it is, JSON-escaped,
// percent-encoded, in hex or in Base64 at any alignment.
func shows(text, v string) string {
	escaped, _ := json.Marshal(v)
	for name, s := range map[string]string{
		"plain": v, "JSON": string(escaped[1 : len(escaped)-1]), "percent": url.QueryEscape(v), "path": url.PathEscape(v),
		"all percent": everyPercent(v), "hex": hex.EncodeToString([]byte(v)), "HTML": html.EscapeString(v), "numbers": numericHTML(v),
		"u": backslashU(v), "base32": base32.StdEncoding.EncodeToString([]byte(v))[:16],
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(s)) {
			return name
		}
	}
	for shift := range 3 {
		padded := append(make([]byte, shift), v...)
		from, to := (shift*8+5)/6, len(padded)*8/6
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			if strings.Contains(text, e.EncodeToString(padded)[from:to]) {
				return "base64 " + strconv.Itoa(shift)
			}
		}
	}
	return ""
}

// D29, S-07: an API that sends back the credential, in every place and every
// encoding, tells the caller nothing: Markdown, records, error, paging, URL,
// audit, log. A case is one value in one encoding at one place; a long run has
// more than 20,000, with other values in each round.
func TestEchoedCredential(t *testing.T) {
	t.Parallel()
	const seed = 16
	random := rand.New(rand.NewPCG(seed, seed))
	var now atomic.Pointer[echoValues]
	s := newSafe(t)
	// What was sent is taken from the request, as such an API does.
	got := func(r *http.Request) []string {
		_, v, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		out := []string{v}
		if pair, err := base64.StdEncoding.DecodeString(v); err == nil && strings.Contains(string(pair), ":") {
			u, p, _ := strings.Cut(string(pair), ":")
			out = []string{v, string(pair), u, p}
		}
		if id := r.Header.Get("X-App-Id"); id != "" {
			out = append(out, id)
		}
		return out
	}
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	up := newParty(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		e := encodings[n]
		var texts []string
		for _, v := range got(r) {
			texts = append(texts, e.make(v))
		}
		all := strings.Join(texts, " | ")
		switch r.URL.Path {
		case "/value":
			fmt.Fprintf(w, `{"items":[{"echo":%s,"id":1}]}`, quoted(all))
		case "/key":
			fmt.Fprintf(w, `{"items":[{%s:1,"in":{%s:2},"echo":"x"}]}`, quoted(all), quoted(all))
		case "/escaped": // every character as JSON's \u
			fmt.Fprintf(w, `{"items":[{"echo":"%s"}]}`, backslashU(all))
		case "/header":
			w.Header().Set("X-Echo", url.PathEscape(all))
			w.Header().Set("Www-Authenticate", `Bearer error="`+url.PathEscape(all)+`"`)
			_, _ = io.WriteString(w, `{"items":[{"echo":"x"}]}`)
		case "/400":
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"message":%s,"errors":[{"field":%s,"message":%s}]}`, quoted("bad "+all), quoted(all), quoted(all))
		case "/401":
			w.WriteHeader(401)
			fmt.Fprintf(w, `{"error":%s,"error_description":%s}`, quoted(all), quoted(all))
		case "/500text":
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(500)
			_, _ = io.WriteString(w, all)
		case "/type":
			w.Header().Set("Content-Type", url.PathEscape(all)+"/x")
			_, _ = io.WriteString(w, "not JSON")
		case "/html":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>"+all+"</title>")
		case "/next":
			fmt.Fprintf(w, `{"items":[{"echo":"x"}],"next":%s}`, quoted("/value?n="+strconv.Itoa(n)+"&echo="+url.QueryEscape(all)))
		case "/nextbad":
			fmt.Fprintf(w, `{"items":[{"echo":"x"}],"next":%s}`, quoted("http://"+all+"/"))
		case "/next400":
			fmt.Fprintf(w, `{"items":[{"echo":"x"}],"next":%s}`, quoted("/400?n="+strconv.Itoa(n)))
		case "/link":
			w.Header().Set("Link", `</value?n=`+strconv.Itoa(n)+`&e=`+url.QueryEscape(all)+`>; rel="next"`)
			_, _ = io.WriteString(w, `{"items":[{"echo":"x"}]}`)
		case "/redirect":
			http.Redirect(w, r, "/landed/"+url.PathEscape(all)+"?n="+strconv.Itoa(n)+"&echo="+url.QueryEscape(all), http.StatusFound)
		case "/redirect400":
			http.Redirect(w, r, "/400?n="+strconv.Itoa(n)+"&echo="+url.QueryEscape(all), http.StatusFound)
		case "/badredirect":
			w.Header().Set("Location", "ftp://"+url.PathEscape(all)+".example/")
			w.WriteHeader(302)
		case "/reported":
			fmt.Fprintf(w, `{"items":[],"failed":{"message":%s}}`, quoted(all))
		default:
			_, _ = io.WriteString(w, `{"items":[{"echo":"x"}]}`)
		}
	})
	mint := newParty(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600}`, now.Load().token)
	})
	const fields = `"fields":{"Echo":"echo"}`
	recipes := map[string]string{
		"":      ``,
		"next":  `,"response":{"schemaVersion":1,"select":"$.items","mode":"table","record":{"echo":"echo"},` + fields + `,"pagination":{"type":"link","nextUrl":"next"}}`,
		"link":  `,"response":{"schemaVersion":1,"select":"$.items","mode":"table",` + fields + `,"pagination":{"type":"link","nextUrl":"header:Link"}}`,
		"error": `,"response":{"schemaVersion":1,"select":"$.items","mode":"table",` + fields + `,"error":"$.failed"}`,
	}
	paths := map[string]string{
		"/value": "", "/key": "", "/escaped": "", "/header": "", "/400": "", "/401": "", "/500text": "", "/type": "", "/html": "",
		"/next": "next", "/nextbad": "next", "/next400": "next", "/link": "link", "/redirect": "", "/redirect400": "", "/badredirect": "", "/reported": "error",
	}
	id := func(auth, path string) string { return auth + strings.ReplaceAll(path, "/", ".") }
	rounds := soak.Rounds(1, 10)
	var answers, cases, hits atomic.Int64
	var all []string
	for round := range rounds {
		v := echoValues{value, "ada-lovelace-1815", `pa:ss/w"ord+7%`, "app-id/0123456789+", "minted/tok+en~0123456789", "client-secret/1+2%3"}
		if round > 0 {
			v = randomValues(random)
		}
		now.Store(&v)
		s.put(bearer("static", v.value, "a.test"))
		s.put(&control.SecretPut{Name: "basic", Kind: "basic", AllowedHosts: []string{"a.test"}, Values: [][]byte{[]byte(v.user), []byte(v.password)}})
		s.put(&control.SecretPut{
			Name: "two", Kind: "static", AllowedHosts: []string{"a.test"}, Values: [][]byte{[]byte(v.value), []byte(v.app)},
			Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}, {Name: "X-App-Id"}},
		})
		s.put(minted("oauth", v.client, mint.at("a.test")+"/", "body", "a.test"))
		pair := v.user + ":" + v.password
		known := map[string][]string{
			"static": {v.value}, "basic": {v.user, v.password, pair, base64.StdEncoding.EncodeToString([]byte(pair))}, "two": {v.value, v.app},
			"oauth": {v.token, v.client},
		}
		for auth, secrets := range known {
			all = append(all, secrets...)
			for path, rec := range paths {
				if round == 0 {
					s.create(fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"method":"GET","url":%q,"query":{"n":"{{n}}"},"auth":%q},
						"inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}%s}`, id(auth, path), id(auth, path), up.at("a.test")+path, auth, recipes[rec]))
				}
				var group sync.WaitGroup
				for n, e := range encodings {
					group.Go(func() {
						a, err := s.send("/wrap/run", fmt.Sprintf(`{"id":%q,"args":{"n":%d}}`, id(auth, path), n))
						if err != nil || a.Code == "BUSY" {
							t.Errorf("%s %s, %s: %v %+v", auth, path, e.name, err, a)
							return
						}
						answers.Add(1)
						for _, v := range secrets {
							cases.Add(1)
							if how := sentBack(a.Raw, v, e); how != "" {
								hits.Add(1)
								t.Errorf("round %d (seed %d), %s %s, %s: %q is there as %s: %s", round, seed, auth, path, e.name, v, how, a.Raw)
							}
						}
					})
				}
				group.Wait()
			}
		}
	}
	trail, log := s.request(http.MethodGet, "/wrap/audit?limit=1000", "").Raw, s.log.String()
	s.stop()
	file, err := os.ReadFile(s.cfg.AuditPath) // all rows; the route shows the newest
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{"the trail": trail + string(file), "the log": log, "store.db": storeBytes(t, s.world)}
	s.start()
	for _, v := range all {
		for place, text := range places {
			cases.Add(1)
			if how := shows(text, v); how != "" {
				hits.Add(1)
				t.Errorf("%q is in %s as %s", v, place, how)
			}
		}
	}
	for _, e := range encodings { // and what is there is found
		for _, v := range all {
			if sentBack("before "+e.make(v)+" after", v, e) == "" {
				t.Errorf("the search misses %q as %s", v, e.name)
			}
		}
	}
	if soak.Long() && cases.Load() < 20_000 {
		t.Errorf("%d cases, want at least 20,000", cases.Load())
	}
	soak.Measured(t, "%d answers with %d values in %d encodings: %d cases, %d hits; %d bytes of log", answers.Load(), len(all), len(encodings), cases.Load(), hits.Load(), len(log))
}

// A value of digits alone, echoed as a JSON number, is masked too.
func TestEchoedNumber(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	const v = "4815162342108"
	up := newParty(t, func(w http.ResponseWriter, r *http.Request) {
		_, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		_, _ = fmt.Fprintf(w, `{"key":%s,"list":[%s,1],"big":%s000}`, got, got, got)
	})
	s.put(bearer("key", v, "a.test"))
	a := s.once("w", authed("w", up.at("a.test")+"/", "key"), `{}`)
	if shows(a.Raw, v) != "" {
		t.Errorf("%s is there: %s", v, a.Raw)
	}
}

// An API that puts the credential into a host name: resolvers and the trail
// would see it there, in the lower case of host names.
func TestEchoedInAHostName(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"tok-abcdef0123456789", "Tok-AbCdEf0123456789"} {
		s := newSafe(t)
		up := newParty(t, nil)
		up.handle = func(w http.ResponseWriter, r *http.Request) {
			_, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			switch r.URL.Path {
			case "/redirect":
				w.Header().Set("Location", up.at(got+".test")+"/end")
				w.WriteHeader(302)
			case "/nowhere":
				w.Header().Set("Location", "http://"+got+".invalid/")
				w.WriteHeader(302)
			case "/refused":
				w.Header().Set("Location", "http://"+got+".example:22/")
				w.WriteHeader(302)
			default:
				_, _ = io.WriteString(w, `{"ok":true}`)
			}
		}
		s.put(bearer("key", v, "a.test"))
		for _, path := range []string{"/redirect", "/nowhere", "/refused"} {
			a := s.once("w", authed("w", up.at("a.test")+path, "key"), `{}`)
			if how := shows(a.Raw, v); how != "" {
				t.Errorf("%s: %s is there: %s", path, v, a.Raw)
			}
		}
		if trail := s.request(http.MethodGet, "/wrap/audit?limit=500", "").Raw; shows(trail, v) != "" {
			t.Errorf("%s is in the trail: %s", v, trail)
		}
		if shows(s.log.String(), v) != "" {
			t.Errorf("%s is in the log", v)
		}
	}
}
