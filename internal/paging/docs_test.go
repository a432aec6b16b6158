package paging_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
)

const docsPage = "../../docs/paging.md"

var (
	docsFence = regexp.MustCompile("(?ms)^```([a-z ]+)\n(.*?)^```$")
	docsRow   = regexp.MustCompile(`(?m)^\| .+ \| .+ \| \[(\w+)\]\(#[a-z0-9-]+\) \|$`)
)

// TestDocs: every recipe on the page is one that a golden case walks, letter
// for letter; the table lists them in their order; each plan is a plan; the
// table of reasons has all of them.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	var listed, shown []string
	for _, m := range docsRow.FindAllStringSubmatch(page, -1) {
		listed = append(listed, m[1])
	}
	plans := 0
	for _, m := range docsFence.FindAllStringSubmatch(page, -1) {
		name, isRecipe := strings.CutPrefix(m[1], "json recipe ")
		switch {
		case m[1] == "json plan":
			plan(t, m[2])
			plans++
		case isRecipe:
			shown = append(shown, name)
			if r := parse(t, m[2]); !r.Pagination.Paged() {
				t.Errorf("%s has no pagination", name)
			}
			if got := walked(t, name); got != m[2] {
				t.Errorf("%s: the page has\n%s\nthe case walks\n%s", name, m[2], got)
			}
		default:
			t.Errorf("a block of %q", m[1])
		}
	}
	if strings.Join(listed, " ") != strings.Join(shown, " ") || len(shown) != 18 || plans != 4 {
		t.Errorf("table %v\nrecipes %v\n%d plans", listed, shown, plans)
	}
	for _, reason := range []string{
		paging.StopEnd, paging.StopShortPage, paging.StopEmptyPage, paging.StopHasMore, paging.StopTotal, paging.StopPageCap, paging.StopItemCap,
		paging.StopCrossOrigin, paging.StopLoop, paging.StopBadNext, paging.StopDeadline, paging.StopPolicy, paging.StopError,
	} {
		if !strings.Contains(page, "\n| `"+reason+"` | ") {
			t.Errorf("the page does not explain %q", reason)
		}
	}
}

// walked is the recipe of a golden case.
func walked(t *testing.T, name string) string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", "golden", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if f.Name == "recipe" {
			return string(f.Data)
		}
	}
	return ""
}

// TestDocsFormatTable: the table of the format's page has the select and the
// pagination of the recipes of this one, letter for letter but for white space,
// and leads to their places.
func TestDocsFormatTable(t *testing.T) {
	format, err := os.ReadFile("../../docs/recipe-format.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| \\[(.+)\\]\\(paging\\.md#([a-z0-9-]+)\\) \\| `(.+)` \\| `(.+)` \\|$").FindAllStringSubmatch(string(format), -1)
	places := regexp.MustCompile(`(?m)^\| (.+) \| .+ \| \[(\w+)\]\(#([a-z0-9-]+)\) \|$`).FindAllStringSubmatch(string(data), -1)
	if len(rows) != 18 || len(places) != 18 {
		t.Fatalf("%d rows for %d recipes", len(rows), len(places))
	}
	for i, row := range rows {
		api, name, anchor := places[i][1], places[i][2], places[i][3]
		if row[1] != api || row[2] != anchor {
			t.Errorf("row %d is %s at #%s, want %s at #%s", i+1, row[1], row[2], api, anchor)
		}
		recipe := strings.Join(strings.Fields(walked(t, name)), " ")
		for _, part := range []string{`"select": ` + row[3] + ",", `"pagination": ` + row[4] + " }"} {
			if !strings.Contains(recipe, part) {
				t.Errorf("%s: the recipe does not have %s", api, part)
			}
		}
	}
}
