package recipe

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPathResolve(t *testing.T) {
	doc := decode(t, `{
		"id": 9007199254740993, "last-name": "L", "hydra:member": [1], "@type": "T", "$count": 2, "24h": 3,
		"a.b": {"c d": 4}, "": 5, "it's": 6, "#key": 7, "größe": 8, "null": null, "+1": 9,
		"location": {"name": "Oslo"},
		"tags": ["x", "y", "z"],
		"users": [{"n": "a", "age": 1.0}, {"n": "b", "age": 2}, {"age": 3}, null, {"n": null}],
		"map": {"one": {"v": 1}, "two": {"v": 2}, "one": {"v": 3}},
		"doubled": 1, "doubled": 2,
		"big": [{"n": 12345678901234567890, "v": "exact"}, {"n": 1.2345678901234567891e19, "v": "near"}],
		"@odata": {"nextLink": "wrong"}, "@odata.nextLink": "right"
	}`)
	tests := []struct {
		path string
		want []string
	}{
		{"id", []string{`9007199254740993`}},
		{"@.id", []string{`9007199254740993`}},
		{".id", []string{`9007199254740993`}},
		{"$.id", []string{`9007199254740993`}},
		{"last-name", []string{`"L"`}},
		{"hydra:member", []string{`[1]`}},
		{"@type", []string{`"T"`}},
		{"$.@type", []string{`"T"`}},
		{"$count", []string{`2`}},
		{"24h", []string{`3`}},
		{"['a.b']['c d']", []string{`4`}},
		{`["a.b"]['c d']`, []string{`4`}},
		{"['']", []string{`5`}},
		{`['it\'s']`, []string{`6`}},
		{`["it's"]`, []string{`6`}},
		{`['it\u0027s']`, []string{`6`}},
		{"['#key']", []string{`7`}},
		{"größe", []string{`8`}},
		{"null", []string{`null`}}, // null is a value, not a missing one
		{"['+1']", []string{`9`}},
		{"location.name", []string{`"Oslo"`}},
		{"location['name']", []string{`"Oslo"`}},
		{"location.nope.deeper", nil},
		{"id.x", nil},
		{"id[0]", nil},
		{"Location", nil}, // case matters
		{"tags[0]", []string{`"x"`}},
		{"tags[-1]", []string{`"z"`}},
		{"tags[-3]", []string{`"x"`}},
		{"tags[3]", nil},
		{"tags[-4]", nil},
		{"tags[*]", []string{`"x"`, `"y"`, `"z"`}},
		{"tags.*", []string{`"x"`, `"y"`, `"z"`}},
		{"tags[1:]", []string{`"y"`, `"z"`}},
		{"tags[:-1]", []string{`"x"`, `"y"`}},
		{"tags[2:1]", nil},
		{"tags[-9:9]", []string{`"x"`, `"y"`, `"z"`}},
		{"tags[:]", []string{`"x"`, `"y"`, `"z"`}},
		{"location[0:1]", nil}, // a slice is for arrays
		{"users[*].n", []string{`"a"`, `"b"`, `null`}},
		{"users[?@.n=='b'].age", []string{`2`}},
		{"users[?@.age==1]", []string{`{"n":"a","age":1.0}`}},
		{"users[?@.age==20e-1].n", []string{`"b"`}},
		{"users[?@.age=='1']", nil}, // no coercion
		{"users[?@.n==null]", []string{`{"n":null}`}},
		{"users[?@.nope==null]", nil}, // missing is not null
		{"users[?@['n'] == \"a\"].age", []string{`1.0`}},
		{"map[*].v", []string{`2`, `3`}}, // of doubled members the last, in its place
		{"map.one.v", []string{`3`}},
		{"map[?@.v==1]", nil},
		{"doubled", []string{`2`}},
		{"big[?@.n==12345678901234567890].v", []string{`"exact"`}},
		{"@odata.nextLink", []string{`"wrong"`}},
		{"['@odata.nextLink']", []string{`"right"`}},
		{"[*].name", []string{`"Oslo"`}},
		{"#index", nil},
		{"#key", nil},
	}
	for _, tt := range tests {
		p := path(t, tt.path)
		if p.String() != tt.path {
			t.Errorf("String() = %q, want %q", p, tt.path)
		}
		got := p.Resolve(doc)
		if len(got)+len(tt.want) > 0 && !cmp.Equal(texts(got), tt.want) {
			t.Errorf("%s gives %v, want %v", tt.path, texts(got), tt.want)
		}
		first, ok := p.First(doc)
		if ok != (len(tt.want) > 0) || ok && string(Encode(first)) != tt.want[0] {
			t.Errorf("First of %s gives %v %v", tt.path, first, ok)
		}
	}
	for _, s := range []string{"@", "$"} {
		if got := path(t, s).Resolve(doc); len(got) != 1 || !cmp.Equal(got[0], doc) {
			t.Errorf("%s is not the whole value", s)
		}
	}
}

