package schema

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// patterns are honest ones and ones made to be costly.
var patterns = []string{
	`^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$`, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
	`^[A-Za-z0-9][A-Za-z0-9-]{0,254}$`, `^.{1,1000}$`, `^[\p{L}\p{N} ]{1,200}$`, `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$`,
	`^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}`, `^(EUR|USD|GBP|CHF)$`, `(?i)^#?[a-f0-9]{3,8}$`, ``, `.*`, `a|b|`, `(?s)^.+?$`, `\bx\b`, `(a*)*`, `x{0}`, `(a{0,3}){2,}`,
	`((.{0,30}){0,30})x`, `(a?){200}x`, `((a{1,10}){1,10}){1,10}`, `(.*)(.*)(.*)(.*)(.*)(.*)(.*)=`, `\p{L}{300}x`, `([\p{L}\p{N}\p{P}]{0,30}){0,15}x`, `.{0,1000}x`, `(.{0,1000}x|)`,
	`(?i)` + strings.Repeat("ſ", 200), `(x+x+)+y`, `(a|a)*b`,
}

// TestStatesBoundTheProgram compares with the program that regexp/syntax makes.
func TestStatesBoundTheProgram(t *testing.T) {
	for _, s := range patterns {
		re, err := syntax.Parse(s, syntax.Perl)
		if err != nil {
			t.Fatal(s, err)
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(s, err)
		}
		states, ok := patternStates(s)
		if classes := strings.Contains(s, `\p`); !ok || states < len(prog.Inst) || !classes && states > len(prog.Inst)+len(prog.Inst)/2+4 {
			t.Errorf("%.60q: %d states, %d instructions", s, states, len(prog.Inst))
		}
	}
}

func withPattern(s string) recipe.Value {
	return recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: recipe.Object{
		{Key: "a", Value: recipe.Object{{Key: "type", Value: "string"}, {Key: "pattern", Value: s}}},
	}}}
}

func TestPatternStates(t *testing.T) {
	// Two states are the start and the match.
	for _, tt := range []struct {
		pattern string
		want    string
	}{
		{`a`, ""},
		{`^.{1,1000}$`, ""},
		{`(.{0,30}){0,30}`, ""},
		{`a{1000}a{1000}a{492}`, ""}, // each {n} is n + 2, and 2 more: at the limit
		{`a{1000}a{1000}a{493}`, "a.pattern PATTERN_INVALID"},                             // one over
		{`a{0,1000}a{494}`, ""},                                                           // a{0,n} is 2n + 2
		{`(?:a{0,1000}){0,1}b{1000}`, "a.pattern PATTERN_INVALID"},                        // written out
		{`(a{1000}){1000}`, "a.pattern PATTERN_INVALID"},                                  // refused by RE2 itself
		{strings.Repeat(`(\p{L}{30}){30}`, 20), "a.pattern PATTERN_INVALID"},              // megabytes, were it compiled
		{strings.Repeat(`((\pL{10}){10}){10}`, 25)[:500-25], "a.pattern PATTERN_INVALID"}, // the same
	} {
		start := time.Now()
		s, report := Parse(withPattern(tt.pattern), "")
		got := ""
		for _, p := range report.Problems {
			got = strings.TrimPrefix(p.Field, "properties.") + " " + p.Code
		}
		if got != tt.want || (s == nil) != (tt.want != "") {
			t.Errorf("%.60q: %q, want %q", tt.pattern, got, tt.want)
		}
		if took := time.Since(start); took > time.Second { // a millisecond on an idle machine
			t.Errorf("%.60q: took %v", tt.pattern, took)
		}
	}
	var props recipe.Object
	for i := range 9 { // nine patterns of 2500 states are more than 20 000
		props = append(props, recipe.Member{Key: fmt.Sprint("p", i), Value: recipe.Object{
			{Key: "type", Value: "string"}, {Key: "pattern", Value: `a{0,1000}a{494}`},
		}})
	}
	object := func(n int) recipe.Value {
		return recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: props[:n]}}
	}
	if _, report := Parse(object(8), ""); !report.OK() {
		t.Errorf("at the limit: %v", report.Problems)
	}
	if _, report := Parse(object(9), ""); len(report.Problems) != 1 || report.Problems[0].Code != "PATTERN_INVALID" {
		t.Errorf("over: %v", report.Problems)
	}
}

