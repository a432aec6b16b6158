package recipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const number1 = json.Number("1")

func decode(t testing.TB, s string) Value {
	t.Helper()
	v, err := Decode([]byte(s), DecodeLimits{})
	if err != nil {
		t.Fatalf("Decode(%s): %v", s, err)
	}
	return v
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestDecode(t *testing.T) {
	tests := []struct {
		name, in string
		want     Value
	}{
		{"null", "null", nil},
		{"true", "true", true},
		{"false", " false\n", false},
		{"string", `"tab\t\u00e9\ud83d\ude00\/"`, "tab\té😀/"},
		{"number", "30.00", json.Number("30.00")},
		{"big id", "9007199254740993", json.Number("9007199254740993")},
		{"exponent", "-1E+2", json.Number("-1E+2")},
		{"beyond float64", "1e400", json.Number("1e400")},
		{"empty object", "{}", Object{}},
		{"empty array", "[ ]", Array{}},
		{
			"order", `{"z":1,"a":{"y":null,"b":[1,2]},"m":""}`,
			Object{{"z", number1}, {"a", Object{{"y", nil}, {"b", Array{number1, json.Number("2")}}}}, {"m", ""}},
		},
		{"duplicates stay in their places", `{"a":1,"b":2,"a":3}`, Object{{"a", number1}, {"b", json.Number("2")}, {"a", json.Number("3")}}},
		{"byte order mark", "\ufeff{\"a\":1}", Object{{"a", number1}}},
		{"byte order mark inside a string", "\"\ufeffx\"", "\ufeffx"},
		{"lone high surrogate", `"high \ud83d alone"`, "high \ufffd alone"},
		{"lone low surrogate", `"low \udc00 alone"`, "low \ufffd alone"},
		{"swapped surrogates", `"\udc00\ud800"`, "\ufffd\ufffd"},
		{"lone surrogate in a key", `{"\ud800":1}`, Object{{"\ufffd", number1}}},
		{"NUL", `"a\u0000b"`, "a\x00b"},
		{"empty key", `{"":1}`, Object{{"", number1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, decode(t, tt.in)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	v := decode(t, `{"a":1,"a":3}`)
	if got, ok := v.(Object).Get("a"); !ok || got != json.Number("3") {
		t.Errorf("Get of a doubled key gives %v %v, want the last", got, ok)
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := []struct {
		name, in string
		lim      DecodeLimits
		want     DecodeError // Message: its start
	}{
		{"empty", "", DecodeLimits{}, DecodeError{Kind: "empty", Message: "the text is empty"}},
		{"white space", " \t\r\n", DecodeLimits{}, DecodeError{Kind: "empty", Offset: 4, Message: "the text is empty"}},
		{"only a mark", "\ufeff", DecodeLimits{}, DecodeError{Kind: "empty", Offset: 3, Message: "the text is empty"}},
		{"truncated", `{"items":[{"id":1,"name":"ok"},{"id":2,"na`, DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 42, Message: "the text ends too early"}},
		{"truncated behind a mark", "\ufeff[1", DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 5, Message: "the text ends too early"}},
		{"NaN", `{"value":NaN}`, DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 9, Message: "invalid character 'N'"}},
		{"Infinity", `[-Infinity]`, DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 2, Message: "invalid character 'I'"}},
		{"leading zero", `[01]`, DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 2, Message: "invalid character '1'"}},
		{"trailing comma", `[1,]`, DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 2, Message: "invalid character ','"}},
		{"comment", `/* c */ 1`, DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 0, Message: "invalid character '/'"}},
		{"single quotes", `{'a':1}`, DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 1, Message: "invalid character '\\''"}},
		{"control character in a string", "\"a\nb\"", DecodeLimits{}, DecodeError{Kind: "syntax", Offset: 2, Message: "invalid character '\\n'"}},
		{"trailing", `{"a":1} {"b":2}`, DecodeLimits{}, DecodeError{Kind: "trailing", Offset: 8, Message: "more text after the JSON document"}},
		{"trailing comma outside", `1,`, DecodeLimits{}, DecodeError{Kind: "trailing", Offset: 1, Message: "more text after"}},
		{"invalid UTF-8", "[\"a\xffb\"]", DecodeLimits{}, DecodeError{Kind: "utf8", Offset: 3, Message: "invalid UTF-8"}},
		{"latin-1", "\"caf\xe9\"", DecodeLimits{}, DecodeError{Kind: "utf8", Offset: 4, Message: "invalid UTF-8"}},
		{"encoded surrogate", "\"\xed\xa0\x80\"", DecodeLimits{}, DecodeError{Kind: "utf8", Offset: 1, Message: "invalid UTF-8"}},
		{"UTF-16 with a mark", "\xff\xfe{\x00}\x00", DecodeLimits{}, DecodeError{Kind: "utf8", Offset: 0, Message: "the text is UTF-16"}},
		{"UTF-16 without a mark", "{\x00}\x00", DecodeLimits{}, DecodeError{Kind: "utf8", Offset: 0, Message: "the text is UTF-16"}},
		{"one byte too many", `"ab"`, DecodeLimits{Bytes: 3}, DecodeError{Kind: "size", Message: "the text has 4 bytes, 3 are allowed"}},
		{"201 levels", nested(201), DecodeLimits{}, DecodeError{Kind: "depth", Offset: 200, Message: "more than 200 arrays and objects"}},
		{"500 levels", nested(500), DecodeLimits{}, DecodeError{Kind: "depth", Offset: 200, Message: "more than 200 arrays and objects"}},
		{"own depth", `{"a":[[]]}`, DecodeLimits{Depth: 2}, DecodeError{Kind: "depth", Offset: 6, Message: "more than 2 arrays and objects"}},
		{"duplicate", `{"a":1,"b":2,"a":3}`, DecodeLimits{UniqueKeys: true}, DecodeError{Kind: "duplicate", Offset: 13, Path: "a", Message: `key "a" appears twice`}},
		{"duplicate written otherwise", `{"a":1,"\u0061":3}`, DecodeLimits{UniqueKeys: true}, DecodeError{Kind: "duplicate", Offset: 7, Path: "a", Message: `key "a" appears twice`}},
		{"duplicate deep inside", `{"x":[0,{"a b":{"c":1,"d":2,"c":3}}]}`, DecodeLimits{UniqueKeys: true}, DecodeError{Kind: "duplicate", Offset: 28, Path: "x[1]['a b'].c", Message: `key "c" appears twice`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Decode([]byte(tt.in), tt.lim)
			var e *DecodeError
			if !errors.As(err, &e) || v != nil {
				t.Fatalf("value %v, error %v, want a DecodeError alone", v, err)
			}
			if !strings.HasPrefix(e.Message, tt.want.Message) {
				t.Errorf("message %q, want %q", e.Message, tt.want.Message)
			}
			e.Message = tt.want.Message
			if d := cmp.Diff(tt.want, *e); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	for in, lim := range map[string]DecodeLimits{
		nested(200):         {},
		`"ab"`:              {Bytes: 4},
		`{"a":[]}`:          {Depth: 2},
		`{"a":{"a":1}}`:     {UniqueKeys: true},
		`[{"a":1},{"a":1}]`: {UniqueKeys: true},
		nested(1000):        {Depth: 1000},
	} {
		if _, err := Decode([]byte(in), lim); err != nil {
			t.Errorf("%s with %+v: %v", clip(in), lim, err)
		}
	}
}

// A wide object is checked for doubled keys as well as a narrow one.
func TestDecodeUniqueKeysOfWideObjects(t *testing.T) {
	for _, n := range []int{2, 15, 16, 17, 18, 100, 20_000} {
		for _, first := range []int{0, n / 2, n - 1} {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `"k%d":1,`, i)
			}
			in := fmt.Sprintf(`{%s"k%d":2}`, b.String(), first)
			_, err := Decode([]byte(in), DecodeLimits{UniqueKeys: true})
			var e *DecodeError
			if !errors.As(err, &e) || e.Kind != "duplicate" || e.Path != fmt.Sprintf("k%d", first) {
				t.Errorf("%d keys and k%d again: %v", n, first, err)
			}
			if _, err := Decode([]byte(fmt.Sprintf(`{%s"other":2}`, b.String())), DecodeLimits{UniqueKeys: true}); err != nil {
				t.Errorf("%d different keys: %v", n+1, err)
			}
		}
	}
}

