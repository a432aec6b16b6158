package recipe_test

import (
	"os"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A docBlock is a fenced block of a page whose first line has a word behind
// the language, which says what the block is.
type docBlock struct {
	line       int
	role, text string
}

func docBlocks(t *testing.T, page string) []docBlock {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []docBlock
	var open *docBlock
	var body []string
	fence := ""
	for i, line := range strings.Split(string(data), "\n") {
		info := strings.TrimLeft(line, "`")
		ticks := line[:len(line)-len(info)]
		switch {
		case open == nil && len(ticks) >= 3:
			_, role, _ := strings.Cut(info, " ")
			fence, open, body = ticks, &docBlock{line: i + 1, role: role}, nil
		case open != nil && line == fence:
			open.text = strings.Join(body, "\n")
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			body = append(body, line)
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: block is not closed", page, open.line)
	}
	return blocks
}

// listed writes problems the way the page does.
func listed(problems []recipe.Problem) string {
	var lines []string
	for _, p := range problems {
		line := p.Field + " " + p.Code + ": " + p.Message
		if p.Hint != "" {
			line += " [" + p.Hint + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// The page of the format cannot lie: each recipe on it is rendered with the
// input that follows, and gives the Markdown, records and meta that follow, or
// has the problems that follow.
func TestDocsExamples(t *testing.T) {
	const page = "../../docs/recipe-format.md"
	var doc, input string
	examples := 0
	for _, b := range docBlocks(t, page) {
		switch b.role {
		case "recipe":
			doc, input = b.text, ""
			continue
		case "input":
			input = b.text
			continue
		case "output", "records", "meta":
		case "problems", "warnings":
			examples++
			_, report := recipe.Parse(decode(t, []byte(doc)))
			got := listed(report.Problems)
			if b.role == "warnings" {
				got = listed(report.Warnings)
			}
			if got != b.text {
				t.Errorf("%s:%d: the page says\n%s\nit is\n%s", page, b.line, b.text, got)
			}
			continue
		default:
			t.Errorf("%s:%d: a block with the role %q", page, b.line, b.role)
			continue
		}
		examples++
		res := render(t, parse(t, doc), "", input)
		got := map[string]string{"output": res.Markdown, "records": records(res), "meta": metaText(res.Meta)}[b.role]
		if got != b.text {
			t.Errorf("%s:%d: the page says\n%s\nit is\n%s", page, b.line, b.text, got)
		}
	}
	if examples < 19 {
		t.Errorf("%d examples were run; the page has more", examples)
	}
}