// TestPatternWork: a text of a megabyte held a core for a minute.
func TestPatternWork(t *testing.T) {
	const states = 2500
	longest := maxPatternWork/states - 1
	s, report := Parse(withPattern(`a{0,1000}a{494}`), "")
	if !report.OK() {
		t.Fatal(report.Problems)
	}
	check := func(s *Schema, args recipe.Object) string {
		start := time.Now()
		_, _, problems := s.Validate(args)
		if took := time.Since(start); took > 5*time.Second { // 100 ms on an idle machine; it was a minute
			t.Errorf("took %v", took)
		}
		var out []string
		for _, p := range problems {
			out = append(out, p.Field+" "+p.Code+" "+p.Message)
		}
		return strings.Join(out, "; ")
	}
	text := func(n int) recipe.Object { return recipe.Object{{Key: "a", Value: strings.Repeat("é", n)}} }
	if got := check(s, text(longest)); got != "args.a PATTERN must match the pattern a{0,1000}a{494}" {
		t.Errorf("at the limit: %s", got)
	}
	if got, want := check(s, text(longest+1)), "args.a TOO_LONG with this pattern a value can have at most 1199 characters, has 1200"; got != want {
		t.Errorf("one over: %s", got)
	}
	for _, p := range patterns {
		s, report := Parse(withPattern(p), "")
		if !report.OK() {
			t.Fatalf("%q %v", p, report.Problems)
		}
		for _, c := range []string{"a", "世"} {
			states, _ := patternStates(p)
			for _, n := range []int{900_000, min(maxPatternWork/states-1, 900_000)} {
				check(s, recipe.Object{{Key: "a", Value: strings.Repeat(c, n)}})
			}
		}
	}
	// Many short values count together.
	many, report := Parse(recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: recipe.Object{
		{Key: "l", Value: recipe.Object{{Key: "type", Value: "array"}, {Key: "items", Value: recipe.Object{
			{Key: "type", Value: "string"}, {Key: "pattern", Value: `((.{0,30}){0,30})x|`},
		}}}},
	}}}, "")
	if !report.OK() {
		t.Fatal(report.Problems)
	}
	list := make(recipe.Array, 30_000)
	for i := range list {
		list[i] = strings.Repeat("a", 30)
	}
	if got := check(many, recipe.Object{{Key: "l", Value: list}}); !strings.HasPrefix(got, "args.l[") || !strings.Contains(got, "TOO_LONG the values up to here are together too long") {
		t.Errorf("%.200s", got)
	}
	if got := check(many, recipe.Object{{Key: "l", Value: list[:40]}}); got != "" {
		t.Errorf("%.200s", got)
	}
	// So do the defaults, when the schema is saved.
	var props recipe.Object
	for i := range 7 {
		props = append(props, recipe.Member{Key: fmt.Sprint("p", i), Value: recipe.Object{
			{Key: "type", Value: "string"}, {Key: "pattern", Value: `((.{0,30}){0,30})x|`}, {Key: "default", Value: strings.Repeat("a", 1000)},
		}})
	}
	_, report = Parse(recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: props}}, "")
	if len(report.Problems) == 0 || report.Problems[0].Code != "SCHEMA_DEFAULT" {
		t.Errorf("%v", report.Problems)
	}
}

// TestJudgeRunsNoPattern: the second opinion has no bound of its own.
func TestJudgeRunsNoPattern(t *testing.T) {
	s, _ := Parse(withPattern(`^b$`), "")
	if !s.judge.accepts(recipe.Object{{Key: "a", Value: "a"}}) {
		t.Error("the judge ran the pattern")
	}
}

// BenchmarkPattern is the dearest check that is let through.
func BenchmarkPattern(b *testing.B) {
	for _, p := range []string{`((.{0,30}){0,30})x`, `.{0,1000}x`, `(a?){200}x`, `([\p{L}\p{N}\p{P}]{0,30}){0,15}x`, `(.*)(.*)(.*)(.*)(.*)(.*)(.*)=`} {
		states, _ := patternStates(p)
		n := maxPatternWork/states - 1
		s, report := Parse(withPattern(p), "")
		if !report.OK() {
			b.Fatal(report.Problems)
		}
		args := recipe.Object{{Key: "a", Value: strings.Repeat("a", n)}}
		b.Run(p, func(b *testing.B) {
			b.ReportMetric(float64(states), "states")
			b.ReportMetric(float64(n), "chars")
			for b.Loop() {
				s.Validate(args)
			}
		})
	}
}