func TestEncodeKeepsTheText(t *testing.T) {
	for _, s := range []string{
		`{"z":30.00,"a":[1e400,-0,1E+2,9007199254740993,12345678901234567890],"z":null}`,
		`"<a href=\"x\">&\u0000\b\f\n\r\t\\ é 😀 "`,
		`{"":{},"x":[[],{}]}`, `true`, `false`, `null`, `""`,
	} {
		if got := string(Encode(decode(t, s))); got != s {
			t.Errorf("%s became %s", s, got)
		}
	}
	if got := string(Encode("a\xffb")); got != `"a`+"\ufffd"+`b"` {
		t.Errorf("a broken string became %s", got)
	}
}

func TestEncodeRefusesOtherTypes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an int was encoded")
		}
	}()
	Encode(Array{1})
}

func TestMapStrings(t *testing.T) {
	in := decode(t, `{"a":["x",{"b":"y"},1,null,true]}`)
	got := MapStrings(in, strings.ToUpper)
	if want := `{"A":["X",{"B":"Y"},1,null,true]}`; string(Encode(got)) != want {
		t.Errorf("got %s, want %s", Encode(got), want)
	}
	if want := `{"a":["x",{"b":"y"},1,null,true]}`; string(Encode(in)) != want {
		t.Errorf("the argument changed: %s", Encode(in))
	}
}

func TestFieldPath(t *testing.T) {
	tests := []struct{ base, key, want string }{
		{"response.fields", "Price", "response.fields.Price"},
		{"response.fields", "Unit price", "response.fields['Unit price']"},
		{"response.fields", "it's", `response.fields['it\'s']`},
		{"response.fields", `a\b`, `response.fields['a\\b']`},
		{"response.fields", "a.b", "response.fields['a.b']"},
		{"response.fields", "", "response.fields['']"},
		{"request.headers", "X-Api-Key", "request.headers.X-Api-Key"},
		{"query", "$filter", "query.$filter"},
		{"", "id", "id"},
		{"", "a b", "['a b']"},
	}
	for _, tt := range tests {
		if got := FieldPath(tt.base, tt.key); got != tt.want {
			t.Errorf("FieldPath(%q, %q) = %s, want %s", tt.base, tt.key, got, tt.want)
		}
	}
}
