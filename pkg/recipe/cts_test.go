package recipe

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// beyondRFC are the selectors that RFC 9535 refuses and we read on purpose.
var beyondRFC = map[string]string{
	"$.1": "names have a wider alphabet: keys such as 24h_change exist",
}

// outside gives the reason why a valid RFC 9535 selector is not in our subset,
// by looks alone and not by way of our parser. "" means that it is inside.
func outside(selector string) string {
	// The content of quotes decides nothing.
	bare := regexp.MustCompile(`'(\\.|[^'\\])*'|"(\\.|[^"\\])*"`).ReplaceAllString(selector, "''")
	const ws, name = `[ \t\r\n]*`, `(?:\.[^\[\]().=!<>&|, \t\r\n]+|\[''\])`
	const literal = `(?:''|true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)`
	filter := regexp.MustCompile(`^\[` + ws + `\?` + ws + `@` + name + ws + `==` + ws + literal + ws + `\]$`)
	for _, b := range regexp.MustCompile(`\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]`).FindAllString(bare, -1) {
		if regexp.MustCompile(`\?`).MatchString(b) {
			if !filter.MatchString(b) {
				return "a filter that is not one equality with a literal"
			}
			continue
		}
		if regexp.MustCompile(`,`).MatchString(b) {
			return "several selectors in one bracket"
		}
		if regexp.MustCompile(`:.*:`).MatchString(regexp.MustCompile(`\s`).ReplaceAllString(b, "")) {
			return "a slice with a step"
		}
	}
	switch {
	case regexp.MustCompile(`\.\.`).MatchString(bare):
		return "descendants"
	case regexp.MustCompile(`(^\$|[\]\w])\s+[\[.]`).MatchString(bare):
		return "white space between segments"
	}
	return ""
}

// The compliance suite of RFC 9535: what our subset admits must give the
// suite's result, what is outside must be refused.
func TestComplianceSuite(t *testing.T) {
	data, err := os.ReadFile("testdata/jsonpath-cts/cts.json")
	if err != nil {
		t.Fatal(err)
	}
	tests, _ := decode(t, string(data)).(Object).Get("tests")
	counts := map[string]int{}
	for _, test := range tests.(Array) {
		c := test.(Object)
		get := func(key string) Value {
			v, _ := c.Get(key)
			return v
		}
		name, selector := get("name").(string), get("selector").(string)
		p, err := ParsePath(selector)
		if get("invalid_selector") == true {
			switch {
			case err != nil:
				counts["invalid and refused"]++
			case beyondRFC[selector] == "":
				t.Errorf("%s: %q is invalid, but was read", name, selector)
			default:
				counts["read on purpose"]++
			}
			continue
		}
		if reason := outside(selector); reason != "" {
			if err == nil {
				t.Errorf("%s: %q was read, though it has %s", name, selector, reason)
			}
			counts["outside: "+reason]++
			continue
		}
		if err != nil {
			t.Errorf("%s: %q was refused: %v", name, selector, err)
			continue
		}
		counts["admitted and right"]++
		wanted := Array{get("result")}
		if several, ok := get("results").(Array); ok {
			wanted = several
		}
		got := texts(p.Resolve(get("document")))
		right := false
		for _, w := range wanted {
			right = right || cmp.Equal(got, texts(w.(Array)))
		}
		if !right {
			t.Errorf("%s: %q gives %v, want one of %v", name, selector, got, texts(wanted))
		}
		if first, ok := p.First(get("document")); ok != (len(got) > 0) || ok && string(Encode(first)) != got[0] {
			t.Errorf("%s: First gives %v %v, Resolve %v", name, first, ok, got)
		}
	}
	total := 0
	for what, n := range counts {
		t.Logf("%4d %s", n, what)
		total += n
	}
	if total != 703 || counts["admitted and right"] < 120 {
		t.Errorf("%d of 703 cases, %d admitted, want at least 120", total, counts["admitted and right"])
	}
}
