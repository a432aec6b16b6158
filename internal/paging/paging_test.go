package paging_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// plan reads a pagination block in a recipe that shows $.items.
func plan(t testing.TB, block string) recipe.Pagination {
	t.Helper()
	return parse(t, `{"schemaVersion":1,"select":"$.items","fields":{"ID":"id"},"pagination":`+block+`}`).Pagination
}

// body is a page whose answer is this JSON, with so many items.
func body(t *testing.T, text string, items int) paging.Page {
	t.Helper()
	v, err := recipe.Decode([]byte(text), recipe.DecodeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(p recipe.Path) recipe.Value {
		first, _ := p.First(v)
		return first
	}
	return paging.Page{Lookup: lookup, Items: items}
}

func sameReport(t *testing.T, name string, want, got paging.Report) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(paging.Report{}, "Note")); d != "" {
		t.Errorf("%s: (-want +got)\n%s", name, d)
	}
}

// next gives the URL of the request after one page, or the reason to stop.
func next(t *testing.T, p recipe.Pagination, request string, page paging.Page) string {
	t.Helper()
	base := mustURL(t, request)
	w := paging.New(p, base, 0, 0)
	w.First()
	edit, more := w.Next(page)
	if !more {
		r := w.Report()
		if r.Note != "" {
			return r.Stopped + ": " + r.Note
		}
		return r.Stopped
	}
	u, _, err := edit.Apply(base, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return u.String()
}

// P-01, P-09 and U-04: where a next link may lead. The page came from the
// second URL when there is one.
func TestNextLink(t *testing.T) {
	const (
		badURL  = "bad_next: the next link is not a URL"
		badHost = "bad_next: the next link is not an http or https URL with a valid host"
	)
	long := strings.Repeat("x", 16<<10)
	for _, c := range []struct{ request, page, next, want string }{
		// P-01: relative
		{"https://h.test/v1/items", "", `"/v1/items?page=2"`, "https://h.test/v1/items?page=2"},
		{"https://h.test/v1/items?a=b", "", `"?page=2"`, "https://h.test/v1/items?page=2"},
		{"https://h.test/v1/items", "https://h.test/v2/list/", `"?page=2"`, "https://h.test/v2/list/?page=2"},
		{"https://h.test/v1/items", "", `"../v2/items"`, "https://h.test/v2/items"},
		{"https://h.test/v1/items", "", `" /v1/items?page=2\n"`, "https://h.test/v1/items?page=2"},
		{"https://h.test/a;b/c?d", "", `";x=1/../y"`, "https://h.test/a;b/y"},
		// U-04: the prefix stays
		{"https://h.test/api/v3/items", "", `"items?page=2"`, "https://h.test/api/v3/items?page=2"},
		{"https://h.test/api/v3/items", "", `"./items?page=2"`, "https://h.test/api/v3/items?page=2"},
		// bytes stay
		{"https://h.test/x", "", `"/a%2Fb/ö?q=%C3%B6|{}&s=a+b&e=&f"`, "https://h.test/a%2Fb/%C3%B6?q=%C3%B6|{}&s=a+b&e=&f"},
		{"https://h.test/x", "", `"https://h.test/a%2Fb c/{d}|e%2f?x=//"`, "https://h.test/a%2Fb%20c/%7Bd%7D%7Ce%2f?x=//"},
		{"https://h.test/x", "", `"?to=https://h.test/{a}"`, "https://h.test/x?to=https://h.test/{a}"},
		{"https://h.test/x", "", `"/y//z^/%2F"`, "https://h.test/y//z%5E/%2F"},
		{"https://h.test/x", "", `"https://h.test?p={2}"`, "https://h.test?p={2}"},
		// fragment and spelling of the host
		{"https://h.test/x", "", `"https://H.TEST:443/x?p=2#top"`, "https://h.test/x?p=2"},
		{"https://h.test:443/x", "", `"https://h.test./x?p=2"`, "https://h.test:443/x?p=2"},
		{"https://bücher.test/x", "", `"https://xn--bcher-kva.test/x?p=2"`, "https://b%C3%BCcher.test/x?p=2"},
		{"https://[::1]:8443/x", "", `"https://[0:0::1]:8443/y"`, "https://[::1]:8443/y"},
		// P-09: another origin
		{"https://h.test/x", "", `"https://evil.test/x"`, "cross_origin: the next link leads to https://evil.test:443"},
		{"https://h.test/x", "", `"//evil.test/x"`, "cross_origin: the next link leads to https://evil.test:443"},
		{"https://h.test/x", "", `"https://h.test:8443/x"`, "cross_origin: the next link leads to https://h.test:8443"},
		{"https://h.test:8443/x", "", `"https://h.test/y"`, "cross_origin: the next link leads to https://h.test:443"},
		{"https://h.test/x", "", `"https://h.test.evil.test/x"`, "cross_origin: the next link leads to https://h.test.evil.test:443"},
		{"https://h.test/x", "", `"https://sub.h.test/x"`, "cross_origin: the next link leads to https://sub.h.test:443"},
		{"https://h.test/x", "https://www.h.test/x", `"?page=2"`, "cross_origin: the next link leads to https://www.h.test:443"},
		{"https://h.test/x", "https://www.h.test/x", `"https://h.test/x?page=2"`, "https://h.test/x?page=2"},
		// the exception: plain http on default ports reads as https, and nothing else does
		{"https://h.test/x", "", `"http://h.test/x?p=2"`, "https://h.test/x?p=2"},
		{"https://h.test/x", "", `"http://h.test:80/x?p=2"`, "https://h.test/x?p=2"},
		{"https://h.test/x", "", `"http://h.test:443/x"`, "cross_origin: the next link leads to http://h.test:443"},
		{"https://h.test/x", "", `"http://h.test:8080/x"`, "cross_origin: the next link leads to http://h.test:8080"},
		{"https://h.test:8443/x", "", `"http://h.test/x"`, "cross_origin: the next link leads to http://h.test:80"},
		{"https://h.test:8443/x", "", `"http://h.test:8443/x"`, "cross_origin: the next link leads to http://h.test:8443"},
		{"https://h.test/x", "", `"http://evil.test/x"`, "cross_origin: the next link leads to http://evil.test:80"},
		{"http://h.test/x", "", `"https://h.test/x"`, "cross_origin: the next link leads to https://h.test:443"},
		// no link at all
		{"https://h.test/x", "", `null`, "end"},
		{"https://h.test/x", "", `""`, "end"},
		{"https://h.test/x", "", `"  "`, "end"},
		{"https://h.test/x", "", `false`, "end"},
		{"https://h.test/x", "", `0`, "end"},
		{"https://h.test/x", "", `{}`, "end"},
		{"https://h.test/x", "", `[]`, "end"},
		{"https://h.test/x", "", `{"href":null,"url":null}`, `bad_next: the next link is an object without "href" and "url"`},
		{"https://h.test/x", "", `{"href":""}`, "end"},
		// objects
		{"https://h.test/x", "", `{"href":"?p=2"}`, "https://h.test/x?p=2"},
		{"https://h.test/x", "", `{"url":"?p=2","rel":"next"}`, "https://h.test/x?p=2"},
		{"https://h.test/x", "", `{"href":null,"url":"?p=2"}`, "https://h.test/x?p=2"},
		{"https://h.test/x", "", `{"href":"?p={p}"}`, "https://h.test/x?p={p}"},
		{"https://h.test/x", "", `{"href":"?p=2","templated":true}`, "https://h.test/x?p=2"},
		{"https://h.test/x", "", `{"href":"/x{?p}","templated":true}`, "bad_next: the next link is a template"},
		{"https://h.test/x", "", `{"next":"?p=2"}`, `bad_next: the next link is an object without "href" and "url"`},
		// what cannot be a link
		{"https://h.test/x", "", `true`, "bad_next: the next link is a boolean, not a text"},
		{"https://h.test/x", "", `2`, "bad_next: the next link is a number, not a text"},
		{"https://h.test/x", "", `["?p=2"]`, "bad_next: the next link is an array, not a text"},
		{"https://h.test/x", "", `{"href":{"href":"?p=2"}}`, "bad_next: the next link is an object, not a text"},
		{"https://h.test/x", "", `"http://[::1"`, badURL},
		{"https://h.test/x", "", `"/a%zz"`, badURL},
		{"https://h.test/x", "", `"?a=b\r\nX: y"`, badURL},
		{"https://h.test/x", "", `"javascript:alert(1)"`, badHost},
		{"https://h.test/x", "", `"ftp://h.test/x"`, badHost},
		{"https://h.test/x", "", `"https:h.test"`, badHost},
		{"https://h.test/x", "", `"https:///x"`, badHost},
		{"https://h.test/x", "", `"https://127.1/x"`, badHost},
		{"https://h.test/x", "", `"https://h.test:0/x"`, badHost},
		{"https://h.test/x", "", `"https://u:p@h.test/x"`, "bad_next: the next link has user information before its host"},
		{"https://h.test/x", "", `"//u@evil.test/x"`, "bad_next: the next link has user information before its host"},
		{"https://h.test/x", "", `"https://@h.test/x"`, "bad_next: the next link has user information before its host"},
		// a backslash is no slash
		{"https://h.test/x", "", `"\\\\evil.test"`, "https://h.test/%5C%5Cevil.test"},
		{"https://h.test/x", "", `"/\\evil.test"`, "https://h.test/%5Cevil.test"},
		// the page that was just read
		{"https://h.test/x?p=1", "", `"https://h.test/x?p=1"`, "loop: the next link leads to a page that was already read"},
		{"https://h.test/x?p=1", "", `"#next"`, "loop: the next link leads to a page that was already read"},
		{"https://h.test", "", `"http://h.test/"`, "loop: the next link leads to a page that was already read"},
		{"https://h.test/x", "https://h.test/y", `"https://h.test/y"`, "loop: the next link leads to a page that was already read"},
		// length: 16 KiB and one more
		{"https://h.test/x", "", `"` + ("https://h.test/" + long)[:16<<10] + `"`, ("https://h.test/" + long)[:16<<10]},
		{"https://h.test/x", "", `"` + ("https://h.test/" + long)[:16<<10+1] + `"`, "bad_next: the next link has more than 16384 bytes"},
		{"https://h.test/x", "", `"` + ("/" + long)[:16<<10] + `"`, "bad_next: the next URL has more than 16384 bytes"},
	} {
		page := body(t, `{"next":`+c.next+`}`, 1)
		if c.page != "" {
			page.URL = mustURL(t, c.page)
		}
		got := next(t, plan(t, `{"type":"link","nextUrl":"next"}`), c.request, page)
		if got != c.want {
			t.Errorf("%s on %s%s\n got %.300s\nwant %.300s", c.next, c.request, c.page, got, c.want)
		}
	}
}

// A cursor is sent as the API wrote it, wherever it goes.
func TestCursorInQuery(t *testing.T) {
	const request = "https://h.test/x?status=open"
	for _, c := range []struct{ next, want string }{
		{`"abc"`, "c=abc"},
		{`"a+b/c=="`, "c=a%2Bb%2Fc%3D%3D"},
		{`"a b&c=d#e%20"`, "c=a%20b%26c%3Dd%23e%2520"},
		{`"\r\n\u0000é"`, "c=%0D%0A%00%C3%A9"},
		{`12345678901234567890`, "c=12345678901234567890"},
		{`1.50`, "c=1.50"},
		{`true`, "c=true"},
		{`"0"`, "c=0"},
		{`"false"`, "c=false"},
		{`0`, "end"},
		{`-0.0e7`, "end"},
		{`false`, "end"},
		{`null`, "end"},
		{`""`, "end"},
		{`" "`, "end"},
		{`{}`, "end"},
		{`[]`, "end"},
		{`["a"]`, "bad_next: the cursor is an array, which cannot stand in a query"},
		{`{"a":1}`, "bad_next: the cursor is an object, which cannot stand in a query"},
		// as JSON with its quotes 16 KiB, and one more
		{`"` + strings.Repeat("x", 16<<10-2) + `"`, "bad_next: with the cursor the URL has more than 16384 bytes"},
		{`"` + strings.Repeat("x", 16<<10-1) + `"`, "bad_next: the cursor has more than 16384 bytes: check the path in next"},
		// "https://h.test/x?status=open&c=" has 31 bytes
		{`"` + strings.Repeat("x", 16<<10-31) + `"`, "c=" + strings.Repeat("x", 16<<10-31)},
		{`"` + strings.Repeat("x", 16<<10-30) + `"`, "bad_next: with the cursor the URL has more than 16384 bytes"},
	} {
		got := next(t, plan(t, `{"type":"cursor","next":"next","cursorParam":"c"}`), request, body(t, `{"next":`+c.next+`}`, 1))
		if got = strings.TrimPrefix(got, request+"&"); got != c.want {
			t.Errorf("%.80s: got %.200s, want %.200s", c.next, got, c.want)
		}
	}
}

func TestCursorInBodyOrHeader(t *testing.T) {
	for _, c := range []struct {
		in, param, next string
		want            paging.Edit
		stopped         string
	}{
		{"body", "a.b", `[1,{"k":2.0}]`, paging.Edit{Body: []paging.Place{{[]string{"a", "b"}, recipe.Array{num("1"), recipe.Object{{Key: "k", Value: num("2.0")}}}}}}, ""},
		{"body", "a", `9007199254740993`, paging.Edit{Body: []paging.Place{{[]string{"a"}, num("9007199254740993")}}}, ""},
		{"body", "a", `true`, paging.Edit{Body: []paging.Place{{[]string{"a"}, true}}}, ""},
		{"body", "a", `"\u0000"`, paging.Edit{Body: []paging.Place{{[]string{"a"}, "\x00"}}}, ""},
		{"body", "a", `{}`, paging.Edit{}, "end"},
		{"header", "X-C", `"a b~"`, paging.Edit{Header: []paging.Pair{{"X-C", "a b~"}}}, ""},
		{"header", "X-C", `17`, paging.Edit{Header: []paging.Pair{{"X-C", "17"}}}, ""},
		{"header", "X-C", `"a\r\nX: y"`, paging.Edit{}, "bad_next"},
		{"header", "X-C", `"é"`, paging.Edit{}, "bad_next"},
		{"header", "X-C", `"a\u007f"`, paging.Edit{}, "bad_next"},
		{"header", "X-C", `" a"`, paging.Edit{}, "bad_next"},
		{"header", "X-C", `[1]`, paging.Edit{}, "bad_next"},
		{"body", "*", `{"a.b":1,"c":null}`, paging.Edit{Body: []paging.Place{{[]string{"a.b"}, num("1")}, {[]string{"c"}, nil}}}, ""},
		{"query", "*", `{"a":"x","b":null,"c":2,"a":"y"}`, paging.Edit{Query: []paging.Pair{{"a", "y"}, {"c", "2"}}}, ""},
		{"query", "*", `"x"`, paging.Edit{}, "bad_next"},
		{"query", "*", `{"a":[]}`, paging.Edit{}, "bad_next"},
		{"query", "*", `{"":"x"}`, paging.Edit{}, "bad_next"},
		{"query", "*", `{"a\n":"x"}`, paging.Edit{}, "bad_next"},
	} {
		w := paging.New(plan(t, fmt.Sprintf(`{"type":"cursor","next":"next","cursorParam":%q,"in":%q}`, c.param, c.in)), mustURL(t, "https://h.test/"), 0, 0)
		got, more := w.Next(body(t, `{"next":`+c.next+`}`, 1))
		if d := cmp.Diff(c.want, got); d != "" || more != (c.stopped == "") || w.Report().Stopped != c.stopped {
			t.Errorf("%s %s %s: %s %v %+v", c.in, c.param, c.next, d, more, w.Report())
		}
	}
}

// cursorParam "*" takes 32 members and not one more; the author's page size
// wins over a member of the same name.
func TestMergedMembers(t *testing.T) {
	p := plan(t, `{"type":"cursor","next":"next","cursorParam":"*","limitParam":"limit","pageSize":5}`)
	object := func(n int) paging.Page {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"m%d":%d`, i, i))
		}
		return body(t, `{"next":{`+strings.Join(members, ",")+`}}`, 1)
	}
	if got := next(t, p, "https://h.test/", object(32)); !strings.HasSuffix(got, "&m31=31&limit=5") {
		t.Error(got)
	}
	if got := next(t, p, "https://h.test/", object(33)); got != "bad_next: the object that next leads to has more than 32 members" {
		t.Error(got)
	}
	if got := next(t, p, "https://h.test/?limit=9", body(t, `{"next":{"limit":1000,"c":1}}`, 1)); got != "https://h.test/?limit=5&c=1" {
		t.Error(got)
	}
}

// P-05: the same cursor for ever is two requests, not ten.
func TestSameCursorForEver(t *testing.T) {
	w := paging.New(plan(t, `{"type":"cursor","next":"next","cursorParam":"c"}`), mustURL(t, "https://h.test/"), 25, 0)
	if _, more := w.Next(body(t, `{"next":"X"}`, 3)); !more {
		t.Fatal("the first sight is no loop")
	}
	if _, more := w.Next(body(t, `{"next":"X"}`, 3)); more {
		t.Fatal("a third request")
	}
	sameReport(t, "report", paging.Report{Pages: 2, Cap: 25, Items: 6, Stopped: paging.StopLoop}, w.Report())
}

// A loop over several cursors or links ends when it closes. With the API's own
// word that there is more, the report says so.
func TestLongerLoops(t *testing.T) {
	for _, c := range []struct {
		plan  string
		nexts []string
	}{
		{`{"type":"cursor","next":"next","cursorParam":"c","hasMore":"more"}`, []string{`"A"`, `"B"`, `"C"`, `"B"`}},
		{`{"type":"cursor","next":"next","cursorParam":"c","in":"body","hasMore":"more"}`, []string{`[1]`, `[2]`, `"[1]"`, `[2]`}},
		{`{"type":"cursor","next":"next","cursorParam":"*","hasMore":"more"}`, []string{`{"a":1}`, `{"a":2}`, `{"b":1}`, `{"a":2}`}},
		{`{"type":"link","nextUrl":"next","hasMore":"more"}`, []string{`"?p=2"`, `"?p=3"`, `"/?p=4"`, `"http://h.test/?p=2#x"`}},
	} {
		w := paging.New(plan(t, c.plan), mustURL(t, "https://h.test/"), 0, 0)
		for i, n := range c.nexts {
			if _, more := w.Next(body(t, `{"more":true,"next":`+n+`}`, 1)); more != (i < 3) {
				t.Errorf("%s: page %d: %v", c.plan, i+1, more)
			}
		}
		sameReport(t, c.plan, paging.Report{Pages: 4, Cap: 10, Items: 4, More: true, Stopped: paging.StopLoop}, w.Report())
	}
}

// P-07: every request carries the wrapper's own parameters, and the limit.
func TestParametersStay(t *testing.T) {
	base := mustURL(t, "https://h.test/items?status=open&limit=7&tag=a%20b&tag=c+d&x&cursor=old&cursor=older&empty=")
	w := paging.New(plan(t, `{"type":"cursor","next":"next","cursorParam":"cursor","limitParam":"limit","pageSize":50}`), base, 0, 0)
	var got []string
	edit := w.First()
	for i := range 3 {
		u, _, err := edit.Apply(base, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, u.RawQuery)
		edit, _ = w.Next(body(t, fmt.Sprintf(`{"next":"n%d"}`, i), 1))
	}
	want := []string{
		"status=open&limit=50&tag=a%20b&tag=c+d&x&cursor=old&cursor=older&empty=",
		"status=open&limit=50&tag=a%20b&tag=c+d&x&cursor=n0&empty=",
		"status=open&limit=50&tag=a%20b&tag=c+d&x&cursor=n1&empty=",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func num(s string) recipe.Value {
	v, err := recipe.Decode([]byte(s), recipe.DecodeLimits{})
	if err != nil {
		panic(err)
	}
	return v
}

// hasMore: false, 0 and their text stop; missing says nothing; hasMoreWhen
// false turns it around.
func TestHasMore(t *testing.T) {
	for _, c := range []struct {
		more     string
		on, stop bool // hasMoreWhen true goes on; hasMoreWhen false stops
	}{
		{`true`, true, true},
		{`false`, false, false},
		{`0`, false, false},
		{`0.0`, false, false},
		{`-0`, false, false},
		{`0e9`, false, false},
		{`1`, true, true},
		{`194`, true, true},
		{`"false"`, false, false},
		{`"False"`, false, false},
		{`" false "`, false, false},
		{`"0"`, false, false},
		{`"true"`, true, true},
		{`"no"`, true, true},
		{`[]`, true, true},
		{`{"a":1}`, true, true},
		{`null`, true, false},
		{`""`, true, false},
	} {
		for _, when := range []bool{true, false} {
			p := plan(t, fmt.Sprintf(`{"type":"cursor","next":"next","cursorParam":"c","hasMore":"more","hasMoreWhen":%v}`, when))
			want := "https://h.test/?c=X"
			if when && !c.on || !when && c.stop {
				want = paging.StopHasMore
			}
			if got := next(t, p, "https://h.test/", body(t, `{"next":"X","more":`+c.more+`}`, 1)); got != want {
				t.Errorf("hasMore %s, hasMoreWhen %v: %s, want %s", c.more, when, got, want)
			}
		}
	}
	p := plan(t, `{"type":"link","nextUrl":"next","hasMore":"header:X-Has-More"}`)
	page := body(t, `{"next":"?p=2"}`, 1)
	page.Header = map[string][]string{"x-has-more": {" 0 "}}
	if got := next(t, p, "https://h.test/", page); got != paging.StopHasMore {
		t.Error(got)
	}
}

// total: what counts as a number, and what it is to have reached it.
func TestTotal(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	for _, c := range []struct {
		total string
		items int
		want  *int64
		stop  bool
	}{
		{`5`, 4, n(5), false},
		{`5`, 5, n(5), true},
		{`5`, 6, n(5), true},
		{`"5"`, 5, n(5), true},
		{`" 5 "`, 5, n(5), true},
		{`5.0`, 5, n(5), true},
		{`5e0`, 5, n(5), true},
		{`9223372036854775807`, 5, n(9223372036854775807), false},
		{`9223372036854775808`, 5, nil, false},
		{`9007199254740992.0`, 5, n(9007199254740992), false},
		{`1e16`, 5, nil, false},
		{`1e999`, 5, nil, false},
		{`5.5`, 9, nil, false},
		{`-1`, 5, nil, false},
		{`"5 items"`, 5, nil, false},
		{`"0x5"`, 5, nil, false},
		{`null`, 5, nil, false},
		{`true`, 5, nil, false},
		{`[5]`, 5, nil, false},
		{`0`, 5, nil, false}, // nothing in all, and yet items: the API does not know
		{`0`, 0, n(0), true},
	} {
		w := paging.New(plan(t, `{"type":"cursor","next":"next","cursorParam":"c","total":"total"}`), mustURL(t, "https://h.test/"), 0, 0)
		_, more := w.Next(body(t, `{"next":"X","total":`+c.total+`}`, c.items))
		want := paging.Report{Pages: 1, Cap: 10, Items: c.items, Total: c.want}
		if c.stop {
			want.Stopped = paging.StopTotal
		}
		if more == c.stop {
			t.Errorf("total %s, %d items: more %v", c.total, c.items, more)
		}
		sameReport(t, "total "+c.total, want, w.Report())
	}
}

// The newest total counts: lists grow and shrink while they are read. A page
// that does not say keeps the one before.
func TestTotalChanges(t *testing.T) {
	w := paging.New(plan(t, `{"type":"cursor","next":"next","cursorParam":"c","total":"total"}`), mustURL(t, "https://h.test/"), 0, 0)
	for i, page := range []string{`{"next":1,"total":4}`, `{"next":2,"total":9}`, `{"next":3}`, `{"next":4,"total":8}`} {
		if _, more := w.Next(body(t, page, 2)); more != (i < 3) {
			t.Errorf("page %d: %v", i+1, more)
		}
	}
	total := int64(8)
	sameReport(t, "report", paging.Report{Pages: 4, Cap: 10, Items: 8, Total: &total, Stopped: paging.StopTotal}, w.Report())
}

// The caps: how many pages a call may read, and what the report says then.
func TestCaps(t *testing.T) {
	endless := `{"type":"cursor","next":"next","cursorParam":"c"}`
	for _, c := range []struct {
		name               string
		plan               string
		maxPages, maxItems int
		want               paging.Report // of pages with 5 items each
	}{
		{"default", endless, 0, 0, paging.Report{Pages: 10, Cap: 10, Items: 50, More: true, Stopped: "page_cap"}},
		{"of the plan", `{"type":"cursor","next":"next","cursorParam":"c","maxPages":3}`, 0, 0, paging.Report{Pages: 3, Cap: 3, Items: 15, More: true, Stopped: "page_cap"}},
		{"of the call", `{"type":"cursor","next":"next","cursorParam":"c","maxPages":3}`, 4, 0, paging.Report{Pages: 4, Cap: 4, Items: 20, More: true, Stopped: "page_cap"}},
		{"one page", endless, 1, 0, paging.Report{Pages: 1, Cap: 1, Items: 5, More: true, Stopped: "page_cap"}},
		{"25", endless, 25, 0, paging.Report{Pages: 25, Cap: 25, Items: 125, More: true, Stopped: "page_cap"}},
		{"26 are too many", endless, 26, 0, paging.Report{Pages: 25, Cap: 25, Items: 125, More: true, Stopped: "page_cap"}},
		{"negative is none", endless, -1, 0, paging.Report{Pages: 10, Cap: 10, Items: 50, More: true, Stopped: "page_cap"}},
		{"items at the cap", endless, 0, 10, paging.Report{Pages: 2, Cap: 10, Items: 10, More: true, Stopped: "item_cap"}},
		{"items one below", endless, 0, 11, paging.Report{Pages: 3, Cap: 10, Items: 15, More: true, Stopped: "item_cap"}},
		{"both: items say more", endless, 2, 10, paging.Report{Pages: 2, Cap: 2, Items: 10, More: true, Stopped: "item_cap"}},
		{"no pagination", `{"type":"none"}`, 5, 3, paging.Report{Pages: 1, Cap: 1, Items: 5, Stopped: "end"}},
	} {
		w := paging.New(plan(t, c.plan), mustURL(t, "https://h.test/"), c.maxPages, c.maxItems)
		for i, more := 0, true; more; i++ {
			_, more = w.Next(body(t, fmt.Sprintf(`{"next":"n%d"}`, i), 5))
		}
		sameReport(t, c.name, c.want, w.Report())
	}
}

// What the list itself ends comes before the caps; what only hinders the next
// page comes after them. More is true only for a page that is known or likely.
func TestReasonAtTheCaps(t *testing.T) {
	link := `{"type":"link","nextUrl":"next","hasMore":"more","total":"total"}`
	offset := `{"type":"offset","offsetParam":"o","pageSize":5,"hasMore":"more","total":"total"}`
	pages := `{"type":"offset","offsetParam":"o","pageSize":5,"step":"page","start":%d,"total":"total"}`
	for _, c := range []struct {
		name, plan, body   string
		items              int
		maxPages, maxItems int
		stopped            string
		more               bool
	}{
		{"end", link, `{}`, 5, 1, 5, "end", false},
		{"flag", link, `{"more":false,"next":"?p=2"}`, 5, 1, 5, "has_more", false},
		{"total", link, `{"total":5,"next":"?p=2"}`, 5, 1, 5, "total", false},
		{"end before total", link, `{"total":5}`, 5, 1, 5, "end", false},
		{"flag before end", link, `{"more":0}`, 5, 1, 5, "has_more", false},
		{"total before a bad link", link, `{"total":5,"next":7}`, 5, 9, 9, "total", false},
		{"total before a loop", link, `{"total":5,"next":"/"}`, 5, 9, 9, "total", false},
		{"loop", link, `{"next":"/"}`, 5, 1, 5, "loop", false},
		{"loop against the flag", link, `{"next":"/","more":true}`, 5, 9, 9, "loop", true},
		{"loop against the total", link, `{"next":"/","total":6}`, 5, 9, 9, "loop", true},
		{"page cap", link, `{"next":"?p=2"}`, 5, 1, 0, "page_cap", true},
		{"page cap before another origin", link, `{"next":"//evil.test/"}`, 5, 1, 0, "page_cap", true},
		{"item cap before a bad link", link, `{"next":7}`, 5, 9, 5, "item_cap", true},
		{"another origin", link, `{"next":"//evil.test/"}`, 5, 9, 6, "cross_origin", true},
		{"bad link", link, `{"next":7}`, 5, 9, 6, "bad_next", true},
		{"full page", offset, `{}`, 5, 1, 0, "page_cap", true},
		{"more than a full page", offset, `{}`, 6, 1, 0, "page_cap", true},
		{"short page", offset, `{}`, 4, 1, 0, "short_page", false},
		{"short page and a count as flag", offset, `{"more":194}`, 4, 9, 0, "short_page", false},
		{"short page against a flag", offset, `{"more":true}`, 4, 9, 0, "short_page", true},
		{"short page against a flag as text", offset, `{"more":"true"}`, 4, 9, 0, "short_page", true},
		{"short page against the total", offset, `{"total":6}`, 4, 9, 0, "short_page", true},
		{"short page and the total", offset, `{"total":4}`, 4, 9, 0, "total", false},
		{"empty page", offset, `{"total":9}`, 0, 9, 0, "empty_page", false},
		{"empty page and the flag", offset, `{"more":false}`, 0, 9, 0, "has_more", false},
		{"first of the numbered pages", fmt.Sprintf(pages, 1), `{"total":9}`, 4, 9, 0, "short_page", true},
		{"a later one: who knows", fmt.Sprintf(pages, 2), `{"total":9}`, 4, 9, 0, "short_page", false},
	} {
		w := paging.New(plan(t, c.plan), mustURL(t, "https://h.test/"), c.maxPages, c.maxItems)
		_, more := w.Next(body(t, c.body, c.items))
		r := w.Report()
		if more || r.Stopped != c.stopped || r.More != c.more {
			t.Errorf("%s: %+v, want %s, more %v", c.name, r, c.stopped, c.more)
		}
	}
}

// From a start of its own a short page is weighed against the total from
// there; a list that is counted from 1 is at most one item off.
func TestShortPageFromStart(t *testing.T) {
	for _, c := range []struct {
		start, total int
		more         bool
	}{{50, 54, false}, {50, 55, true}, {1, 4, false}, {1, 5, false}, {1, 6, true}} {
		w := paging.New(plan(t, fmt.Sprintf(`{"type":"offset","offsetParam":"o","pageSize":5,"start":%d,"total":"total"}`, c.start)), mustURL(t, "https://h.test/"), 0, 0)
		w.Next(body(t, fmt.Sprintf(`{"total":%d}`, c.total), 4))
		if got := w.Report().More; got != c.more {
			t.Errorf("%+v: %+v", c, w.Report())
		}
	}
}

// The pageSize at its bounds: a page of exactly that many items is full.
func TestFullPage(t *testing.T) {
	for _, size := range []int{1, 1000} {
		p := plan(t, fmt.Sprintf(`{"type":"offset","offsetParam":"o","pageSize":%d,"start":1000000000}`, size))
		if got, want := next(t, p, "https://h.test/", body(t, `{}`, size)), fmt.Sprintf("https://h.test/?o=%d", 1000000000+size); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		want := paging.StopShortPage
		if size == 1 {
			want = paging.StopEmptyPage
		}
		if got := next(t, p, "https://h.test/", body(t, `{}`, size-1)); got != want {
			t.Errorf("one less than %d: %s", size, got)
		}
	}
}

// Where the values go: offset in a header, link header under another name and
// relation, Link headers in several lines.
func TestPlaces(t *testing.T) {
	w := paging.New(plan(t, `{"type":"offset","offsetParam":"X-Skip","in":"header","limitParam":"n","pageSize":2}`), mustURL(t, "https://h.test/"), 0, 0)
	got := []paging.Edit{w.First()}
	edit, _ := w.Next(body(t, `{}`, 2))
	got = append(got, edit)
	want := []paging.Edit{
		{Query: []paging.Pair{{"n", "2"}}, Header: []paging.Pair{{"X-Skip", "0"}}},
		{Query: []paging.Pair{{"n", "2"}}, Header: []paging.Pair{{"X-Skip", "2"}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	page := paging.Page{Items: 1, Header: map[string][]string{
		"Link":       {`<?p=0>; rel=prev`, `<?p=2>; rel="last next-page"`},
		"X-Next-Url": {"", "?p=3"},
	}}
	for block, want := range map[string]string{
		`{"type":"link","nextUrl":"header:LINK","rel":"Next-Page"}`: "https://h.test/?p=2",
		`{"type":"link","nextUrl":"header:link"}`:                   "end",
		`{"type":"link","nextUrl":"header:x-next-url"}`:             "https://h.test/?p=3",
		`{"type":"link","nextUrl":"header:X-None"}`:                 "end",
	} {
		if got := next(t, plan(t, block), "https://h.test/", page); got != want {
			t.Errorf("%s: %s, want %s", block, got, want)
		}
	}
}

// Stop is the loop's own word, kept with its error; it comes too late once the
// walk has ended.
func TestStop(t *testing.T) {
	cause := fault.New("UPSTREAM_UNAVAILABLE", "the API answered 503")
	p := plan(t, `{"type":"cursor","next":"next","cursorParam":"c"}`)
	for _, reason := range []string{paging.StopDeadline, paging.StopPolicy, paging.StopError} {
		w := paging.New(p, mustURL(t, "https://h.test/"), 0, 0)
		w.Next(body(t, `{"next":"a"}`, 5))
		w.Stop(reason, cause)
		w.Stop(paging.StopEnd, nil)
		if _, more := w.Next(body(t, `{"next":"b"}`, 5)); more {
			t.Error("the walk goes on")
		}
		want := paging.Report{Pages: 1, Cap: 10, Items: 5, More: true, Stopped: reason, Error: cause}
		if got := w.Report(); got != want {
			t.Errorf("%+v", got)
		}
	}
	w := paging.New(p, mustURL(t, "https://h.test/"), 0, 0)
	w.Next(body(t, `{}`, 5))
	w.Stop(paging.StopDeadline, cause)
	sameReport(t, "ended", paging.Report{Pages: 1, Cap: 10, Items: 5, Stopped: "end"}, w.Report())
}

// An answer without a body, such as status 204, names no next page; nor does
// one without a URL or header, or a plan made by hand.
func TestBareValues(t *testing.T) {
	for _, block := range []string{
		`{"type":"cursor","next":"next","cursorParam":"c","hasMore":"more","total":"total"}`,
		`{"type":"link","nextUrl":"next"}`, `{"type":"link","nextUrl":"header:Link"}`,
	} {
		if got := next(t, plan(t, block), "https://h.test/", paging.Page{}); got != "end" {
			t.Errorf("%s: %s", block, got)
		}
	}
	if got := next(t, plan(t, `{"type":"offset","offsetParam":"o","pageSize":1}`), "https://h.test/", paging.Page{}); got != "empty_page" {
		t.Error(got)
	}
	w := paging.New(recipe.Pagination{Type: "link", NextURL: &recipe.Source{Header: "Link"}}, nil, 0, 0)
	if _, more := w.Next(paging.Page{Header: map[string][]string{"Link": {"</x>; rel=next"}}}); more || w.Report().Stopped != paging.StopBadNext {
		t.Errorf("without a request: %+v", w.Report())
	}
	w = paging.New(recipe.Pagination{Type: "link", NextURL: &recipe.Source{Header: "Link"}}, mustURL(t, "ftp://h.test/"), 0, 0)
	if _, more := w.Next(paging.Page{Header: map[string][]string{"Link": {"</x>; rel=next"}}}); more || w.Report().Stopped != paging.StopBadNext {
		t.Errorf("without an origin: %+v", w.Report())
	}
}
