package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

const (
	indexTime    = 2 * time.Second  // how much later a call may end because of the index
	indexPages   = 50               // documents of one call that are indexed
	recallTime   = 10 * time.Second // for a search, which may wait for others
	recallNaming = 5                // wrappers that a note about an empty answer names
)

// index keeps what a call has read and says in res what became of it. It ends
// in time and never fails the call. ctx is the call's: what was read is kept
// also when its caller has gone.
func (d *Daemon) index(ctx context.Context, w *wrapper.Wrapper, out *executor.Outcome, narrow *recipe.Recipe, kind string, res *api.RunResult) {
	x := &api.Indexed{}
	res.Indexed = x
	switch {
	case kind != "run":
		x.Skipped = "the wrapper is not saved"
		return
	case narrow != nil:
		x.Skipped = "fields or max_items leave out a part of what the wrapper reads"
		return
	case w.Response.Mode != recipe.Documents && !out.Complete():
		x.Skipped = "the result is not complete"
		return
	}
	pages := pagesOf(w, out, d.now())
	if n := len(pages); n > indexPages {
		pages = pages[:indexPages]
		res.Warnings = append(res.Warnings, api.Warning{
			Code: "CORTEX_CAPPED", Message: fmt.Sprintf("of %d documents the first %d were indexed", n, indexPages),
			Hint: "ask for fewer at a time, page by page",
		})
	}
	if len(pages) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), indexTime)
	type stored struct {
		n   int
		err error
	}
	done := make(chan stored, 1)
	d.indexing.Go(func() { // a disk that hangs does not know of deadlines
		defer cancel()
		n, err := d.cortex.Add(ctx, pages)
		done <- stored{n, err}
	})
	var s stored
	select {
	case s = <-done:
	case <-ctx.Done():
		select {
		case s = <-done: // it ended because of the deadline, and knows more
		case <-time.After(100 * time.Millisecond):
			s.err = fault.New("CORTEX_TIMEOUT", "the index took longer than %s", indexTime)
		}
	}
	if x.Documents = s.n; s.err == nil {
		return
	}
	f := fault.From(s.err)
	x.Error = &api.Short{Code: string(f.Code), Retryable: f.Retryable, Message: f.Message}
	d.log.Warn("documents were not indexed", "wrapper", w.ID, "code", f.Code, "cause", f.Message)
}

// pagesOf makes the pages of a result: one for each document of mode documents,
// else one for all of it. Everything in it has been scrubbed of the credential.
func pagesOf(w *wrapper.Wrapper, out *executor.Outcome, at time.Time) []cortex.Page {
	sent := out.Call.Preview()
	page := cortex.Page{Wrapper: w.ID, URL: sent.URL, Host: w.Host(), At: at}
	same := ""
	if len(sent.Body) > 0 { // the body says what was asked for, as the URL of a GET does
		sum := sha256.Sum256(sent.Body)
		same = "\nbody " + hex.EncodeToString(sum[:8])
	}
	if w.Response.Mode != recipe.Documents {
		page.Title, page.Text = out.Result.Title, out.Result.Markdown
		if page.Title == "" {
			page.Title = w.Name
		} else if _, below, ok := strings.Cut(page.Text, "\n"); ok && strings.HasPrefix(page.Text, "## ") {
			page.Text = below // the heading is the title
		}
		if out.Result.Meta.Rendered == 0 || strings.TrimSpace(page.Text) == "" {
			return nil
		}
		if same != "" {
			page.Key = page.URL + "\n" + page.Title + same
		}
		return []cortex.Page{page}
	}
	pages := make([]cortex.Page, 0, len(out.Result.Documents))
	titles := map[string]int{} // of documents without an id
	for _, doc := range out.Result.Documents {
		p := page
		p.Title, p.Text, p.Key = doc.Title, doc.Markdown, recordID(doc.Record)
		if p.Key == "" {
			p.Key = p.URL + "\n" + p.Title + same
			if titles[p.Title]++; titles[p.Title] > 1 { // two of one title are two
				p.Key += "\nno. " + strconv.Itoa(titles[p.Title])
			}
		}
		pages = append(pages, p)
	}
	return pages
}

// recordID is the member id of a record, when it is a text or a number.
func recordID(record recipe.Value) string {
	o, ok := record.(recipe.Object)
	if !ok {
		return ""
	}
	switch id, _ := o.Get("id"); id := id.(type) {
	case string:
		return id
	case json.Number:
		return id.String()
	}
	return ""
}

