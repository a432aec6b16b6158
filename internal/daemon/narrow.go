package daemon

import (
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// narrowed is the recipe of a reader who asked for less than the wrapper's own
// shows; nil when nothing was asked. A name that is not there is refused before
// anything is sent.
func narrowed(w *wrapper.Wrapper, fields []string, maxItems *int) (*recipe.Recipe, error) {
	if len(fields) == 0 && maxItems == nil {
		return nil, nil
	}
	most := 0
	if maxItems != nil {
		if most = *maxItems; most < 1 || most > api.MaxItemsCap {
			return nil, fault.New("MAX_ITEMS_INVALID", "max_items is %d, not a whole number from 1 to %d", most, api.MaxItemsCap).
				With(fault.Field("body.max_items"))
		}
	}
	rec := w.Response
	if rec == nil {
		rec = recipe.Plain()
	}
	narrow, unknown := rec.Narrow(fields, most)
	if unknown != nil {
		return nil, unknownFields(rec.Names(), unknown)
	}
	return narrow, nil
}

// unknownFields lists what would have been right: a reader cannot see the
// recipe in the tool list.
func unknownFields(known, unknown []string) error {
	one, several := "is neither a label nor a record key of the recipe", "are neither labels nor record keys of the recipe"
	hint := "fields takes: " + fault.Shorten(strings.Join(known, ", "), maxKnown)
	if known == nil {
		one, several = "is not a path", "are no paths"
		hint = "the recipe names no fields, so fields takes paths into an item, such as title or user.login"
	}
	quoted := make([]string, len(unknown))
	for i, name := range unknown {
		quoted[i] = `"` + fault.Shorten(name, 60) + `"`
	}
	text := strings.Join(quoted, ", ") + " " + one
	if len(unknown) > 1 {
		text = strings.Join(quoted, ", ") + " " + several
	}
	f := fault.OneProblem("ARGS_INVALID", "UNKNOWN_FIELD", "body.fields", "%s", text).With(fault.Field("body.fields"))
	f.Details[0].Hint = hint
	return f
}

// maxKnown is how many characters the list of names has in an error.
const maxKnown = 600
