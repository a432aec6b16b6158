package paging_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// TestGolden plays each case: the requests that a plan makes of the answers
// that follow. testdata/README.md says what the sections are.
func TestGolden(t *testing.T) {
	inputs := []string{"recipe", "settings", "request"}
	for n := range paging.MaxPages + 1 {
		inputs = append(inputs, pageName(n))
	}
	golden.Run(t, "testdata/golden/*.txtar", inputs, []string{"steps"}, func(t *testing.T, c *golden.Case) {
		c.Want("steps", play(t, c))
	})
}

func pageName(n int) string { return "page" + strconv.Itoa(n+1) }

func parse(t testing.TB, doc string) *recipe.Recipe {
	t.Helper()
	v, err := recipe.Decode([]byte(doc), recipe.DecodeLimits{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	r, report := recipe.Parse(v)
	if !report.OK() || len(report.Warnings) > 0 {
		t.Fatalf("%+v in\n%s", report, doc)
	}
	return r
}

// play is the loop that internal/executor runs, with answers from the case.
func play(t *testing.T, c *golden.Case) string {
	t.Helper()
	r := parse(t, string(c.Input("recipe")))
	maxPages, maxItems := 0, r.Limits.MaxItems
	for line := range strings.Lines(string(c.Input("settings"))) {
		var name string
		var n int
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			t.Fatalf("settings: %q: %v", line, err)
		}
		switch name {
		case "max_pages":
			maxPages = n
		case "max_items":
			maxItems = n
		case "page_size":
			r.Pagination.PageSize = n
		default:
			t.Fatalf("settings: %q", line)
		}
	}
	method, request, body := cut(t, string(c.Input("request")))
	base, err := url.Parse(request)
	if err != nil {
		t.Fatal(err)
	}
	before := string(recipe.Encode(body))

	var out strings.Builder
	w := paging.New(r.Pagination, base, maxPages, maxItems)
	n := 0
	for edit, more := w.First(), true; more; n++ {
		if !c.Has(pageName(n)) {
			t.Fatalf("the walk asks for page %d, which the case does not have:\n%s", n+1, &out)
		}
		header := http.Header{}
		u, sent, err := edit.Apply(base, header.Set, body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %s\n", method, u)
		for _, name := range slices.Sorted(maps.Keys(header)) {
			fmt.Fprintf(&out, "  %s: %s\n", name, header.Get(name))
		}
		if sent != nil {
			fmt.Fprintf(&out, "  %s\n", recipe.Encode(sent))
		}
		edit, more = w.Next(answer(t, r, u, string(c.Input(pageName(n)))))
	}
	if c.Has(pageName(n)) {
		t.Errorf("page %d was not asked for", n+1)
	}
	if base.String() != request || string(recipe.Encode(body)) != before {
		t.Error("the wrapper's own request was changed")
	}
	report := w.Report()
	fmt.Fprintf(&out, "%s: pages %d/%d, items %d", report.Stopped, report.Pages, report.Cap, report.Items)
	if report.Total != nil {
		fmt.Fprintf(&out, " of %d", *report.Total)
	}
	if report.More {
		out.WriteString(", more")
	}
	if report.Repeat {
		out.WriteString(", without the last page")
	}
	if report.Note != "" {
		out.WriteString("\nnote: " + report.Note)
	}
	return out.String()
}

// cut takes "METHOD URL" and a body apart.
func cut(t *testing.T, request string) (method, u string, body recipe.Value) {
	t.Helper()
	line, text, _ := strings.Cut(request, "\n")
	method, u, _ = strings.Cut(line, " ")
	if text == "" {
		return method, u, nil
	}
	body, err := recipe.Decode([]byte(text), recipe.DecodeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	return method, u, body
}

// answer reads "Name: value" lines up to the body. The name ":url" is where
// the answer came from, when not from where it was asked.
func answer(t *testing.T, r *recipe.Recipe, u *url.URL, text string) paging.Page {
	t.Helper()
	p := paging.Page{URL: u, Header: map[string][]string{}}
	for text != "" && text[0] != '{' && text[0] != '[' {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if there, ok := strings.CutPrefix(line, ":url "); ok {
			var err error
			if p.URL, err = url.Parse(there); err != nil {
				t.Fatal(err)
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		http.Header(p.Header).Add(name, strings.TrimSpace(value))
	}
	if text == "" { // status 204
		return p
	}
	page, err := r.Read([]byte(text), r.Limits.MaxItems, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Lookup, p.Items, p.Body = page.Lookup, page.Items(), []byte(text)
	p.Single = r.Shape == recipe.List && !page.IsList() && page.Items() == 1
	return p
}
