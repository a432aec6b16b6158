package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
)

// spelt are the forms in which a value may come back, by encoders that nobody
// here wrote where there is one.
var spelt = []struct {
	name string
	f    func(string) string
}{
	{"raw", func(s string) string { return s }},
	{"query", url.QueryEscape},
	{"path", url.PathEscape},
	{"lower percent", func(s string) string {
		return lowerPercent(url.QueryEscape(s))
	}},
	{"every byte percent", func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02x", s[i])
		}
		return b.String()
	}},
	{"json", jsonString},
	{"json, slash", func(s string) string { return strings.ReplaceAll(jsonString(s), "/", `\/`) }},
	{"json, not for html", func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(s)
		return strings.TrimSuffix(b.String()[1:], "\"\n")
	}},
	{"every rune as \\u", func(s string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(s)) {
			fmt.Fprintf(&b, "\\u%04X", u)
		}
		return b.String()
	}},
	{"go source", func(s string) string {
		q := fmt.Sprintf("%+q", s)
		return q[1 : len(q)-1]
	}},
	{"html", html.EscapeString},
	{"html hex references", func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, "&#x%X;", r)
		}
		return b.String()
	}},
	{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
	{"HEX", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
	{"base64", around(base64.StdEncoding.EncodeToString)},
	{"base64 url", around(base64.URLEncoding.EncodeToString)},
	{"base64 raw url", around(base64.RawURLEncoding.EncodeToString)},
	{"base64 of json", func(s string) string { return around(base64.StdEncoding.EncodeToString)(jsonString(s)) }},
	{"base64 of query", func(s string) string { return around(base64.StdEncoding.EncodeToString)(url.QueryEscape(s)) }},
	{"base64 of html", func(s string) string { return around(base64.StdEncoding.EncodeToString)(html.EscapeString(s)) }},
	{"base64 of hex", func(s string) string { return around(base64.StdEncoding.EncodeToString)(hex.EncodeToString([]byte(s))) }},
	{"base64 twice", func(s string) string {
		e := around(base64.StdEncoding.EncodeToString)
		return e(e(s))
	}},
	{"hex of base64", func(s string) string { return hex.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s)))) }},
	{"query twice", func(s string) string { return url.QueryEscape(url.QueryEscape(s)) }},
	{"query of base64", func(s string) string { return url.QueryEscape(around(base64.StdEncoding.EncodeToString)(s)) }},
	{"query of json", func(s string) string { return url.QueryEscape(jsonString(s)) }},
	{"json in json", func(s string) string { return jsonString(jsonString(s)) }},
	{"html of json", func(s string) string { return html.EscapeString(jsonString(s)) }},
	{"MIME base64", func(s string) string { return every(around(base64.StdEncoding.EncodeToString)(s), 19, "\r\n") }},
	{"MIME base64 in json", func(s string) string {
		return jsonString(every(around(base64.StdEncoding.EncodeToString)(s), 19, "\r\n"))
	}},
	{"spaced", func(s string) string { return every(s, 1, " ") }},
	{"spaced by tabs and lines", func(s string) string { return every(s, 5, "\n\t") }},
}

func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

