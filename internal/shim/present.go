package shim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// maxText is the most bytes of one text or of the records of one answer. A
// line of the protocol may have 16 MiB and JSON writes some bytes as six, so
// two such parts always fit. The daemon's own limits are far below; this one
// holds whatever it sends.
const maxText = 1 << 20

// An answer is what a tool returns: a text, notes below it, and for one format
// the same records as JSON.
type answer struct {
	text  string
	notes []string // a line each
	// apart keeps text whole, because a program may parse it: the notes are
	// then a second text.
	apart      bool
	structured json.RawMessage // an object
	failed     bool
}

func textAnswer(s string) *answer { return &answer{text: s} }

func (a *answer) result() *mcp.CallToolResult {
	text, notes := capText(a.text), strings.Join(a.notes, "\n")
	if notes != "" && !a.apart {
		text += "\n\n" + notes
	}
	r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: a.failed}
	if notes != "" && a.apart {
		r.Content = append(r.Content, &mcp.TextContent{Text: notes})
	}
	if a.structured != nil {
		r.StructuredContent = a.structured
	}
	return r
}

// capText cuts s to maxText bytes at the end of a line, or else of a
// character, and says so.
func capText(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := s[:maxText]
	if i := strings.LastIndexByte(cut, '\n'); i > maxText/2 {
		cut = cut[:i]
	}
	for cut != "" { // at most three bytes of a character that was cut
		if r, n := utf8.DecodeLastRuneInString(cut); r != utf8.RuneError || n != 1 {
			break
		}
		cut = cut[:len(cut)-1]
	}
	return fmt.Sprintf("%s\n\n[cut: the first %d of %d bytes; ask for fewer items or pages]", cut, len(cut), len(s))
}

// compact is JSON without white space, every other byte as it came.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// presentError is the text of a failed call:
//
//	CODE (status 429): message
//	Hint: what to do
//	Retryable: yes, after 5 s
//	- field: message (hint)
func presentError(e *fault.Error) string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	message, details := withoutDetails(e), e.Details
	if one, ok := onlyProblem(e); ok {
		message, details = one, nil
		if d := e.Details[0].Hint; !strings.Contains(e.Hint, d) {
			message += inBrackets(d)
		}
	}
	fmt.Fprintf(&b, ": %s\n", message)
	if e.Field != "" && len(e.Details) == 0 && !strings.Contains(message, e.Field) {
		fmt.Fprintf(&b, "Field: %s\n", e.Field)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "Hint: %s\n", e.Hint)
	}
	b.WriteString("Retryable: " + retryable(e.Retryable, e.RetryAfter))
	for _, d := range details {
		fmt.Fprintf(&b, "\n- %s: %s", d.Field, d.Message)
		if d.Hint != "" {
			fmt.Fprintf(&b, " (%s)", d.Hint)
		}
	}
	return b.String()
}

// onlyProblem is the message of an error whose one detail says what the
// message says, in full: the message may be cut.
func onlyProblem(e *fault.Error) (string, bool) {
	if len(e.Details) != 1 {
		return "", false
	}
	d := e.Details[0]
	if whole := d.Field + ": " + d.Message; strings.HasPrefix(whole, strings.TrimSuffix(e.Message, "…")) {
		return whole, true
	}
	return e.Message, strings.Contains(e.Message, d.Message) && strings.Contains(e.Message, d.Field)
}

// withoutDetails is the message up to where it starts to repeat the details,
// which follow in full.
func withoutDetails(e *fault.Error) string {
	if len(e.Details) > 1 {
		if head, _, ok := strings.Cut(e.Message, ": "+e.Details[0].Field); ok {
			return head
		}
	}
	return e.Message
}

func retryable(yes bool, after time.Duration) string {
	switch {
	case !yes:
		return "no"
	case after <= 0:
		return "yes"
	}
	return fmt.Sprintf("yes, after %d s", (after+time.Second-1)/time.Second)
}

// presentRun makes the answer of a run, or of a rendered sample, in one of the
// three formats.
func presentRun(r *api.RunResult, format string, k ask) *answer {
	notes := footer(r, k)
	records, dropped := capRecords(r.Records)
	if dropped != "" {
		notes = append(notes, dropped)
	}
	if format == api.FormatJSON {
		return &answer{text: compact(records), notes: notes, apart: true}
	}
	a := &answer{text: markdown(r), notes: notes}
	if format == api.FormatBoth {
		a.structured = structured(r, records)
	}
	return a
}

// markdown is never empty: some clients show an empty text as a failure.
func markdown(r *api.RunResult) string {
	text := ""
	if r.Markdown != nil {
		text = strings.TrimRight(*r.Markdown, "\n ")
	}
	if text != "" {
		return text
	}
	if r.Status != nil {
		return fmt.Sprintf("No content (status %d).", *r.Status)
	}
	return "No content."
}

