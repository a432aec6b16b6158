package shim

import (
	"fmt"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// footer is what a result's text says below the Markdown: where redirects led,
// how much of the data this is and why not more, what was indexed, and what
// looks wrong. A complete, unremarkable result has none.
func footer(r *api.RunResult) []string {
	var notes []string
	add := func(s string) {
		if s != "" {
			notes = append(notes, s)
		}
	}
	if r.Request != nil && r.Request.FinalURL != "" {
		add("redirected to " + r.Request.FinalURL)
	}
	if r.Paging != nil {
		add(pagesNote(r.Paging))
	}
	add(shownNote(r.Meta, r.Paging))
	if r.Indexed != nil {
		add(indexedNote(r.Indexed))
	}
	if len(r.Meta.EmptyFields) > 0 {
		add("empty in every item: " + strings.Join(r.Meta.EmptyFields, ", ") + " - has the API changed? (wrap_get shows the paths)")
	}
	for _, w := range r.Meta.Warnings {
		add("note: " + w)
	}
	for _, w := range r.Warnings {
		add(warning(w))
	}
	return notes
}

// stopReasons are the ends of paging that a reader should know; the others are
// the natural end of the list.
var stopReasons = map[string]string{
	"item_cap":     "stopped at the recipe's item limit",
	"deadline":     "stopped at the call's time limit",
	"cross_origin": "the next page is on another host and was not fetched",
	"policy":       "the next page was refused by policy",
	"loop":         "the API names a page that was already read",
	"bad_next":     "the next link cannot be used",
}

func pagesNote(p *api.Paging) string {
	s := fmt.Sprintf("pages %d/%d", p.Pages, p.Cap)
	if p.More {
		s += " (+more)"
	}
	switch {
	case p.Error != nil:
		s += fmt.Sprintf(": page %d failed: %s", p.Pages+1, short(p.Error))
	case stopReasons[p.Stopped] != "":
		s += ": " + stopReasons[p.Stopped]
	case p.Stopped == "page_cap" && p.More && p.Pages >= p.Cap && p.Cap < api.MaxPagesCap:
		s += fmt.Sprintf(": raise max_pages, at most %d", api.MaxPagesCap)
	}
	return s
}

// cutReasons say which limit cut a result.
var cutReasons = map[string]string{
	"items": "limits.maxItems of the recipe",
	"chars": "limits.maxChars of the recipe; format json has the rest",
	"bytes": "size limit; ask for fewer fields or items",
}

// shownNote is "showing 50 of 137", or empty when everything is shown or when
// nobody knows how much there is: then "(+more)" of the pages has to do.
func shownNote(m api.Meta, p *api.Paging) string {
	shown := int64(m.Rendered)
	if m.Shown != nil {
		shown = int64(*m.Shown)
	}
	total, open := int64(m.Selected), ""
	if p != nil && p.Total != nil {
		total = max(total, *p.Total)
	} else if p != nil && p.More {
		open = "+"
	}
	if !m.Truncated && (open != "" || shown >= total) {
		return ""
	}
	s := fmt.Sprintf("showing %d of %d%s", shown, total, open)
	switch {
	case cutReasons[m.Reason] != "":
		s += " (" + cutReasons[m.Reason] + ")"
	case m.Mode == "document" && m.Selected > 1:
		s += " (mode document shows the first item)"
	}
	return s
}

func indexedNote(x *api.Indexed) string {
	var parts []string
	switch {
	case x.Documents == 1:
		parts = append(parts, "indexed 1 doc")
	case x.Documents > 1 || x.Error == nil:
		parts = append(parts, fmt.Sprintf("indexed %d docs", x.Documents))
	}
	if x.Error != nil {
		parts = append(parts, "index failed: "+short(x.Error))
	}
	return strings.Join(parts, "; ")
}

// short is an error inside a successful result, in one line.
func short(e *api.Short) string {
	s := e.Code
	if e.Status != 0 {
		s += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Retryable {
		s += " (retryable)"
	}
	return s
}
