package wrapper_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// brief is FIELD CODE of each problem.
func brief(problems []recipe.Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Field+" "+p.Code)
	}
	return strings.Join(out, "; ")
}

func TestLint(t *testing.T) {
	const p = "wrapper.inputSchema.properties."
	exposed := func(description, url, schema string) string {
		return fmt.Sprintf(`{"schemaVersion":1,"id":"t","description":%q,"request":{"url":"https://h.test/%s"},"inputSchema":%s,"exposeAsTool":true}`, description, url, schema)
	}
	object := func(props string) string { return `{"type":"object","properties":{` + props + `}}` }
	many := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`"x%d":{"type":"string"}`, i))
		}
		return `"p":{"type":"array","items":{"type":"object","properties":{` + strings.Join(out, ",") + `}}}`
	}
	deep := func(levels int) string { // the root is the first
		s := `{"type":"string"}`
		for range levels - 2 {
			s = `{"type":"array","items":` + s + `}`
		}
		return `"p":` + s
	}
	paged := func(pagination string) string {
		return `{"schemaVersion":1,"id":"t","request":{"method":"POST","url":"https://h.test/","query":{"limit":"{{limit}}","skip":"{{skip}}"}},` +
			`"inputSchema":` + object(`"limit":{"type":"integer","default":1},"skip":{"type":"integer"},"t":{"type":"string","default":""}`) +
			`,"response":{"schemaVersion":1,"mode":"table","fields":{"A":"a"},"pagination":` + pagination + `}}`
	}
	tests := []struct{ name, doc, want string }{
		{"nothing to say", exposed("Finds a thing.", "{{q}}", object(`"q":{"type":"string","default":"x"}`)), ""},
		{"used everywhere", `{"schemaVersion":1,"id":"t","request":{"method":"POST","url":"https://h.test/{{a}}?b=x{{b}}","query":{"c":["{{c}}"]},"headers":{"X-D":"{{d}}"},"body":{"e":[{"f":"{{e}} {{f}}"}],"g":"{{g}}"}},` +
			`"inputSchema":` + object(`"a":{"type":"string","default":"1"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"},"f":{"type":"string"},"g":{"type":"object"}`) + `}`, ""},
		{"unused", `{"schemaVersion":1,"id":"t","request":{"url":"https://h.test/"},"inputSchema":` + object(`"q":{"type":"string"},"a.b":{"type":"integer","enum":[1]}`) + `}`, p + "q ARGUMENT_UNUSED; " + strings.TrimSuffix(p, ".") + "['a.b'] ARGUMENT_UNUSED"},
		{"a page size in the argument's place", paged(`{"type":"offset","offsetParam":"skip","limitParam":"limit","pageSize":30}`), p + "limit ARGUMENT_UNUSED; " + p + "skip ARGUMENT_UNUSED; " + p + "t ARGUMENT_UNUSED"},
		{"the same in the url", strings.Replace(paged(`{"type":"offset","offsetParam":"s(k","limitParam":"limit","pageSize":30}`), `h.test/`, `h.test/?s%28k={{t}}&t=1`, 1), p + "limit ARGUMENT_UNUSED; " + p + "t ARGUMENT_UNUSED"},
		{"a first cursor, and a size of one's own", paged(`{"type":"cursor","next":"n","cursorParam":"skip"}`), p + "t ARGUMENT_UNUSED"},
		{"an offset in the body", paged(`{"type":"offset","offsetParam":"skip","in":"body","limitParam":"x","pageSize":30}`), p + "t ARGUMENT_UNUSED"},
		{"sent elsewhere too", strings.Replace(paged(`{"type":"offset","offsetParam":"o","limitParam":"limit","pageSize":30}`), `h.test/`, `h.test/{{limit}}/{{t}}`, 1), ""},
		{"the generated method is used", `{"schemaVersion":1,"id":"t","request":{"methods":["GET","POST"],"url":"https://h.test/"}}`, ""},
		{"a method of one's own is not", `{"schemaVersion":1,"id":"t","request":{"url":"https://h.test/"},"inputSchema":` + object(`"method":{"type":"string"}`) + `}`, p + "method ARGUMENT_UNUSED"},
		{"quarantined", exposed("", "?q={{a b}}", object(`"a b":{"type":"string"}`)), strings.TrimSuffix(p, ".") + "['a b'] TOOL_QUARANTINED"},
		{"dot", exposed("", "?q={{a.b}}", object(`"a.b":{"type":"string"}`)), strings.TrimSuffix(p, ".") + "['a.b'] TOOL_PORTABILITY"},
		{"numbers in an enum", exposed("", "?q={{n}}", object(`"n":{"type":"integer","enum":[1,2]}`)), p + "n.enum TOOL_PORTABILITY"},
		{"a number that a float holds", exposed("", "?q={{n}}", object(`"n":{"type":"integer","minimum":-9007199254740992,"maximum":9007199254740994,"default":1}`)), ""},
		{"numbers that it does not", exposed("", "?q={{n}}", object(`"n":{"type":"integer","minimum":-9007199254740993,"maximum":9007199254740993,"default":9007199254740993}`)), p + "n.minimum TOOL_PORTABILITY; " + p + "n.maximum TOOL_PORTABILITY; " + p + "n.default TOOL_PORTABILITY"},
		{"pattern", exposed("", "?q={{s}}", object(`"s":{"type":"string","pattern":"(?i)a"}`)), p + "s.pattern TOOL_PORTABILITY"},
		{"cleaned without a word", exposed("", "?q={{s}}&r={{i}}", object(`"s":{"type":["string","null"],"format":"uuid"},"i":{"type":"array"}`)), ""},
		{"800 characters", exposed(strings.Repeat("é", 800), "", object("")), ""},
		{"801 characters", exposed(strings.Repeat("é", 801), "", object("")), "wrapper.description TOOL_PORTABILITY"},
		{"100 properties", exposed("", "", object(many(99))), p + "p ARGUMENT_UNUSED"},
		{"101 properties", exposed("", "", object(many(100))), p + "p ARGUMENT_UNUSED; wrapper.inputSchema TOOL_PORTABILITY"},
		{"10 levels", exposed("", "", object(deep(10))), p + "p ARGUMENT_UNUSED"},
		{"11 levels", exposed("", "", object(deep(11))), p + "p ARGUMENT_UNUSED; wrapper.inputSchema TOOL_PORTABILITY"},
		{"large", exposed("", "?q={{q}}", object(`"q":{"type":"string","description":"`+strings.Repeat("x", 8<<10)+`"}`)), "wrapper.inputSchema TOOL_PORTABILITY"},
		{"too large", exposed("", "?q={{q}}", object(`"q":{"type":"string","description":"`+strings.Repeat("x", 32<<10)+`"}`)), "wrapper.inputSchema TOOL_QUARANTINED"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := wrapper.Lint(parse(t, tt.doc))
			if d := cmp.Diff(tt.want, brief(got)); d != "" {
				t.Errorf("(-want +got)\n%s\n%s", d, lines(got))
			}
			for _, p := range got {
				if p.Message == "" || p.Hint == "" {
					t.Errorf("without words: %+v", p)
				}
				if p.Code != "ARGUMENT_UNUSED" && !strings.Contains(p.Message, "client") && !strings.Contains(p.Message, "API") && !strings.Contains(p.Message, "models") && !strings.Contains(p.Message, "tool's") {
					t.Errorf("names no client: %s", p.Message)
				}
			}
			if quarantined := strings.Contains(brief(got), "TOOL_QUARANTINED"); quarantined != (wrapper.Portable(parse(t, tt.doc)) != "") {
				t.Errorf("Lint and Portable differ: %s", lines(got))
			}
		})
	}
}

// A document made to be costly or to fill the log does neither.
func TestLintIsBounded(t *testing.T) {
	var props []string
	for i := range 200 {
		props = append(props, fmt.Sprintf(`"a b %d":{"type":"integer","enum":[1]}`, i))
	}
	got := wrapper.Lint(parse(t, input(`{"type":"object","properties":{`+strings.Join(props, ",")+`}}`)))
	if len(got) != recipe.MaxProblems {
		t.Errorf("%d warnings, want %d", len(got), recipe.MaxProblems)
	}
}