func jsonString(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// every puts sep behind each n bytes, but never inside a character.
func every(s string, n int, sep string) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		if i > 0 && i%n == 0 {
			b.WriteString(sep)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// around hides the value inside longer data, at an offset that depends on it.
func around(f func([]byte) string) func(string) string {
	return func(s string) string {
		n := 0
		for _, c := range []byte(s) {
			n += int(c)
		}
		return f([]byte("user:id"[:n%7] + s + "-tail"[:n%5]))
	}
}

func randomText(r *rand.Rand, n int, alphabet []rune) string {
	out := make([]rune, n)
	for i := range out {
		out[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(out)
}

var (
	plainText = []rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
	awkward   = []rune("abcXYZ019-_.~!#$%&'()*+,/:;<=>?@[]^`{|}\"\\é€😀")
)

// TestScrubMissesNothing is the law that the package promises: whatever the
// value, none of the listed spellings gets through.
func TestScrubMissesNothing(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 2_000
	}
	var missed [64]int
	var group sync.WaitGroup
	var mu sync.Mutex
	for part := range 4 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(part)))
			for range n / 4 {
				alphabet := plainText
				if r.IntN(2) == 0 {
					alphabet = awkward
				}
				secret := randomText(r, 12+r.IntN(61), alphabet)
				before, after := randomText(r, r.IntN(12), plainText), randomText(r, r.IntN(12), plainText)
				s := redact.NewScrubber([]byte(secret))
				for i, form := range spelt {
					text := form.f(secret)
					got := s.String(before + "§" + text + "§" + after)
					// Base64 keeps up to one character of a neighbour on each side.
					if !strings.Contains(got, redact.Mask) || strings.Contains(got, text) || !strings.HasPrefix(got, before+"§") || !strings.HasSuffix(got, "§"+after) {
						mu.Lock()
						if missed[i]++; missed[i] < 3 {
							t.Errorf("%s: %q in %q became %q", form.name, secret, text, got)
						}
						mu.Unlock()
					}
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d values in %d spellings", n, len(spelt))
}

func TestScrubWholeTexts(t *testing.T) {
	s := redact.NewScrubber([]byte("hunter2-hunter2"), []byte(`pa"ss/wo&rd`), []byte("short"))
	for in, want := range map[string]string{
		"":                                 "",
		"nothing here":                     "nothing here",
		"short stays":                      "short stays",
		"hunter2-hunter":                   "hunter2-hunter",
		"Bearer hunter2-hunter2":           "Bearer [redacted]",
		"hunter2-hunter2hunter2-hunter2":   "[redacted]",
		"hunter2-hunter2 hunter2-hunter2":  "[redacted] [redacted]",
		`{"hunter2-hunter2":1}`:            `{"[redacted]":1}`,
		`x=pa%22ss%2Fwo%26rd&y=1`:          `x=[redacted]&y=1`,
		`{"a":"pa\"ss\/wo\u0026rd","b":2}`: `{"a":"[redacted]","b":2}`,
		"pa&quot;ss/wo&amp;rd &amp; more":  "[redacted] &amp; more",
		"h u n t e r 2 - h u n t e r 2 !":  "[redacted] !",
		"a\r\nhunter2-\r\n hunter2\r\nb":   "a\r\n[redacted]\r\nb",
		`\u0068unter2-hunter\u0032!`:       "[redacted]!",
		"100% of hunter2%2dhunter2 & co":   "100% of [redacted] & co",
		"aHVudGVyMi1odW50ZXIy":             "[redacted]", // printf hunter2-hunter2 | base64
		"68756e746572322d68756e74657232":   "[redacted]", // … | xxd -p
		// As the end of longer data, with and without padding, nothing of its end stays.
		"Basic dTpodW50ZXIyLWh1bnRlcjI=":       "Basic dTp[redacted]", // printf u:hunter2-hunter2 | base64
		"dXM6aHVudGVyMi1odW50ZXIy":             "dXM6[redacted]",      // us:…
		"dXNlcjpodW50ZXIyLWh1bnRlcjI=":         "dXNlcjp[redacted]",   // user:…
		"dTpodW50ZXIyLWh1bnRlcjI":              "dTp[redacted]",
		"dXNlOmh1bnRlcjItaHVudGVyMg==":         "dXNlOm[redacted]", // use:…
		"dXNlOmh1bnRlcjItaHVudGVyMg":           "dXNlOm[redacted]",
		"dXNlOmh1bnRlcjItaHVudGVyMg%3D%3D&x=1": "dXNlOm[redacted]&x=1",
		"2retnuh-2retnuh":                      "2retnuh-2retnuh",
	} {
		if got := s.String(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		b := []byte(in)
		if got := string(s.Bytes(b)); got != want || string(b) != in {
			t.Errorf("Bytes(%q) = %q", in, got)
		}
	}
	// Nothing to find: the very same bytes.
	b := []byte("some \\n text with 100% & more")
	if got := s.Bytes(b); &got[0] != &b[0] {
		t.Error("copied for nothing")
	}
}

// A value at the limit is looked for, one byte less is not.
func TestScrubShortest(t *testing.T) {
	if got := redact.NewScrubber([]byte("12345678")).String("a12345678b"); got != "a[redacted]b" {
		t.Error(got)
	}
	if got := redact.NewScrubber([]byte("1234567")).String("a1234567b"); got != "a1234567b" {
		t.Error(got)
	}
	if got := redact.NewScrubber().String("anything at all"); got != "anything at all" {
		t.Error(got)
	}
}

// Escapes in any state, deep ones too, never make it fail or grow without bound.
func FuzzScrub(f *testing.F) {
	for _, s := range []string{"%", "%2", `\`, `\u`, `\ud83d\ude0`, `\ud83d`, "&#", "&#x;", "&#99999999999;", "&amp", "%25252525", "a b\tc", "\xff\xfe%zz"} {
		f.Add("secret-value", s)
	}
	f.Fuzz(func(t *testing.T, secret, text string) {
		s := redact.NewScrubber([]byte(secret))
		in := text + secret + text
		got := s.String(in)
		if len(secret) >= redact.MinSecret && !strings.Contains(got, redact.Mask) {
			t.Errorf("%q in %q became %q", secret, in, got)
		}
		if len(secret) < redact.MinSecret && got != in {
			t.Errorf("%q became %q", in, got)
		}
		if len(got) > len(in)*2+len(redact.Mask) {
			t.Errorf("%d bytes became %d", len(in), len(got))
		}
	})
}

func TestScrubWipe(t *testing.T) {
	secret := []byte("hunter2-hunter2")
	s := redact.NewScrubber(secret)
	clear(secret) // the caller's copy is its own
	if got := s.String("hunter2-hunter2"); got != redact.Mask {
		t.Error(got)
	}
	s.Wipe()
	if a, b := s.String("abc"), s.String("hunter2-hunter2"); a != redact.Mask || b != redact.Mask {
		t.Errorf("%q %q", a, b)
	}
	if got := s.String(""); got != "" {
		t.Error(got)
	}
}

// body is like an API's answer: objects, white space, escapes and percents.
func body(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "{\"id\": %d, \"name\": \"Item \\\"%d\\\"\", \"url\": \"https:\\/\\/api.example.com/v1/items/%d?q=a%%20b&x=1\", \"text\": \"Lorem ipsum dolor sit amet, consetetur\\r\\nsadipscing elitr\"},\n", i, i, i)
	}
	return b.Bytes()[:size]
}

func BenchmarkScrub5MiB(b *testing.B) {
	s := redact.NewScrubber([]byte("sk_live_51HcQ2KLkjsdf9834kjsdf"), []byte("client-secret-0123456789/+="), []byte("user@example.com:hunter2hunter2"))
	text := body(5 << 20)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Bytes(text)
	}
}

func BenchmarkNewScrubber(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		redact.NewScrubber([]byte("client-secret-0123456789/+=")).Wipe()
	}
}

// The promise is 100 ms for 5 MiB; a loaded machine gets ten times that.
func TestScrubIsFast(t *testing.T) {
	s := redact.NewScrubber([]byte("sk_live_51HcQ2KLkjsdf9834kjsdf"), []byte("client-secret-0123456789/+="), []byte("user@example.com:hunter2hunter2"))
	text := body(5 << 20)
	start := time.Now()
	s.Bytes(text)
	if d := time.Since(start); d > time.Second {
		t.Errorf("5 MiB took %v", d)
	}
}
