package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

// An importReport is what --json prints of an import.
type importReport struct {
	OK       bool                      `json:"ok"`
	DryRun   bool                      `json:"dryRun"`
	Kind     string                    `json:"kind"`
	Source   string                    `json:"source,omitempty"`
	Title    string                    `json:"title,omitempty"`
	Drafts   []*importDraft            `json:"drafts"`
	Refused  []importRefusal           `json:"refused"`
	Vanished []control.ImportedWrapper `json:"vanished"` // saved, and not in the source any more
	Dropped  []string                  `json:"dropped"`  // credentials that were left out, by place
	Notes    []string                  `json:"notes"`
	Secrets  []importSecret            `json:"secrets"` // that the drafts need
	Revision uint64                    `json:"revision,omitempty"`
}

type importDraft struct {
	ID        string          `json:"id"`
	Operation string          `json:"operation"`
	State     string          `json:"state"`
	Saved     bool            `json:"saved"`
	Tags      []string        `json:"tags,omitempty"`
	Notes     []string        `json:"notes,omitempty"`
	Secret    string          `json:"secret,omitempty"` // name of the credential
	Warnings  []api.Warning   `json:"warnings,omitempty"`
	Wrapper   json.RawMessage `json:"wrapper"`

	source        string // what its origin names
	host          string // that it calls
	command       string // that stores the credential
	before, after []byte // what its source changed; nil: nothing, or it is new
}

type importRefusal struct {
	Operation string `json:"operation"`
	Code      string `json:"code"`
	Reason    string `json:"reason"`
}

type importSecret struct {
	Name    string `json:"name"`
	Command string `json:"command"`
}

func (o *importOptions) report(found *importer.Result, source string) *importReport {
	r := &importReport{
		OK: true, DryRun: o.dryRun, Kind: o.kind, Source: source, Title: found.Title, Drafts: []*importDraft{}, Refused: []importRefusal{},
		Vanished: []control.ImportedWrapper{}, Dropped: append([]string{}, found.Dropped...), Notes: append([]string{}, found.Notes...), Secrets: []importSecret{},
	}
	for _, d := range found.Drafts {
		draft := &importDraft{ID: d.ID, Operation: d.Operation, State: stateNew, Tags: d.Tags, Notes: d.Notes, Wrapper: d.Document}
		draft.source = source
		if u, err := url.Parse(addressOf(d.Document)); err == nil {
			draft.host = u.Host
			if o.kind == "curl" || o.kind == "har" { // neither has a place that lasts
				draft.source = u.Scheme + "://" + u.Host
			}
		}
		if d.Secret != nil {
			draft.Secret, draft.command = d.Secret.Name, d.Secret.Command
		}
		r.Drafts = append(r.Drafts, draft)
	}
	for _, f := range found.Refused {
		r.Refused = append(r.Refused, importRefusal{f.Operation, f.Code, f.Reason})
	}
	return r
}

// addressOf is the URL of a wrapper document.
func addressOf(doc []byte) string {
	var w struct{ Request struct{ URL string } }
	if json.Unmarshal(doc, &w) != nil {
		return ""
	}
	return w.Request.URL
}

// same reports whether a saved wrapper, which calls host, was made from this
// operation of this source. A document may have moved, or have another title.
func (r *importReport) same(was control.ImportOrigin, draft *importDraft, host string) bool {
	moved := r.Title != "" && was.Title == r.Title && host == draft.host
	return was.Kind == r.Kind && was.Operation == draft.Operation && (draft.source != "" && was.Source == draft.source || moved)
}

// missing lists what was imported from this source and is neither among the
// drafts nor refused now. A curl line and a recording never hold everything.
func (r *importReport) missing(list []control.ImportedWrapper) {
	if r.Kind == "curl" || r.Kind == "har" {
		return
	}
	there := map[string]bool{}
	for _, d := range r.Drafts {
		there[d.Operation] = true
	}
	for _, f := range r.Refused {
		there[f.Operation] = true
	}
	for _, w := range list {
		from := r.Source != "" && w.Source == r.Source || r.Title != "" && w.Title == r.Title
		if w.Kind == r.Kind && from && !there[w.Operation] {
			r.Vanished = append(r.Vanished, w)
		}
	}
}

// secrets collects the credentials that the saved drafts need; of a dry run all.
func (r *importReport) secrets(saved []*importDraft, all bool) {
	if all {
		saved = r.Drafts
	}
	for _, d := range saved {
		known := slices.ContainsFunc(r.Secrets, func(s importSecret) bool { return s.Name == d.Secret })
		if d.command != "" && !known {
			r.Secrets = append(r.Secrets, importSecret{d.Secret, d.command})
		}
	}
}

// text is the report for a person. With numbered, what can be saved has the
// number that chooses it.
func (r *importReport) text(numbered bool) string {
	var b strings.Builder
	width := 0
	for _, d := range r.Drafts {
		width = max(width, len(d.ID))
	}
	n, margin := 0, ""
	if numbered {
		margin = "     "
	}
	for _, d := range r.Drafts {
		switch {
		case numbered && (d.State == stateNew || d.State == stateChanged):
			n++
			fmt.Fprintf(&b, "%4d ", n)
		default:
			b.WriteString(margin)
		}
		fmt.Fprintf(&b, "%-9s  %-*s  %s\n", d.State, width, clean(d.ID), clean(d.Operation))
		for _, note := range d.Notes {
			fmt.Fprintf(&b, "%s    %s\n", margin, clean(note))
		}
		switch {
		case d.State == stateTaken:
			fmt.Fprintf(&b, "%s    kept: another wrapper has this id; --prefix NAME begins the ids with a name\n", margin)
		case d.State == stateEdited && d.after == nil:
			fmt.Fprintf(&b, "%s    kept: it was edited, and its source is what it was\n", margin)
		case d.State == stateEdited:
			fmt.Fprintf(&b, "%s    kept: it was edited, and its source has changed too; the source would make of it\n", margin)
		}
		if d.after != nil {
			b.WriteString(indent(lineDiff(pretty(d.before), pretty(d.after)), margin+"    "))
		}
	}
	for _, f := range r.Refused {
		fmt.Fprintf(&b, "%srefused    %s: %s (%s)\n", margin, clean(f.Operation), clean(f.Reason), clean(f.Code))
	}
	for _, w := range r.Vanished {
		edited := ""
		if w.Edited {
			edited = ", edited"
		}
		fmt.Fprintf(&b, "%svanished   %s  %s (saved%s; `hbrestd wrapper rm %s` removes it)\n", margin, clean(w.ID), clean(w.Operation), edited, clean(w.ID))
	}
	for _, place := range r.Dropped {
		fmt.Fprintf(&b, "%sleft out   %s\n", margin, clean(place))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "%snote       %s\n", margin, clean(note))
	}
	return b.String()
}

// sum counts the states.
func (r *importReport) sum() string {
	count := map[string]int{}
	for _, d := range r.Drafts {
		count[d.State]++
	}
	parts := []string{}
	for _, s := range []string{stateNew, stateChanged, stateUnchanged, stateEdited, stateTaken} {
		if n := count[s]; n > 0 || s == stateNew {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if n := len(r.Vanished); n > 0 {
		parts = append(parts, fmt.Sprintf("%d vanished", n))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d refused", len(r.Refused))), ", ")
}
