package wrapper

import (
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Review is Lint and what is missing rather than wrong, for a person who looks
// over saved wrappers: said at each save, it would keep an author from saving
// half-done work. It returns at most recipe.MaxProblems.
func Review(w *Wrapper) []recipe.Problem {
	out := Lint(w)
	if strings.TrimSpace(w.Description) == "" {
		add(&out, recipe.Problem{
			Field: "wrapper.description", Code: "NO_DESCRIPTION", Message: "it is empty; an agent chooses a tool by its description",
			Hint: "say in a sentence what the call gives, and when to use it",
		})
	}
	if w.Response == nil && !slices.Equal(w.Request.Methods, []string{"HEAD"}) {
		add(&out, recipe.Problem{
			Field: "wrapper.response", Code: "NO_FIELDS", Message: "there is no recipe, so an agent reads the whole answer",
			Hint: "draft fields from a real answer with `hbrestd recipe derive ANSWER`",
		})
	}
	if param := pagedBy(w); param != "" {
		add(&out, recipe.Problem{
			Field: "wrapper.response.pagination", Code: "NO_PAGINATION",
			Message: "the query has " + oneLine(param) + " and the recipe shows a list, but only one page is ever read",
			Hint:    "add pagination (docs/recipe-format.md), or {\"type\":\"none\"} when one page is meant",
		})
	}
	return out
}

// Writes reports whether any call of the wrapper can change something at the
// API, whatever "mutating" says; see (*Call).Mutating.
func (w *Wrapper) Writes() bool {
	return w.declared || w.override || slices.ContainsFunc(w.Request.Methods, writes)
}

// pageNames are query parameters that choose a page, without - and _.
var pageNames = []string{
	"page", "pageno", "pagenumber", "pageindex", "perpage", "pagesize", "limit", "offset", "skip", "start", "startat", "startindex",
	"cursor", "nextcursor", "pagetoken", "nextpagetoken", "startingafter", "continuationtoken",
}

// pagedBy is a query parameter that chooses a page of a list which the recipe
// reads as if it had one page; "" if there is none.
func pagedBy(w *Wrapper) string {
	r := w.Response
	if !slices.Contains(w.Request.Methods, "GET") || r == nil || r.Pagination.Type != "" || r.Mode == recipe.Document {
		return ""
	}
	is := func(name string) bool {
		plain := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
		return slices.Contains(pageNames, plain)
	}
	for _, p := range w.Request.url.pairs {
		name, _, _ := strings.Cut(p.key+p.literal, "=") // one of the two is empty
		if is(name) {
			return name
		}
	}
	for _, p := range w.Request.Query {
		if is(p.Name) {
			return p.Name
		}
	}
	return ""
}
