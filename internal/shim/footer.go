package shim

import (
	"fmt"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// An ask is what a call wanted less or more of, and from which tool: the
// footer names only what the reader can change.
type ask struct {
	maxItems  *int
	generated bool // a tool of a wrapper, which has no arguments but the wrapper's
}

// argument names an argument of wrap_run as the reader of this answer has it.
func (k ask) argument(name string) string {
	if k.generated {
		return name + " of wrap_run"
	}
	return name
}

// footer is what a result's text says below the Markdown: where redirects led,
// how much of the data this is and why not more, what was indexed, and what
// looks wrong. A complete, unremarkable result has none.
func footer(r *api.RunResult, k ask) []string {
	var notes []string
	add := func(s string) {
		if s != "" {
			notes = append(notes, s)
		}
	}
	if r.Request != nil && r.Request.FinalURL != "" {
		add("redirected to " + r.Request.FinalURL)
	}
	cut := cutReason(r, k)
	if r.Paging != nil {
		add(pagesNote(r, k, cut != ""))
	}
	add(shownNote(r.Meta, r.Paging, cut))
	if r.Indexed != nil {
		add(indexedNote(r.Indexed))
	}
	if len(r.Meta.EmptyFields) > 0 {
		add("empty in every item: " + strings.Join(r.Meta.EmptyFields, ", ") + " - null, a wrong path, or has the API changed? (wrap_get shows the paths)")
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
	"deadline":     "stopped at the call's time limit",
	"cross_origin": "the next page is on another host and was not fetched",
	"policy":       "the next page was refused by policy",
	"loop":         "stopped because the API repeated a page; this may not be all",
	"bad_next":     "the next link cannot be used",
}

// pagesNote is "pages 3/10 (+more)" and why not more. explained: another line
// says already what the reader could do.
func pagesNote(r *api.RunResult, k ask, explained bool) string {
	p := r.Paging
	s := fmt.Sprintf("pages %d/%d", p.Pages, p.Cap)
	if p.More {
		s += " (+more)"
	}
	switch {
	case p.Error != nil && p.Stopped != "deadline":
		s += fmt.Sprintf(": page %d failed: %s", p.Pages+1, short(p.Error))
	case stopReasons[p.Stopped] != "":
		s += ": " + stopReasons[p.Stopped]
	case explained || !p.More:
	case p.Stopped == "item_cap":
		s += ": stopped at " + itemLimit(r.Meta, k)
	case p.Stopped == "page_cap" && p.Pages >= p.Cap && p.Cap < api.MaxPagesCap:
		s += fmt.Sprintf(": raise %s, at most %d", k.argument("max_pages"), api.MaxPagesCap)
	}
	return s
}

// itemLimit names the limit of items that holds: the call's own, while it is
// the lower one.
func itemLimit(m api.Meta, k ask) string {
	if k.maxItems != nil && *k.maxItems <= m.Rendered {
		return "max_items"
	}
	const of = "limits.maxItems of the recipe"
	if m.Rendered >= api.MaxItemsCap {
		return of
	}
	return fmt.Sprintf("%s: wrap_update raises it, at most %d", of, api.MaxItemsCap)
}

// cutReason says which limit cut the result and what gets more of it; empty
// when none did.
func cutReason(r *api.RunResult, k ask) string {
	switch r.Meta.Reason {
	case "items":
		if p := r.Paging; p != nil && p.Stopped == "item_cap" && r.Meta.Rendered == r.Meta.Selected && r.Meta.Shown == nil {
			return "" // what is missing is on pages that were not read, and the note of the pages says why
		}
		return itemLimit(r.Meta, k)
	case "chars":
		return "limits.maxChars of the recipe: fewer " + k.argument("fields") + " or format json get more"
	case "bytes":
		return "limit of bytes: fewer " + k.argument("fields") + " get more"
	}
	return ""
}

// shownNote is "showing 50 of 137", or empty when everything is shown or when
// nobody knows how much there is: then "(+more)" of the pages has to do.
func shownNote(m api.Meta, p *api.Paging, cut string) string {
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
	if whole := !m.Truncated || m.Reason == "items" && cut == ""; whole && (open != "" || shown >= total) {
		return ""
	}
	if cut != "" && shown == total && open == "" {
		return "cut by " + cut // inside the items
	}
	s := fmt.Sprintf("showing %d of %d%s", shown, total, open)
	switch {
	case cut != "":
		s += " (" + cut + ")"
	case m.Mode == "document" && m.Selected > 1:
		s += " (mode document shows the first item)"
	}
	return s
}

func indexedNote(x *api.Indexed) string {
	var parts []string
	switch {
	case x.Skipped != "":
		parts = append(parts, "not indexed: "+x.Skipped)
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
	switch {
	case e.Retryable && e.RetryAfterMs > 0:
		s += fmt.Sprintf(" (retryable after %d s)", (e.RetryAfterMs+999)/1000)
	case e.Retryable:
		s += " (retryable)"
	}
	return s
}