func TestPathFacts(t *testing.T) {
	tests := []struct {
		path        string
		root, multi bool
		special     string
	}{
		{"a", false, false, ""},
		{"$.a", true, false, ""},
		{"$", true, false, ""},
		{"@", false, false, ""},
		{"$count", false, false, ""},
		{"$count.a", false, false, ""},
		{"$[0]", true, false, ""},
		{"a[*]", false, true, ""},
		{"a[0:1].b", false, true, ""},
		{"a[?@.b==1]", false, true, ""},
		{"a[-1]", false, false, ""},
		{"#key", false, false, "#key"},
		{"#index", false, false, "#index"},
		{"['#key']", false, false, ""},
	}
	for _, tt := range tests {
		p := path(t, tt.path)
		if p.FromRoot() != tt.root || p.Multi() != tt.multi || p.Special() != tt.special || p.IsZero() {
			t.Errorf("%s: root %v multi %v special %q zero %v", tt.path, p.FromRoot(), p.Multi(), p.Special(), p.IsZero())
		}
	}
	var zero Path
	if v, ok := zero.First("x"); !zero.IsZero() || len(zero.Resolve("x")) != 0 || ok || v != nil {
		t.Error("the zero Path names something")
	}
	if !path(t, "a.b").Equal(path(t, "a.b")) || path(t, "a.b").Equal(path(t, "a['b']")) {
		t.Error("Equal compares what is written")
	}
}