// Recall searches what wrappers have read before.
func (d *Daemon) Recall(ctx context.Context, r *api.RecallRequest) (*api.RecallResult, error) {
	ctx, done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	now := d.now()
	q := cortex.Query{Text: r.Query, Wrapper: r.Wrapper, Limit: r.Limit}
	if q.Limit == 0 {
		q.Limit = api.RecallDefault
	}
	if q.Limit < 1 || q.Limit > api.RecallMost {
		return nil, fault.OneProblem("ARGS_INVALID", "RANGE", "limit", "is %d, not a whole number from 1 to %d", r.Limit, api.RecallMost).With(fault.Field("limit"))
	}
	if len(r.Query) > api.MaxRecallQuery {
		return nil, fault.OneProblem("ARGS_INVALID", "TOO_LONG", "query", "has %d bytes, a question can have %d", len(r.Query), api.MaxRecallQuery).With(fault.Field("query"))
	}
	if q.Since, err = pointInTime("since", r.Since, now); err != nil {
		return nil, err
	}
	hits, err := d.cortex.Search(ctx, q)
	if err != nil {
		return nil, recallFailed(err)
	}
	out := &api.RecallResult{OK: true, Documents: make([]api.RecallDocument, 0, len(hits))}
	for _, h := range hits {
		out.Documents = append(out.Documents, api.RecallDocument{
			Wrapper: h.Wrapper, Key: h.Key, Title: h.Title, URL: h.URL, ReadAt: h.At.Format(time.RFC3339), Age: max(0, int64(now.Sub(h.At)/time.Second)),
			Heading: h.Heading, Snippet: h.Snippet, Score: h.Score,
		})
	}
	if len(hits) == 0 {
		out.Note = d.nothingFound(ctx, r.Wrapper)
	}
	return out, nil
}

// recallFailed leaves out what the catalogue says to the caller of a run, who
// has a result without the index.
func recallFailed(err error) error {
	f := fault.From(err)
	if f.Code == "CORTEX_UNAVAILABLE" || f.Code == "CORTEX_TIMEOUT" {
		if e, ok := fault.Lookup(f.Code); ok && f.Hint == e.Hint {
			again := *f
			again.Hint = "Repeat the search in a moment, or run the wrapper that reads the documents."
			return &again
		}
	}
	return err
}

// nothingFound says what could have been found.
func (d *Daemon) nothingFound(ctx context.Context, asked string) string {
	s, err := d.cortex.Stats(ctx)
	if err != nil {
		return ""
	}
	if s.Pages == 0 {
		return "the index is empty: it holds what wrappers whose recipe has \"index\": \"cortex\" have read"
	}
	var named []string
	for _, w := range s.Wrappers {
		if w.Wrapper == asked {
			return fmt.Sprintf("none of the %s of %s has these words", documents(w.Pages), asked)
		}
		named = append(named, fmt.Sprintf("%s (%d)", w.Wrapper, w.Pages))
	}
	if more := len(named) - recallNaming; more > 0 {
		named = append(named[:recallNaming], fmt.Sprintf("%d more", more))
	}
	of := strings.Join(named, ", ")
	if asked != "" {
		return fmt.Sprintf("nothing that %s has read is in the index; there is %s", fault.Shorten(asked, 100), of)
	}
	return fmt.Sprintf("none of %s has these words; they are of %s", documents(s.Pages), of)
}

func documents(n int) string {
	if n == 1 {
		return "1 document"
	}
	return strconv.Itoa(n) + " documents"
}

// pointInTime reads the member field: a day, a time, or an age. "" is none.
func pointInTime(field, s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	const century = 100 * 365 * 24 * time.Hour
	if unit, ok := units[s[len(s)-1]]; ok {
		if n, err := strconv.ParseUint(s[:len(s)-1], 10, 32); err == nil && n >= 1 && n <= uint64(century/unit) {
			return now.Add(-time.Duration(n) * unit), nil
		}
	}
	return time.Time{}, fault.OneProblem("ARGS_INVALID", "TYPE", field, "%q is neither a day, a time nor an age", fault.Shorten(s, 60)).
		With(fault.Field(field), fault.Hint("Send 2026-11-30, 2026-11-30T08:00:00Z, or an age such as 12h or 7d (m, h, d, w)."))
}
