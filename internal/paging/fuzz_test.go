package paging_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// FuzzNext: whatever an answer says about its next page, the next request keeps
// the origin and the host as the wrapper writes it, has no user information, no
// fragment, no line break in a header, and the wrapper's own parameters; and a
// walk whose answers stay the same ends without asking for anything twice.
func FuzzNext(f *testing.F) {
	for _, s := range []string{
		`"?page=2"`, `"https://h.test:443/x#f"`, `"http://H.test./y"`, `"//evil.test/"`, `"https://u@h.test/"`, `"a%2Fb/\u00f6"`, `"\\\\evil.test"`,
		`{"href":"/x{?a}","templated":true}`, `{"url":"x"}`, `{"a":1,"b c":"d&e","":null}`, `[1,"a"]`, `"a b\r\nX: y"`, `9007199254740993`, `"*"`, `true`, `null`,
	} {
		for kind := range byte(6) {
			f.Add(kind, s, s, "5", 3)
		}
	}
	var plans []recipe.Pagination
	for _, block := range []string{
		`{"type":"link","nextUrl":"next","total":"total"}`,
		`{"type":"link","nextUrl":"header:Next","total":"header:Total"}`,
		`{"type":"cursor","next":"next","cursorParam":"c","limitParam":"limit","pageSize":3}`,
		`{"type":"cursor","next":"next","cursorParam":"X-C","in":"header","hasMore":"total"}`,
		`{"type":"cursor","next":"next","cursorParam":"a.c","in":"body","hasMore":"next","hasMoreWhen":false}`,
		`{"type":"cursor","next":"next","cursorParam":"*","limitParam":"limit","pageSize":3}`,
	} {
		plans = append(plans, plan(f, block))
	}
	base := mustURL(f, "https://h.test/a%2Fb/x?status=open&limit=1&c=*&e=%7e|")
	body := recipe.Object{{Key: "keep", Value: num("1.0")}}
	f.Fuzz(func(t *testing.T, kind byte, first, second, total string, items int) {
		pagination := plans[int(kind)%len(plans)]
		w := paging.New(pagination, base, 25, 0)
		sent := map[string]bool{}
		edit, more := w.First(), true
		for n := 0; more; n++ {
			u, out, err := checkedApply(t, edit, base, body)
			if err != nil {
				t.Fatal(err)
			}
			if pagination.Type == "cursor" && !strings.HasPrefix(u.RawQuery, "status=") {
				t.Fatalf("parameters are gone: %s", u)
			}
			key := u.String() + string(recipe.Encode(out))
			for _, h := range edit.Header {
				key += h.Name + h.Value
			}
			if sent[key] && n > 0 && pagination.CursorParam != "*" {
				t.Fatalf("asked twice for %s", key)
			}
			sent[key] = true
			text := first
			if n > 0 {
				text = second
			}
			edit, more = w.Next(fuzzPage(text, total, items, u))
			if r := w.Report(); more && r.Stopped != "" || !more && r.Stopped == "" || r.Pages != n+1 || r.Pages > r.Cap {
				t.Fatalf("%+v", r)
			}
		}
		// A relative link such as "deeper/" is another page each time; the cap ends it.
		if r := w.Report(); r.Pages > 3 && pagination.Type == "cursor" {
			t.Fatalf("%d pages of the same answer", r.Pages)
		}
	})
}

func checkedApply(t *testing.T, e paging.Edit, base *url.URL, body recipe.Value) (*url.URL, recipe.Value, error) {
	t.Helper()
	u, out, err := e.Apply(base, func(name, value string) {
		if strings.ContainsFunc(name+value, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
			t.Fatalf("header %q: %q", name, value)
		}
	}, body)
	if err != nil {
		return nil, nil, err
	}
	if !hostname.SameOrigin(u, base) || u.Scheme != base.Scheme || u.Host != base.Host || u.User != nil || u.Fragment != "" {
		t.Fatalf("leads to %q", u)
	}
	again, err := url.Parse(u.String())
	if err != nil || again.Host != base.Host || again.RawQuery != u.RawQuery || again.EscapedPath() != u.EscapedPath() {
		t.Fatalf("%q reads as %q, %v", u, again, err)
	}
	if keep, _ := out.(recipe.Object).Get("keep"); keep == nil && len(e.Body) == 0 {
		t.Fatalf("body %s", recipe.Encode(out))
	}
	return u, out, nil
}

// fuzzPage has text as its next page: as JSON when it is JSON, else as a
// string, and in a header.
func fuzzPage(text, total string, items int, u *url.URL) paging.Page {
	read := func(s string) recipe.Value {
		v, err := recipe.Decode([]byte(s), recipe.DecodeLimits{})
		if err != nil {
			return strings.ToValidUTF8(s, "\uFFFD")
		}
		return v
	}
	answer := recipe.Object{{Key: "next", Value: read(text)}, {Key: "total", Value: read(total)}}
	return paging.Page{
		URL: u, Items: items, Header: http.Header{"Next": {text}, "Total": {total}},
		Lookup: func(p recipe.Path) recipe.Value {
			v, _ := p.First(answer)
			return v
		},
	}
}