func TestPathErrors(t *testing.T) {
	tests := []struct {
		path, code string
		offset     int
		message    string // its start
	}{
		{"", "PATH_SYNTAX", 1, "the path is empty at character 1"},
		{"$.items[0", "PATH_SYNTAX", 10, "']' missing at character 10"},
		{"$.items['a'", "PATH_SYNTAX", 12, "']' missing at character 12"},
		{"$.items[", "PATH_SYNTAX", 9, "']' missing at character 9"},
		{"$.items['a", "PATH_SYNTAX", 11, "closing ' missing"},
		{"ä.ö[x]", "PATH_SYNTAX", 5, "an index, '*', a quoted name or a filter expected, not 'x',"},
		{"$.", "PATH_SYNTAX", 3, "a name missing at character 3"},
		{"a..b", "PATH_SYNTAX", 2, "'..' is not supported"},
		{"$..a", "PATH_SYNTAX", 2, "'..' is not supported"},
		{"a.", "PATH_SYNTAX", 3, "a name missing"},
		{"a b", "PATH_SYNTAX", 2, "'.' or '[' expected, not ' ',"},
		{" a", "PATH_SYNTAX", 1, "a name expected, not ' ',"},
		{"a ", "PATH_SYNTAX", 2, "'.' or '[' expected, not ' ',"},
		{"a\u00a0b", "PATH_SYNTAX", 2, "'.' or '[' expected"},
		{"a\u200bb", "PATH_SYNTAX", 2, "'.' or '[' expected"}, // invisible, and a trap
		{"*", "PATH_SYNTAX", 1, "a name expected"},
		{"a[01]", "PATH_SYNTAX", 3, "an index has no leading zero"},
		{"a[-0]", "PATH_SYNTAX", 3, "an index has no leading zero"},
		{"a[-]", "PATH_SYNTAX", 3, "an index is a whole number"},
		{"a[9007199254740992]", "PATH_SYNTAX", 3, "the index is too large"},
		{"a[99999999999999999999]", "PATH_SYNTAX", 3, "the index is too large"},
		{"a[1:2:1]", "PATH_SYNTAX", 6, "a slice has no step"},
		{"a[0,1]", "PATH_SYNTAX", 4, "several selectors in one bracket are not supported"},
		{"a['b','c']", "PATH_SYNTAX", 6, "several selectors"},
		{"a['\x01']", "PATH_SYNTAX", 4, "a control character must be escaped"},
		{`a['\x']`, "PATH_SYNTAX", 4, "unknown escape"},
		{`a['\ud800']`, "PATH_SYNTAX", 4, `bad \u escape`},
		{`a['\u12']`, "PATH_SYNTAX", 4, `bad \u escape`},
		{"a[?(@.b==1)]", "PATH_SYNTAX", 4, "'@' expected in the filter"},
		{"a[?@.b]", "PATH_SYNTAX", 7, "'==' expected in the filter"},
		{"a[?@.b!=1]", "PATH_SYNTAX", 7, "'==' expected in the filter"},
		{"a[?@.b==x]", "PATH_SYNTAX", 9, "a string, number, true, false or null expected"},
		{"a[?@.b==01]", "PATH_SYNTAX", 9, "a string, number"},
		{"a[?@.b==1 && @.c==2]", "PATH_SYNTAX", 11, "']' expected"},
		{"a[?@.b.c==1]", "PATH_SYNTAX", 7, "'==' expected in the filter"},
		{"length(a)", "PATH_SYNTAX", 7, "'.' or '[' expected, not '(',"},
		{"#keys", "PATH_SYNTAX", 1, "only #key and #index start with '#'"},
		{"#key.a", "PATH_SYNTAX", 5, "#key stands alone"},
		{"a\xff", "PATH_SYNTAX", 1, "the path is not UTF-8"},
		{strings.Repeat("ä", 513), "PATH_TOO_LONG", 513, "the path has 513 characters, at most 512 are allowed"},
		{"a" + strings.Repeat("[0]", 64), "PATH_TOO_LONG", 194, "the path has more than 64 segments"},
	}
	for _, tt := range tests {
		_, err := ParsePath(tt.path)
		var e *PathError
		if !errors.As(err, &e) {
			t.Errorf("%q: error = %v, want a PathError", clip(tt.path), err)
			continue
		}
		if e.Code != tt.code || e.Offset != tt.offset || !strings.HasPrefix(e.Message, tt.message) || e.Error() != e.Message {
			t.Errorf("%q: %s at %d: %s\nwant %s at %d: %s", clip(tt.path), e.Code, e.Offset, e.Message, tt.code, tt.offset, tt.message)
		}
	}
	for _, ok := range []string{strings.Repeat("ä", 512), "a" + strings.Repeat("[0]", 63), "a[9007199254740991]", "a[-9007199254740991:]"} {
		if _, err := ParsePath(ok); err != nil {
			t.Errorf("%q, at the limit: %v", clip(ok), err)
		}
	}
}

func TestSameNumber(t *testing.T) {
	tests := []struct {
		a, b string
		same bool
	}{
		{"1", "1.0", true},
		{"1", "1e0", true},
		{"100", "1E+2", true},
		{"0.01", "1e-2", true},
		{"-0", "0", true},
		{"0e9", "0.00", true},
		{"10", "1", false},
		{"0.1", "0.01", false},
		{"-1", "1", false},
		{"101", "11", false},
		{"9007199254740993", "9007199254740992", false},
		{"9007199254740993", "9007199254740993.0", true},
		{"1e99999999999999999999", "1e99999999999999999999", true},
		{"1e99999999999999999999", "10e99999999999999999998", false},
		{"1e400", "10e399", true},
	}
	for _, tt := range tests {
		if got := sameNumber(tt.a, tt.b); got != tt.same {
			t.Errorf("%s and %s: same is %v", tt.a, tt.b, got)
		}
	}
}
