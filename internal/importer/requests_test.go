package importer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// TestRequests compares what drafts send, byte for byte, with what a person
// wrote down from the document. It has no -update: an expectation that
// changes is thought about.
func TestRequests(t *testing.T) {
	files, err := filepath.Glob("testdata/requests/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	total := 0
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			document, cases := requestCases(t, data)
			r, err := importer.OpenAPI(document, importer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			drafts := map[string]*wrapper.Wrapper{}
			for _, d := range r.Drafts {
				drafts[d.Operation], _ = wrapper.Parse(d.Document)
			}
			for _, x := range r.Refused {
				t.Errorf("%s is refused: %s", x.Operation, x.Reason)
			}
			called := map[string]bool{}
			for _, c := range cases {
				total++
				called[c.operation] = true
				w := drafts[c.operation]
				if w == nil {
					t.Errorf("%s: no draft", c.operation)
					continue
				}
				call, err := w.Build([]byte(c.args))
				if err != nil {
					t.Errorf("%s %s: %v", c.operation, c.args, err)
					continue
				}
				if diff := cmp.Diff(c.want, written(call)); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", c.operation, c.args, diff)
				}
				if len(call.Warnings) > 0 {
					t.Errorf("%s %s: %v", c.operation, c.args, call.Warnings)
				}
			}
			for op := range drafts {
				if !called[op] {
					t.Errorf("%s has no case", op)
				}
			}
		})
	}
	if total < 60 {
		t.Errorf("%d cases, at least 60 are promised", total)
	}
}

type requestCase struct{ operation, args, want string }

func requestCases(t *testing.T, data []byte) (document []byte, cases []requestCase) {
	t.Helper()
	for _, f := range txtar.Parse(data).Files {
		if f.Name == "document" {
			document = f.Data
			continue
		}
		for _, text := range strings.Split(string(f.Data), "---\n") {
			first, want, ok := strings.Cut(text, "\n")
			at := strings.Index(first, " {\"")
			if at < 0 {
				at = strings.LastIndex(first, " {")
			}
			if !ok || at < 0 {
				t.Fatalf("not a case: %q", text)
			}
			cases = append(cases, requestCase{first[:at], first[at+1:], strings.TrimSuffix(want, "\n")})
		}
	}
	return document, cases
}

// written is a request as the cases write it.
func written(c *wrapper.Call) string {
	var b bytes.Buffer
	b.WriteString(c.Method + " " + c.URL.String())
	for _, h := range c.Header {
		b.WriteString("\n" + h.Name + ": " + h.Value)
	}
	if c.Auth != "" {
		b.WriteString("\nauth: " + c.Auth)
	}
	if c.Body != nil {
		b.WriteString("\n\n" + string(c.Body))
	}
	return b.String()
}
