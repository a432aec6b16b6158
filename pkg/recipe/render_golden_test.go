package recipe_test

import (
	"encoding/json"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A metaDoc is Meta as the golden files write it.
type metaDoc struct {
	Mode        recipe.Mode `json:"mode"`
	Selected    int         `json:"selected"`
	Rendered    int         `json:"rendered"`
	Shown       int         `json:"shown"`
	Truncated   bool        `json:"truncated"`
	Reason      string      `json:"reason,omitempty"`
	EmptyFields []string    `json:"emptyFields,omitempty"`
	Warnings    []string    `json:"warnings,omitempty"`
}

func metaText(m recipe.Meta) string {
	b, err := json.Marshal(metaDoc(m))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func decode(t *testing.T, data []byte) recipe.Value {
	t.Helper()
	v, err := recipe.Decode(data, recipe.DecodeLimits{})
	if err != nil {
		t.Fatalf("decoding %s: %v", data, err)
	}
	return v
}

func parse(t *testing.T, doc string) *recipe.Recipe {
	t.Helper()
	r, report := recipe.Parse(decode(t, []byte(doc)))
	if !report.OK() {
		t.Fatalf("recipe %s: %+v", doc, report.Problems)
	}
	return r
}

// render reads the bodies with the recipe and renders them under the name.
func render(t *testing.T, r *recipe.Recipe, name string, bodies ...string) *recipe.Result {
	t.Helper()
	var pages []*recipe.Page
	for _, b := range bodies {
		p, err := r.Read([]byte(b), 1000, nil)
		if err != nil {
			t.Fatalf("reading %.200s: %v", b, err)
		}
		pages = append(pages, p)
	}
	return r.Render(pages, recipe.RenderOptions{Name: name})
}

func records(res *recipe.Result) string { return string(recipe.Encode(recipe.Array(res.Records))) }

func documents(res *recipe.Result) string {
	all := recipe.Array{}
	for _, d := range res.Documents {
		all = append(all, recipe.Object{{"title", d.Title}, {"markdown", d.Markdown}, {"record", d.Record}})
	}
	return string(recipe.Encode(all))
}

func TestRenderGolden(t *testing.T) {
	inputs := []string{"recipe.json", "name.txt", "input.json", "page2.json"}
	outputs := []string{"markdown", "records.json", "documents.json", "meta.json"}
	golden.Run(t, "testdata/golden/*.txtar", inputs, outputs, func(t *testing.T, c *golden.Case) {
		r := parse(t, string(c.Input("recipe.json")))
		bodies := []string{string(c.Input("input.json"))}
		if c.Has("page2.json") {
			bodies = append(bodies, string(c.Input("page2.json")))
		}
		res := render(t, r, string(c.Input("name.txt")), bodies...)
		c.Want("markdown", res.Markdown)
		c.Want("records.json", records(res))
		c.Want("meta.json", metaText(res.Meta))
		if c.Has("documents.json") {
			c.Want("documents.json", documents(res))
		}
	})
}
