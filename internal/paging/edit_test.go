package paging_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Only what is replaced or added changes in a query; everything else keeps its
// bytes and its place.
func TestApplyQuery(t *testing.T) {
	for _, c := range []struct{ query, name, value, want string }{
		{"", "p", "2", "p=2"},
		{"a=1", "p", "2", "a=1&p=2"},
		{"p=1&a=1", "p", "2", "p=2&a=1"},
		{"a=1&p=1&b=%2f%2F+|~", "p", "2", "a=1&p=2&b=%2f%2F+|~"},
		{"p=1&a=1&p=3&p", "p", "2", "p=2&a=1"},
		{"p", "p", "2", "p=2"},
		{"p=", "p", "2", "p=2"},
		{"P=1", "p", "2", "P=1&p=2"},
		{"pp=1", "p", "2", "pp=1&p=2"},
		{"a=p=1", "p", "2", "a=p=1&p=2"},
		// other spellings of the same name, kept
		{"%70=1", "p", "2", "%70=2"},
		{"$skip=0&$top=5", "$skip", "5", "$skip=5&$top=5"},
		{"%24skip=0", "$skip", "5", "%24skip=5"},
		{"page[n]=1", "page[n]", "2", "page[n]=2"},
		{"page%5bn%5D=1", "page[n]", "2", "page%5bn%5D=2"},
		{"a+b=1", "a b", "2", "a+b=2"},
		{"a%2Bb=1", "a b", "2", "a%2Bb=1&a%20b=2"},
		// new names are escaped like values
		{"", "$skip", "5", "%24skip=5"},
		{"", "page[number]", "a b+c&d=é~", "page%5Bnumber%5D=a%20b%2Bc%26d%3D%C3%A9~"},
		// odd pieces stay, a final "&" is used
		{"&a=1&&b=2", "p", "2", "&a=1&&b=2&p=2"},
		{"a=1&", "p", "2", "a=1&p=2"},
		{"a=1&&", "p", "2", "a=1&&p=2"},
		{"&", "p", "2", "&p=2"},
		{"=1&a", "", "2", "=2&a"},
		{"%zz=1&a;b=2", "p", "2", "%zz=1&a;b=2&p=2"},
		{"%zz=1", "%zz", "2", "%zz=2"},
	} {
		u := &url.URL{Scheme: "https", Host: "h.test", Path: "/a/b", RawPath: "/a%2Fb", RawQuery: c.query}
		before := u.String()
		got, body, err := paging.Edit{Query: []paging.Pair{{c.name, c.value}}}.Apply(u, nil, nil)
		if err != nil || body != nil {
			t.Fatal(body, err)
		}
		if want := "https://h.test/a%2Fb?" + c.want; got.RawQuery != c.want && got.String() != want || u.String() != before {
			t.Errorf("%q with %s=%s: got %s, want %s", c.query, c.name, c.value, got, want)
		}
	}
}

// An edit that changes nothing makes an equal URL and hands the body back.
func TestApplyNothing(t *testing.T) {
	for _, s := range []string{"https://h.test", "https://h.test/?", "https://h.test/a%2fb?x=%7E&&=#f", "https://h.test/a//b/../c?q"} {
		u := mustURL(t, s)
		got, _, err := paging.Edit{}.Apply(u, func(string, string) { t.Error("a header was set") }, nil)
		if err != nil || got == u {
			t.Fatal("not a copy", err)
		}
		if d := cmp.Diff(u, got); d != "" {
			t.Errorf("%s: %s", s, d)
		}
	}
}

func TestApplyURLAndHeaders(t *testing.T) {
	next := mustURL(t, "https://h.test/y?q=%7e|&limit=5")
	e := paging.Edit{URL: next, Header: []paging.Pair{{"x-page", "2"}, {"X-Other", "a"}}}
	h := http.Header{"X-Page": {"1", "7"}, "Accept": {"application/json"}}
	got, _, err := e.Apply(mustURL(t, "https://h.test/x?limit=9"), h.Set, nil)
	if err != nil || got.String() != "https://h.test/y?q=%7e|&limit=5" || got == next {
		t.Error(got, err)
	}
	want := http.Header{"X-Page": {"2"}, "X-Other": {"a"}, "Accept": {"application/json"}}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
}

func TestApplyBody(t *testing.T) {
	for _, c := range []struct {
		body, want string // want "": refused
		path       []string
	}{
		{`{}`, `{"a":[1]}`, []string{"a"}},
		{`{"b":1.0,"a":{"x":1},"c":1e2}`, `{"b":1.0,"a":[1],"c":1e2}`, []string{"a"}},
		{`{"v":{"x":1,"after":"old","y":2},"z":3}`, `{"v":{"x":1,"after":[1],"y":2},"z":3}`, []string{"v", "after"}},
		{`{"z":3}`, `{"z":3,"v":{"after":[1]}}`, []string{"v", "after"}},
		{`{"v":null}`, `{"v":{"after":[1]}}`, []string{"v", "after"}},
		{`null`, `{"v":{"w":{"after":[1]}}}`, []string{"v", "w", "after"}},
		{`{"a.b":1}`, `{"a.b":[1]}`, []string{"a.b"}},
		{`[]`, "", []string{"a"}},
		{`"text"`, "", []string{"a"}},
		{`{"v":[]}`, "", []string{"v", "after"}},
		{`{"v":{"w":7}}`, "", []string{"v", "w", "after"}},
	} {
		body := num(c.body)
		e := paging.Edit{Body: []paging.Place{{c.path, recipe.Array{num("1")}}}}
		_, got, err := e.Apply(mustURL(t, "https://h.test/"), nil, body)
		if c.want == "" {
			if !fault.Is(err, "WRAPPER_INVALID") {
				t.Errorf("%s: %s, %v", c.body, recipe.Encode(got), err)
			}
			continue
		}
		if err != nil || string(recipe.Encode(got)) != c.want {
			t.Errorf("%s: got %s %v, want %s", c.body, recipe.Encode(got), err, c.want)
		}
		if string(recipe.Encode(body)) != c.body {
			t.Errorf("%s became %s", c.body, recipe.Encode(body))
		}
	}
}

// Of duplicate members the last one counts, so it is the one that is set.
func TestApplyBodyDuplicates(t *testing.T) {
	body := recipe.Object{{Key: "a", Value: "1"}, {Key: "b", Value: true}, {Key: "a", Value: "2"}}
	_, got, err := paging.Edit{Body: []paging.Place{{[]string{"a"}, "3"}}}.Apply(mustURL(t, "https://h.test/"), nil, body)
	if want := `{"a":"1","b":true,"a":"3"}`; err != nil || string(recipe.Encode(got)) != want {
		t.Errorf("%s %v", recipe.Encode(got), err)
	}
}

func TestApplyBodyRefusal(t *testing.T) {
	body := num(`{"variables":{"page":[1]}}`)
	_, _, err := paging.Edit{Body: []paging.Place{{[]string{"variables", "page", "after"}, "x"}}}.Apply(mustURL(t, "https://h.test/"), nil, body)
	want := `"variables.page.after" cannot be set: "variables.page" in the request's body is an array, not an object`
	if f := fault.From(err); f.Field != "response.pagination" || f.Details[0].Message != want || f.Details[0].Code != "PAGING_KEY" {
		t.Errorf("%+v", f)
	}
}
