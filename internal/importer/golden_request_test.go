package importer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

// TestGoldenRecordings shows whole results: what a person sees before saving.
func TestGoldenRecordings(t *testing.T) {
	for _, kind := range []string{"curl", "postman", "har"} {
		golden.Run(t, "testdata/golden/"+kind+"/*.txtar", []string{"input"}, []string{"result"}, func(t *testing.T, c *golden.Case) {
			input := c.Input("input")
			var r *importer.Result
			var err error
			switch kind {
			case "curl":
				r, err = importer.Curl(string(input), importer.Options{})
			case "postman":
				r, err = importer.Postman(input, importer.Options{})
			case "har":
				r, err = importer.HAR(input, importer.Options{})
			}
			c.Want("result", resultText(t, r, err))
		})
	}
}

func resultText(t *testing.T, r *importer.Result, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	if r.Title != "" {
		fmt.Fprintf(&b, "title: %s\n", r.Title)
	}
	for _, d := range r.Drafts {
		fmt.Fprintf(&b, "draft %s from %s %q\n", d.ID, d.Operation, d.Tags)
		var doc bytes.Buffer
		if err := json.Indent(&doc, d.Document, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteString(doc.String() + "\n")
		for _, n := range d.Notes {
			fmt.Fprintf(&b, "note: %s\n", n)
		}
		if d.Secret != nil {
			fmt.Fprintf(&b, "secret: %s\n", d.Secret.Command)
		}
	}
	for _, f := range r.Refused {
		fmt.Fprintf(&b, "refused: %s %s: %s\n", f.Operation, f.Code, f.Reason)
	}
	for _, s := range r.Dropped {
		fmt.Fprintf(&b, "dropped: %s\n", s)
	}
	for _, s := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", s)
	}
	return b.String()
}