// structured is always an object: strict clients throw on an array.
func structured(r *api.RunResult, records json.RawMessage) json.RawMessage {
	raw, err := json.Marshal(struct {
		Records json.RawMessage `json:"records"`
		Meta    api.Meta        `json:"meta"`
		Paging  *api.Paging     `json:"paging,omitempty"`
		Indexed *api.Indexed    `json:"indexed,omitempty"`
	}{records, r.Meta, r.Paging, r.Indexed})
	if err != nil {
		return nil // records that are not JSON: the text still stands
	}
	return raw
}

// capRecords keeps as many whole records as fit in maxText and says what is
// missing. No records are an empty array.
func capRecords(records json.RawMessage) (kept json.RawMessage, note string) {
	if len(bytes.TrimSpace(records)) == 0 || string(records) == "null" {
		return json.RawMessage("[]"), ""
	}
	if len(records) <= maxText {
		return records, ""
	}
	d := json.NewDecoder(bytes.NewReader(records))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return json.RawMessage("[]"), fmt.Sprintf("records left out: %d bytes, the limit is %d", len(records), maxText)
	}
	out := []byte{'['}
	n, total := 0, 0
	for d.More() {
		var item json.RawMessage
		if d.Decode(&item) != nil {
			break
		}
		if total++; n == total-1 && len(out)+len(item)+2 <= maxText {
			if n > 0 {
				out = append(out, ',')
			}
			out = append(out, item...)
			n++
		}
	}
	return append(out, ']'), fmt.Sprintf("records: %d of %d (limit %d bytes)", n, total, maxText)
}

// presentPlan is the text of a dry run.
func presentPlan(p *api.Plan, unsaved bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Dry run of %s: nothing was sent.\n\n%s %s\n", p.Wrapper.ID, p.Request.Method, p.Request.URL)
	for _, h := range members(p.Request.Headers) {
		fmt.Fprintf(&b, "%s: %s\n", h.name, h.value)
	}
	if len(p.Request.Body) > 0 {
		fmt.Fprintf(&b, "\n%s\n", requestBody(&p.Request))
	}
	b.WriteByte('\n')
	if args := compact(p.Args); args != "" && args != "null" {
		fmt.Fprintf(&b, "args with defaults: %s\n", args)
	}
	if p.Secret != "" {
		fmt.Fprintf(&b, "credential: %s\n", p.Secret)
	}
	fmt.Fprintf(&b, "mutating: %s\n", yesNo(p.Mutating))
	for _, r := range p.Refused {
		fmt.Fprintf(&b, "would be refused: %s: %s%s\n", r.Code, r.Message, inBrackets(r.Hint))
	}
	for _, w := range p.Warnings {
		b.WriteString(warning(w) + "\n")
	}
	switch {
	case len(p.Refused) > 0:
	case unsaved:
		b.WriteString("Next: wrap_create with this wrapper.\n")
	default:
		b.WriteString("Next: wrap_run with the same id and args.\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// requestBody shows a body as it is sent: a form or a text without the quotes
// that it has on the way here.
func requestBody(r *api.Request) string {
	var s string
	if r.BodyType != "" && json.Unmarshal(r.Body, &s) == nil {
		return s
	}
	return compact(r.Body)
}

func presentDerived(r *api.DeriveResult) string {
	var b strings.Builder
	b.WriteString(compact(r.Recipe) + "\n\n")
	for _, w := range r.Warnings {
		b.WriteString("warning: " + w + "\n")
	}
	if h := r.Hints; h != nil && len(h.Pagination) > 0 {
		b.WriteString("paging guess, to add as \"pagination\" if the API pages this way: " + compact(h.Pagination) + "\n")
		if bytes.Contains(h.Pagination, []byte(`"pageSize"`)) {
			b.WriteString("pageSize is only what this sample had: raise it as far as the API is known to allow. It is sent in place of an argument for the same parameter.\n")
		}
	}
	b.WriteString("Next: check the columns, then wrap_create with this as \"response\".")
	return b.String()
}

func presentSaved(r *api.ChangeResult, done, tool string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (revision %d).\n", done, r.ID, r.Revision)
	for _, w := range r.Warnings {
		b.WriteString(warning(w) + "\n")
	}
	if tool != "" {
		b.WriteString(tool + "\n")
	}
	fmt.Fprintf(&b, "Next: wrap_test {\"id\":%q,\"args\":{...}} shows the exact request, wrap_run sends it.", r.ID)
	return b.String()
}

func presentDeleted(r *api.ChangeResult) string {
	text := fmt.Sprintf("Deleted %s (revision %d).", r.ID, r.Revision)
	for _, w := range r.Warnings {
		text += "\n" + warning(w)
	}
	return text
}

func warning(w api.Warning) string {
	s := "warning: "
	if w.Field != "" && !strings.Contains(w.Message, w.Field) {
		s += w.Field + ": "
	}
	return s + w.Message + inBrackets(w.Hint)
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

type member struct{ name, value string }

// members reads an object in its own order; values that are not strings are
// shown as JSON.
func members(raw json.RawMessage) []member {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var ms []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = compact(value)
		}
		ms = append(ms, member{fmt.Sprint(name), s})
	}
	return ms
}
