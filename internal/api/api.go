// Package api is the words that hb-rest, the bridge and its other callers
// exchange: the JSON bodies of /hello and /wrap/*, the header names, and the
// proof by which the daemon shows who it is.
//
// It knows no wrapper and no recipe: documents, arguments and records pass
// through as raw JSON, so that numbers keep their digits. Start with
// [RunRequest] and [RunResult]; docs/api.md describes each route.
package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Header names of the bridge.
const (
	HeaderVersion     = "X-HB-Version"       // both sides send their version
	HeaderRevision    = "X-HB-Revision"      // the store's revision, on every answer of /wrap/*
	HeaderLegacyToken = "X-Kuang-Wrap-Token" // accepted beside Authorization: Bearer
)

// Limits of the bridge.
const (
	MaxBody     = 8 << 20 // bytes of a request body: a 5 MB sample and its escapes
	MaxPagesCap = 25      // hard maximum of max_pages
	MaxItemsCap = 1000    // hard maximum of max_items, and of a recipe's limits.maxItems
	MaxNames    = 50      // names in fields: as many as a recipe can have
)

// Formats of a result.
const (
	FormatMarkdown = "markdown"
	FormatJSON     = "json"
	FormatBoth     = "both"
)

// Hello answers GET /hello.
type Hello struct {
	Proof   string `json:"proof"` // see Proof
	Version string `json:"version"`
}

// Status answers GET /wrap/status.
type Status struct {
	OK           bool   `json:"ok"`
	Version      string `json:"version"`
	PID          int    `json:"pid"`
	Address      string `json:"address"`
	Home         string `json:"home"`
	TokenFile    string `json:"tokenFile"`
	StartedAt    string `json:"startedAt"` // RFC 3339, UTC
	Wrappers     int    `json:"wrappers"`
	Damaged      int    `json:"damaged"` // stored records that cannot be read
	Revision     uint64 `json:"revision"`
	AllowPrivate bool   `json:"allowPrivate"`
	AllowHTTP    bool   `json:"allowHttp"`
	CallTimeout  int64  `json:"callTimeoutMs"`
	// Notes say what a person should know, such as a damaged store that was
	// set aside at start.
	Notes []string `json:"notes,omitempty"`
}

// A ManifestQuery says which wrappers GET /wrap/manifest is to list: all, those
// of a search, or those of a tool list. The last two do not go together.
type ManifestQuery struct {
	After uint64 // above 0: the revision that is known; the answer waits for a newer one, for a while
	Query string // only those with this text in id, name, description or host
	Limit int    // only the first ones, at most MaxListed; 0: all
	Tools bool   // only what a tool list is made of: wrappers that are tools of their own, and those with an Index
	Since string // with Tools: the Mark of what is known; of them only those that changed
}

// MaxListed is the most that ManifestQuery.Limit can be.
const MaxListed = 1000

// Chooses reports whether not all wrappers are asked for.
func (q *ManifestQuery) Chooses() bool {
	return q.Query != "" || q.Limit != 0 || q.Tools || q.Since != ""
}

