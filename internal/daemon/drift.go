package daemon

import (
	"slices"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

const (
	// driftItems is how many items in a row lack a field before it counts as
	// drift: one item without a discount is a product, three are a question.
	driftItems = 3
	// staleAfter is how long a successful run vouches for a wrapper.
	staleAfter = 30 * 24 * time.Hour
)

// noteFields remembers which fields a complete run filled. rec is the recipe
// that was rendered; nil is the wrapper's own.
func (d *Daemon) noteFields(w *wrapper.Wrapper, rec *recipe.Recipe, m recipe.Meta) {
	if rec == nil {
		rec = w.Response
	}
	if rec == nil || len(rec.Fields) == 0 || m.Rendered == 0 {
		return // no item says nothing about its fields
	}
	at := d.now().UTC().Truncate(time.Millisecond)
	d.store.NoteFields(w, func(notes []store.FieldNote) ([]store.FieldNote, bool) {
		changed := false
		for i := range rec.Fields {
			label := rec.Fields[i].Label
			var one bool
			notes, one = noted(notes, label, !slices.Contains(m.EmptyFields, label), m.Rendered, at)
			changed = changed || one
		}
		return notes, changed
	})
}

// noted adds what one run saw of one field. A field that was never filled is
// not watched: it may be one that this API seldom has, or a path that was wrong
// from the start, which the result itself says. It leaves notes as they are and
// gives others when something is new.
func noted(notes []store.FieldNote, label string, filled bool, items int, at time.Time) ([]store.FieldNote, bool) {
	i := slices.IndexFunc(notes, func(n store.FieldNote) bool { return n.Label == label })
	switch {
	case filled && i < 0:
		return append(slices.Clip(notes), store.FieldNote{Label: label, Filled: true}), true
	case filled && notes[i].Empty > 0:
		notes = slices.Clone(notes)
		notes[i] = store.FieldNote{Label: label, Filled: true}
		return notes, true
	case filled || i < 0 || notes[i].Empty >= driftItems: // nothing new, and nothing to write
		return notes, false
	}
	notes = slices.Clone(notes)
	n := &notes[i]
	if n.Empty == 0 {
		n.Since = at
	}
	n.Empty = min(n.Empty+items, driftItems)
	return notes, true
}

// drift is what the notes amount to.
func drift(notes []store.FieldNote) []api.Drift {
	var out []api.Drift
	for _, n := range notes {
		if n.Filled && n.Empty >= driftItems {
			out = append(out, api.Drift{Field: n.Label, Since: n.Since.UTC().Format(time.RFC3339)})
		}
	}
	return out
}

// stale reports whether a wrapper's last success is too long ago to vouch for it.
func stale(verified, now time.Time) bool {
	return !verified.IsZero() && now.Sub(verified) > staleAfter
}
