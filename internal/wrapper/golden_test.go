package wrapper_test

import (
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// TestGolden reads the cases that testdata/README.md describes.
func TestGolden(t *testing.T) {
	inputs := []string{"wrapper.json", "args.json"}
	outputs := []string{"problems", "warnings", "request", "refused", "schema"}
	golden.Run(t, "testdata/golden/*.txtar", inputs, outputs, func(t *testing.T, c *golden.Case) {
		w, report := wrapper.Parse(c.Input("wrapper.json"))
		if len(report.Warnings) > 0 || c.Has("warnings") {
			c.Want("warnings", lines(report.Warnings))
		}
		if w == nil {
			for i, p := range report.Problems {
				if strings.HasPrefix(p.Field, "response") { // the words are pkg/recipe's
					report.Problems[i] = recipe.Problem{Field: p.Field, Code: p.Code, Message: "…"}
				}
			}
			c.Want("problems", lines(report.Problems))
			return
		}
		again, report := wrapper.Parse(w.Document())
		if !report.OK() || string(again.Document()) != string(w.Document()) {
			t.Errorf("its own document is read otherwise: %s\n%s", lines(report.Problems), w.Document())
		}
		if c.Has("schema") {
			c.Want("schema", string(recipe.Encode(w.EffectiveSchema())))
		}
		call, err := w.Build(c.Input("args.json"))
		if err != nil {
			c.Want("refused", lines(details(err)))
			return
		}
		c.Want("request", sent(call))
	})
}

// details are the problems inside an error.
func details(err error) []recipe.Problem {
	var out []recipe.Problem
	for _, d := range fault.From(err).Details {
		out = append(out, recipe.Problem{Field: d.Field, Code: string(d.Code), Message: d.Message, Hint: d.Hint})
	}
	return out
}