// Manifest answers GET /wrap/manifest.
type Manifest struct {
	Revision uint64          `json:"revision"`
	Wrappers []ManifestEntry `json:"wrappers"` // by id
	// The next ones are set when not all wrappers were asked for.
	Total   int `json:"total,omitempty"`   // how many there are in all
	Matched int `json:"matched,omitempty"` // how many the query finds, listed or not
	// Mark names what a tool list is made of, as it is in this answer. Since, the
	// Mark that was sent, says that Wrappers are those that changed after it; of
	// the rest, Removed are no part of a tool list any more and the others stay.
	// Without Since the answer is whole.
	Mark    string   `json:"mark,omitempty"`
	Since   string   `json:"since,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// Finds reports whether one of the texts has query, in any case. An empty query
// finds everything.
func Finds(query string, texts ...string) bool {
	query = strings.ToLower(strings.TrimSpace(query))
	for _, s := range texts {
		if strings.Contains(strings.ToLower(s), query) {
			return true
		}
	}
	return false
}

// A ManifestEntry is what a list shows of one wrapper.
type ManifestEntry struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	Method       string   `json:"method"`            // the default one
	Methods      []string `json:"methods,omitempty"` // when there are several
	Host         string   `json:"host"`
	Required     []string `json:"required"` // names of required arguments
	Secret       string   `json:"secret,omitempty"`
	Mutating     bool     `json:"mutating"`
	ExposeAsTool bool     `json:"exposeAsTool"`
	// The next four are set for exposed wrappers only.
	Tool        string          `json:"tool,omitempty"`        // the name it keeps as a tool of its own
	Priority    int             `json:"priority,omitempty"`    // 0 to 1000, higher first under a client's cap
	Quarantined string          `json:"quarantined,omitempty"` // why some client would refuse its schema: not shown as a tool
	InputSchema json.RawMessage `json:"inputSchema,omitempty"` // what a client is shown; absent when quarantined
	Verified    string          `json:"verified,omitempty"`    // RFC 3339; empty: never
	Stale       bool            `json:"stale,omitempty"`       // verified more than 30 days ago
	Drift       []Drift         `json:"drift,omitempty"`       // fields that had values and have none any more
	Index       string          `json:"index,omitempty"`       // "cortex": what it reads is kept to be found again
	Damaged     string          `json:"damaged,omitempty"`     // why the record cannot be read; then only ID is set
}

// A Drift is a field of a wrapper's recipe that earlier answers filled and the
// last ones, of three items or more, did not: the API may have changed. It ends
// with the next value, or with a change of the wrapper.
type Drift struct {
	Field string `json:"field"` // its label
	Since string `json:"since"` // RFC 3339: the first answer without it
}

// VerifiedNote is the day of the last success in words: "verified 2026-11-30",
// with " (stale)" behind it, or "never verified".
func (e *ManifestEntry) VerifiedNote() string {
	switch {
	case e.Verified == "":
		return "never verified"
	case e.Stale:
		return "verified " + day(e.Verified) + " (stale)"
	}
	return "verified " + day(e.Verified)
}

// DriftNote is Drift in words, "Price, Rating empty since 2026-11-20" with the
// earliest day; "" when there is none. It names three fields at most.
func (e *ManifestEntry) DriftNote() string {
	const named = 3
	if len(e.Drift) == 0 {
		return ""
	}
	var fields []string
	since := e.Drift[0].Since
	for _, d := range e.Drift {
		if len(fields) < named {
			fields = append(fields, fault.Shorten(d.Field, 40))
		}
		since = min(since, d.Since) // all in UTC and of one length
	}
	s := strings.Join(fields, ", ")
	if more := len(e.Drift) - named; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s + " empty since " + day(since)
}

func day(at string) string { return at[:min(len(at), len("2006-01-02"))] }

// SecretList answers GET /wrap/secrets. It never holds a value.
type SecretList struct {
	Secrets   []Secret `json:"secrets"`
	Available bool     `json:"available"`
	Reason    string   `json:"reason,omitempty"` // why not available
}

// A Secret is what an agent may know of a credential.
type Secret struct {
	Name         string   `json:"name"`
	Headers      []string `json:"headers"`
	AllowedHosts []string `json:"allowedHosts"`
}

// RunRequest is the body of POST /wrap/run.
type RunRequest struct {
	ID       string          `json:"id"`
	Args     json.RawMessage `json:"args,omitempty"`      // an object; absent or null reads as {}
	Format   string          `json:"format,omitempty"`    // empty: everything
	MaxPages *int            `json:"max_pages,omitempty"` // 1 to MaxPagesCap; maxPages is accepted too
	MaxItems *int            `json:"max_items,omitempty"` // 1 to MaxItemsCap, lowers the recipe's; maxItems is accepted too
	Fields   []string        `json:"fields,omitempty"`    // only these labels or record keys, at most MaxNames; empty: all
}

// TestRequest is the body of POST /wrap/test: a dry run by default, a rendered
// sample when Sample is given, a live call without saving when DryRun is false.
type TestRequest struct {
	ID       string          `json:"id,omitempty"`
	Wrapper  json.RawMessage `json:"wrapper,omitempty"` // inline document instead of ID
	Args     json.RawMessage `json:"args,omitempty"`
	Sample   json.RawMessage `json:"sample,omitempty"` // any JSON value, or a string that holds one
	DryRun   *bool           `json:"dryRun,omitempty"` // nil: true
	Format   string          `json:"format,omitempty"`
	MaxPages *int            `json:"maxPages,omitempty"` // max_pages is accepted too
	MaxItems *int            `json:"maxItems,omitempty"` // as of a run; max_items is accepted too
	Fields   []string        `json:"fields,omitempty"`   // as of a run
}

// DeriveRequest is the body of POST /wrap/derive.
type DeriveRequest struct {
	Sample      json.RawMessage `json:"sample,omitempty"`
	URL         string          `json:"url,omitempty"`
	ID          string          `json:"id,omitempty"`
	Name        string          `json:"name,omitempty"` // becomes the recipe's title
	Description string          `json:"description,omitempty"`
	MaxFields   *int            `json:"max_fields,omitempty"` // 1 to 20; maxFields is accepted too
}

// DeriveResult answers POST /wrap/derive.
type DeriveResult struct {
	OK       bool            `json:"ok"`
	Source   string          `json:"source"` // "sample", or the URL
	Recipe   json.RawMessage `json:"recipe"`
	Warnings []string        `json:"warnings,omitempty"`
	Hints    *DeriveHints    `json:"hints,omitempty"`
}

// DeriveHints are guesses that are not part of the recipe.
type DeriveHints struct {
	Pagination json.RawMessage `json:"pagination,omitempty"` // what response.pagination could be
}

// ChangeRequest is the body of POST /wrap/wrappers.
type ChangeRequest struct {
	Action  string          `json:"action"` // create, update, delete, get
	ID      string          `json:"id,omitempty"`
	Wrapper json.RawMessage `json:"wrapper,omitempty"`
}

// ChangeResult answers POST /wrap/wrappers.
type ChangeResult struct {
	OK       bool            `json:"ok"`
	ID       string          `json:"id"`
	Wrapper  json.RawMessage `json:"wrapper,omitempty"` // as stored; absent after delete
	Revision uint64          `json:"revision"`
	Warnings []Warning       `json:"warnings,omitempty"`
}

// A Warning is something suspicious in an accepted document.
type Warning struct {
	Field   string `json:"field,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// WrapperRef names the wrapper a result belongs to.
type WrapperRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Request is the request as it was, or would be, sent: redacted.
type Request struct {
	Method string `json:"method"`
	URL    string `json:"url"`
	// FinalURL is where redirects led; empty without any.
	FinalURL string          `json:"finalUrl,omitempty"`
	Headers  json.RawMessage `json:"headers"` // object, in order
	// Body is the JSON that was sent, or a string that holds the form or text:
	// BodyType says which.
	Body     json.RawMessage `json:"body,omitempty"`
	BodyType string          `json:"bodyType,omitempty"` // form or text; absent: JSON, or no body
}

// Meta is the recipe's account of a rendering.
type Meta struct {
	Mode        string   `json:"mode"`
	Selected    int      `json:"selected"`
	Rendered    int      `json:"rendered"`
	Truncated   bool     `json:"truncated"`
	Reason      string   `json:"reason,omitempty"`
	Shown       *int     `json:"shown,omitempty"`
	EmptyFields []string `json:"emptyFields,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

// Paging is the account of a paginated run.
type Paging struct {
	Pages   int    `json:"pages"`
	Cap     int    `json:"cap"`
	Items   int    `json:"items"`
	Total   *int64 `json:"total,omitempty"`
	More    bool   `json:"more"`
	Stopped string `json:"stopped"`
	Error   *Short `json:"error,omitempty"`
}

// Indexed is the account of the local index. It never fails the call.
type Indexed struct {
	Documents int    `json:"documents"`         // stored, or found unchanged
	Skipped   string `json:"skipped,omitempty"` // why nothing was to be indexed
	Error     *Short `json:"error,omitempty"`
}

// Short is an error inside a successful result.
type Short struct {
	Code         string `json:"code"`
	Status       int    `json:"status,omitempty"`
	Retryable    bool   `json:"retryable"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"` // 0 if unknown
	Message      string `json:"message,omitempty"`
}

// RunResult answers POST /wrap/run and the sample and live forms of
// POST /wrap/test. A failed run is an Error with HTTP status 200.
type RunResult struct {
	OK         bool            `json:"ok"`
	Status     *int            `json:"status"` // upstream status; null for a sample
	DurationMs int64           `json:"durationMs"`
	Wrapper    WrapperRef      `json:"wrapper"`
	Markdown   *string         `json:"markdown,omitempty"` // absent for format json
	Records    json.RawMessage `json:"records,omitempty"`  // array; absent for format markdown
	Meta       Meta            `json:"meta"`
	Paging     *Paging         `json:"paging,omitempty"`
	Indexed    *Indexed        `json:"indexed,omitempty"`
	Request    *Request        `json:"request,omitempty"` // absent for a sample
	Warnings   []Warning       `json:"warnings,omitempty"`
}

// Plan answers a dry run: the exact request, nothing sent.
type Plan struct {
	OK      bool            `json:"ok"`
	DryRun  bool            `json:"dryRun"` // always true
	Wrapper WrapperRef      `json:"wrapper"`
	Args    json.RawMessage `json:"args"` // with defaults filled in
	Request Request         `json:"request"`
	Secret  string          `json:"secret,omitempty"` // name of the credential that would be attached
	// Mutating says whether the call counts as a write.
	Mutating bool      `json:"mutating"`
	MaxPages int       `json:"maxPages,omitempty"` // requests that the recipe's pagination may send; Request is the first
	Refused  []Refusal `json:"refused,omitempty"`  // what would stop a real call now
	Warnings []Warning `json:"warnings,omitempty"`
}

// A Refusal is a reason why a real call would not be sent.
type Refusal struct {
	Code    string `json:"code"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// TestResult is either a Plan or a RunResult.
type TestResult struct {
	Plan *Plan
	Run  *RunResult
}

// MarshalJSON writes the one that is set.
func (t TestResult) MarshalJSON() ([]byte, error) {
	if t.Plan != nil {
		return json.Marshal(t.Plan)
	}
	return json.Marshal(t.Run)
}

// Error is the body of every failure.
type Error struct {
	OK           bool        `json:"ok"` // always false
	Code         string      `json:"code"`
	Status       *int        `json:"status"` // upstream status
	Field        *string     `json:"field"`
	Retryable    bool        `json:"retryable"`
	Hint         string      `json:"hint"`
	Message      string      `json:"message"`
	RetryAfterMs int64       `json:"retryAfterMs,omitempty"`
	Details      []Detail    `json:"details"`
	Wrapper      *WrapperRef `json:"wrapper,omitempty"`
	Request      *Request    `json:"request,omitempty"`
	DurationMs   int64       `json:"durationMs,omitempty"` // always written beside a Request
	Warnings     []Warning   `json:"warnings,omitempty"`   // about the document or the arguments, beside what failed
}

// MarshalJSON writes the duration of a call also when it is nothing: a reader
// must not take "refused at once" for "not known".
func (e Error) MarshalJSON() ([]byte, error) {
	type members Error // without this method
	out := struct {
		members
		DurationMs *int64 `json:"durationMs,omitempty"`
	}{members: members(e)}
	if e.Request != nil || e.DurationMs != 0 {
		out.DurationMs = &e.DurationMs
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // that is for the outer encoder to decide
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("writing an error: %w", err)
	}
	return b.Bytes(), nil
}

// A Detail is one problem of a refused document.
type Detail struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}
