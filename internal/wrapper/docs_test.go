package wrapper_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/wrapper-format.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var fence = regexp.MustCompile("(?ms)^```([a-z ]+)\n(.*?)^```$")

// TestDocsExamples runs the fenced blocks of the page in their order: a
// wrapper, then what it refuses, or arguments and what they make.
func TestDocsExamples(t *testing.T) {
	var w *wrapper.Wrapper
	var problems, args string
	checked := 0
	for _, block := range fence.FindAllStringSubmatch(page(t), -1) {
		kind, text := block[1], block[2]
		switch kind {
		case "json wrapper":
			if w == nil && problems != "" {
				t.Errorf("a wrapper of the page has problems that the page does not show:\n%s", problems)
			}
			read, report := wrapper.Parse([]byte(text))
			w, problems, args = read, lines(report.Problems), ""
			if len(report.Warnings) > 0 {
				t.Errorf("%s\n%s", text, lines(report.Warnings))
			}
			continue
		case "json args":
			args = text
			continue
		case "text problems":
			if problems != text {
				t.Errorf("problems\n got %swant %s", problems, text)
			}
			problems = ""
		case "http request", "text refused":
			if w == nil {
				t.Fatalf("a result without a wrapper:\n%s%s", problems, text)
			}
			var got string
			if c, err := w.Build([]byte(args)); err != nil {
				got = lines(details(err))
			} else {
				got = sent(c)
			}
			if got != text {
				t.Errorf("%s of %s\n got %s\nwant %s", kind, args, got, text)
			}
		default:
			t.Errorf("the test does not know blocks of %q", kind)
		}
		checked++
	}
	if problems != "" {
		t.Errorf("the last wrapper of the page has problems:\n%s", problems)
	}
	if checked != 9 {
		t.Errorf("%d results found; the page has 9", checked)
	}
}

var (
	row         = regexp.MustCompile("(?m)^\\| (body|query|header|path) \\| `(.*?)` \\| `(.*?)` \\| (.*) \\|$")
	placeholder = regexp.MustCompile(`{{(\w+)`)
)

// TestDocsInterpolation runs every row of the interpolation table.
func TestDocsInterpolation(t *testing.T) {
	rows := row.FindAllStringSubmatch(page(t), -1)
	if len(rows) < 40 {
		t.Fatalf("only %d rows found", len(rows))
	}
	for _, r := range rows {
		where, template, args, want := r[1], strings.ReplaceAll(r[2], `\|`, "|"), r[3], strings.Trim(r[4], "`")
		request := `{"method":"POST","url":"https://h.test/` + "x" + `","` + map[string]string{"body": "body", "query": "query", "header": "headers"}[where] + `":{"x":` + template + `}}`
		if where == "path" {
			request = `{"url":"https://h.test/a/` + template + `/z"}`
		}
		var props []string
		seen := map[string]bool{}
		for _, m := range placeholder.FindAllStringSubmatch(template, -1) {
			if !seen[m[1]] {
				props = append(props, fmt.Sprintf("%q:{}", m[1]))
			}
			seen[m[1]] = true
		}
		w := parse(t, doc(request, strings.Join(props, ",")))
		if got := part(w, where, args); got != want {
			t.Errorf("| %s | %s | %s |\n got %s\nwant %s", where, template, args, got, want)
		}
	}
}

// part is what a call sends in one place.
func part(w *wrapper.Wrapper, where, args string) string {
	c, err := w.Build([]byte(args))
	if err != nil {
		return "refused: " + string(fault.From(err).Details[0].Code)
	}
	got := ""
	switch where {
	case "body":
		var body struct{ X json.RawMessage }
		if json.Unmarshal(c.Body, &body) == nil {
			got = string(body.X)
		}
	case "query":
		got = c.URL.RawQuery
	case "header":
		for _, h := range c.Header {
			if h.Name == "x" {
				got = h.Value
			}
		}
	case "path":
		got = strings.TrimSuffix(strings.TrimPrefix(c.URL.EscapedPath(), "/a/"), "/z")
	}
	if got == "" {
		return "nothing"
	}
	return got
}
