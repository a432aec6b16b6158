package paging

import (
	"strings"
	"testing"
)

func TestLinkHeader(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		rel   string
		want  string
	}{
		// P-02 and the examples of RFC 8288 section 3.5
		{"plain", []string{`<https://h.test/?page=2>; rel="next", <https://h.test/?page=9>; rel="last"`}, "next", "https://h.test/?page=2"},
		{"second of two", []string{`<https://h.test/?page=2>; rel="next", <https://h.test/?page=9>; rel="last"`}, "last", "https://h.test/?page=9"},
		{"not there", []string{`<https://h.test/?page=2>; rel="prev"`}, "next", ""},
		{"no header", nil, "next", ""},
		{"empty header", []string{"", " , ,"}, "next", ""},
		{"title", []string{`<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter"`}, "previous", "http://example.com/TheBook/chapter2"},
		{"relative and title*", []string{`</TheBook/chapter2>; rel="previous"; title*=UTF-8'de'letztes%20Kapitel, </TheBook/chapter4>; rel="next"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel`}, "next", "/TheBook/chapter4"},
		{"several relations", []string{`<http://example.org/>; rel="start http://example.net/relation/other"`}, "http://example.net/relation/other", "http://example.org/"},
		{"extension relation", []string{`<http://example.org/>; rel="start http://example.net/relation/other"`}, "start", "http://example.org/"},
		{"several in a line", []string{`<https://example.org/>; rel="start", <https://example.org/index>; rel="index"`}, "index", "https://example.org/index"},
		{"anchor: of another resource", []string{`</terms>; rel="next"; anchor="#foo", </b>; rel=next`}, "next", "/b"},
		{"empty reference", []string{`<>; rel="next"`}, "next", ""},
		// several header lines
		{"several lines", []string{`</a>; rel=prev`, `</b>; rel=next`}, "next", "/b"},
		{"first of several", []string{`</a>; rel=next`, `</b>; rel=next`}, "next", "/a"},
		// quoting
		{"comma and semicolon in quotes", []string{`</a>; title="x, <y>; rel=next"; rel=prev, </b>; rel="next"`}, "next", "/b"},
		{"escaped quote", []string{`</a>; title="x\", </no>; rel=\"next\""; rel=prev, </b>; rel=next`}, "next", "/b"},
		{"escaped backslash", []string{`</a>; title="x\\", </b>; rel=next`}, "next", "/b"},
		{"escaped letters in the relation", []string{`</a>; rel="n\e\xt"`}, "next", "/a"},
		{"comma and semicolon in the reference", []string{`</a?ids=1,2;3>; rel=next`}, "next", "/a?ids=1,2;3"},
		// white space and case
		{"blanks", []string{"  < /a >\t;  REL\t=  \"Next\"  ,"}, "nEXT", "/a"},
		{"no blanks", []string{`</p>;rel=prev,</a>;rel=next;x=y`}, "next", "/a"},
		{"token", []string{`</a>; rel=next`}, "next", "/a"},
		{"token with blanks behind", []string{`</a>; rel=next , </b>; rel=last`}, "next", "/a"},
		{"another relation that begins alike", []string{`</a>; rel="next-page"`}, "next", ""},
		{"parameter without a value", []string{`</a>; nofollow; rel=next`}, "next", "/a"},
		{"empty parameters", []string{`</a>;; ;rel=next;`}, "next", "/a"},
		{"only the first rel counts", []string{`</a>; rel=prev; rel=next`}, "next", ""},
		{"an empty first rel", []string{`</a>; rel=""; rel=next`}, "next", ""},
		{"rev is no rel", []string{`</a>; rev=next`}, "next", ""},
		// Sentry
		{"without results", []string{`</a>; rel="previous"; results="true", </b>; rel="next"; results="false"; cursor="0:0:0"`}, "next", ""},
		{"with results", []string{`</b>; rel="next"; results="true"; cursor="0:0:0"`}, "next", "/b"},
		{"results before rel, a token", []string{`</b>; Results=False; rel="next"`}, "next", ""},
		// broken, and yet something can be read
		{"no brackets", []string{`/a; rel=next, </b>; rel=next`}, "next", "/b"},
		{"open bracket", []string{`</a; rel=next`}, "next", ""},
		{"open quote", []string{`</a>; rel="next`}, "next", "/a"},
		{"open quote and a backslash", []string{`</a>; rel="next\`}, "next", ""},
		{"text behind a closing quote", []string{`</a>; rel="next"x; y=z`}, "next", "/a"},
		{"text behind the reference", []string{`</a> x; rel=next`}, "next", "/a"},
		{"no semicolon", []string{`</a> rel=next`}, "next", "/a"},
		{"a comma too many", []string{`,,</a>; rel=next,,`}, "next", "/a"},
		{"an equals sign too many", []string{`</a>; =; rel==next`}, "next", ""},
		{"control characters stay in the reference", []string{"</a\x00>; rel=next"}, "next", "/a\x00"},
	} {
		if got := linkTarget(c.lines, c.rel); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A header of any length is read once.
func TestLinkHeaderIsLinear(t *testing.T) {
	for _, piece := range []string{"<", "<>;", `<a>;rel="`, `\`, ";=", ",", `"`, "<a>;rel=x,", "x;"} {
		linkTarget([]string{strings.Repeat(piece, 1<<20/len(piece))}, "next") // a quadratic reader would need minutes
	}
}

// FuzzLinkHeader: whatever stands in the header, the reference found is a part
// of it; and a well-formed link is found behind it as if it stood alone.
func FuzzLinkHeader(f *testing.F) {
	for _, s := range []string{
		`<https://h.test/?page=2>; rel="next", <https://h.test/?page=9>; rel="last"`,
		`</TheBook/chapter2>; rel="previous"; title*=UTF-8'de'letztes%20Kapitel`,
		`</b>; rel="next"; results="false"; cursor="0:0:0"`,
		`</a>; title="x\", </no>; rel=\"next\""; rel=prev`, `</a>; rel="next`, `<`, `;;==,,"\`, "< >;rel =\t\"a b\"",
	} {
		f.Add(s, "/p?a=1,2;3", "x")
	}
	f.Fuzz(func(t *testing.T, s, target, title string) {
		got := linkTarget([]string{s}, "next")
		if !strings.Contains(s, got) {
			t.Errorf("%q is not in %q", got, s)
		}
		if strings.ContainsAny(target, ">") || strings.Trim(target, " \t") != target || target == "" {
			return
		}
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(title)
		good := "<" + target + `>; title="` + quoted + `"; rel="other next"`
		if got := linkTarget([]string{good}, "NEXT"); got != target {
			t.Errorf("%q gives %q", good, got)
		}
		want := got
		if want == "" && !strings.Contains(strings.ToLower(s), "next") {
			want = target // nothing before it that could be the next page
		}
		if got := linkTarget([]string{s, good}, "next"); want != "" && got != want {
			t.Errorf("%q, %q gives %q, want %q", s, good, got, want)
		}
	})
}
