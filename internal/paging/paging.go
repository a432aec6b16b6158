// Package paging walks the pages of a list: given the plan of a recipe and the
// page just read, it says what the next request changes, or why there is none.
//
// It sends nothing, reads no body itself and never changes what it is handed:
// the same plan and the same pages always give the same requests. Start with
// [New]; the loop around it belongs to internal/executor.
package paging

import (
	"crypto/sha256"
	"net/url"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Bounds of a walk.
const (
	DefaultPages = 10       // pages read when neither the plan nor the call says how many
	MaxPages     = 25       // pages read at most, whoever asks
	maxURL       = 16 << 10 // bytes of the next URL; a wrapper's own may have as many
	maxCursor    = 16 << 10 // bytes of a cursor as JSON; a longer one is no cursor but a mistaken path
	maxMembers   = 32       // members of an object that cursorParam "*" merges
)

// The reasons for which a walk ends: Report.Stopped.
const (
	StopEnd         = "end"          // the API names no next page
	StopShortPage   = "short_page"   // offset: fewer items than pageSize
	StopEmptyPage   = "empty_page"   // offset: no items
	StopHasMore     = "has_more"     // the API's flag says that this was the last page
	StopTotal       = "total"        // as many items as the API says there are
	StopPageCap     = "page_cap"     // as many pages as were asked for
	StopItemCap     = "item_cap"     // as many items as the recipe shows
	StopCrossOrigin = "cross_origin" // the next link leads to another scheme, host or port
	StopLoop        = "loop"         // the API names a page that was already read
	StopBadNext     = "bad_next"     // what the API names as the next page cannot be one
	StopDeadline    = "deadline"     // set by the loop: the call's time was up
	StopPolicy      = "policy"       // set by the loop: the next request is refused by policy
	StopError       = "error"        // set by the loop: the next page failed
)

// A Page is what the walk needs to know of one answer.
type Page struct {
	URL    *url.URL                       // where the answer came from, after redirects; nil: the wrapper's own URL
	Header map[string][]string            // of the answer; names in any case
	Lookup func(recipe.Path) recipe.Value // (*recipe.Page).Lookup; nil: the answer has no body
	Items  int                            // items in this page, before any cap
	Single bool                           // one value stands where the recipe expects a list: there is nothing to page through
	Body   []byte                         // as received, to notice an API that ignores the offset; nil: not looked at
}

// A Report is the account of a walk.
type Report struct {
	Pages   int          // read so far
	Cap     int          // pages that may be read, 1 to MaxPages
	Items   int          // received on all pages, before any cap
	Total   *int64       // how many there are, in the API's own words; nil: it does not say
	More    bool         // another page is known or likely and was not read
	Repeat  bool         // the last page is the same as the one before: leave it out, its items are not counted
	Stopped string       // one of the Stop constants; "" while the walk goes on
	Error   *fault.Error // why the next page could not be read; only with deadline, policy and error
	Note    string       // for the author of the wrapper: what is wrong with the next page; may be empty
}

// A Walker walks through one call's pages. Make one with New; it is not safe
// for concurrent use.
type Walker struct {
	plan     recipe.Pagination
	request  *url.URL
	origin   string // of request; "" has none, and then no link is followed
	maxItems int
	report   Report
	at       int             // offset: the value sent last
	seen     map[string]bool // cursors or URLs that were sent
	body     [sha256.Size]byte
}

// New starts a walk. request is the URL of the wrapper's own request with the
// arguments filled in: it decides which origin links must keep. maxPages is
// the call's own cap, 0 for the plan's; the result lies between 1 and
// MaxPages. maxItems is the number of items after which no further page is
// worth reading, 0 for none.
func New(plan recipe.Pagination, request *url.URL, maxPages, maxItems int) *Walker {
	w := &Walker{plan: plan, request: request, maxItems: maxItems, at: plan.Start, seen: map[string]bool{}}
	w.origin, _ = hostname.Origin(request)
	w.report.Cap = 1
	if !plan.Paged() {
		return w
	}
	if maxPages <= 0 {
		maxPages = plan.MaxPages
	}
	if maxPages <= 0 {
		maxPages = DefaultPages
	}
	w.report.Cap = min(maxPages, MaxPages)
	switch {
	case plan.Type == "link":
		w.saw(request)
	case plan.Type == "cursor" && plan.In != "body" && plan.In != "header" && request != nil:
		for _, v := range request.Query()[plan.CursorParam] { // the wrapper's first cursor: Solr and Crossref start at *
			w.seen[v] = true
		}
	}
	return w
}

// First says what the first request changes in the wrapper's own one.
func (w *Walker) First() Edit {
	if w.plan.Type != "offset" {
		return w.limited(Edit{})
	}
	return w.offsetEdit()
}

// Next takes the page just read and says what the next request changes in the
// wrapper's own request, not in the one before. False means that the walk has
// ended; then Report says why. After the end it changes nothing.
func (w *Walker) Next(p Page) (Edit, bool) {
	r := &w.report
	if r.Stopped != "" {
		return Edit{}, false
	}
	r.Pages++
	r.Items += max(p.Items, 0)
	if n, ok := count(p.value(w.plan.Total)); ok && (n > 0 || r.Items == 0) { // 0 beside items: the API does not know
		r.Total = &n
	}
	s := w.step(p)
	switch s.reason {
	case "", StopBadNext, StopCrossOrigin: // the API names another page: was it wanted at all?
		switch {
		case w.maxItems > 0 && r.Items >= w.maxItems:
			s = step{reason: StopItemCap, more: true}
		case r.Pages >= r.Cap:
			s = step{reason: StopPageCap, more: true}
		}
	}
	if s.reason == "" {
		return s.edit, true
	}
	r.Stopped, r.More, r.Note = s.reason, s.more, s.note
	return Edit{}, false
}

// Stop ends the walk for a reason of the loop's own, before the page that
// First or Next asked for was read. err may be nil. A walk that has ended
// keeps its reason.
func (w *Walker) Stop(reason string, err *fault.Error) {
	if w.report.Stopped == "" {
		w.report.Stopped, w.report.Error, w.report.More = reason, err, true
	}
}

// Report gives the account so far.
func (w *Walker) Report() Report { return w.report }

// A step is what follows a page: an edit, or a reason to stop. more: the API
// has another page, whether it can be read or not.
type step struct {
	edit   Edit
	reason string
	more   bool
	note   string
}

func proceed(e Edit) step { return step{edit: e, more: true} }

// step decides on what the API says alone, without the caps.
func (w *Walker) step(p Page) step {
	if more, known := w.flag(p); known && !more {
		return step{reason: StopHasMore}
	}
	switch {
	case p.Single:
	case w.plan.Type == "offset":
		return w.offset(p)
	case w.plan.Type == "cursor":
		return w.cursor(p)
	case w.plan.Type == "link":
		return w.link(p)
	}
	return step{reason: StopEnd}
}

// complete reports whether as many items came as the API says there are.
func (w *Walker) complete() bool {
	return w.report.Total != nil && int64(w.report.Items) >= *w.report.Total
}

// flag reads hasMore. Not known: the API does not say.
func (w *Walker) flag(p Page) (more, known bool) {
	v := p.value(w.plan.HasMore)
	if v == nil || v == "" {
		return false, false
	}
	return falsy(v) != w.plan.HasMoreWhen, true
}

// claimed reports whether the API insists that there is more: by a flag that
// is a truth value, or by a total that was not reached. A count used as
// hasMore, which never becomes false, claims nothing.
func (w *Walker) claimed(p Page) bool {
	if truth(p.value(w.plan.HasMore)) {
		return true // a flag that says no has ended the walk before
	}
	if w.report.Total == nil {
		return false
	}
	received := w.report.Items
	switch {
	case w.plan.Type != "offset":
	case w.plan.Step == "page" && w.plan.Start > 1:
		return false // how many items the skipped pages have is not known
	case w.plan.Step != "page":
		received += w.plan.Start // counted from 1 or from 0: at most one too many
	}
	return int64(received) < *w.report.Total
}
