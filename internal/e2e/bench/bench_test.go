package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	for name, at := range map[string]struct {
		list []float64
		q    float64
		want float64
	}{
		"one":         {[]float64{7}, 0.95, 7},
		"odd":         {[]float64{9, 1, 5}, 0.5, 5},
		"even":        {[]float64{4, 1, 2, 3}, 0.5, 2.5},
		"95 of 1..21": {[]float64{21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 0.95, 20},
		"the most":    {[]float64{1, 2, 3}, 1, 3},
	} {
		if got := quantile(at.list, at.q); got != at.want {
			t.Errorf("%s: %v, want %v", name, got, at.want)
		}
	}
	if got := least([]float64{3, 1, 2}); got != 1 {
		t.Errorf("least: %v", got)
	}
	if !math.IsNaN(median(nil)) || !math.IsNaN(least(nil)) {
		t.Error("of nothing there is a figure")
	}
}

// The ratio is the median of the rounds' ratios, not the ratio of the medians.
func TestSum(t *testing.T) {
	const name = "object"
	figures := sum([][2]samples{
		{{name: {1, 2, 3}}, {name: {4, 4, 4}}}, // 2 and 4: 2
		{{name: {10}}, {name: {10}}},           // 1
		{{name: {1}}, {name: {3}}},             // 3
		{{}, {name: {100}}},                    // the floor has none: no ratio
	})
	for _, f := range figures {
		switch {
		case f.row.from != name:
			if !math.IsNaN(f.ours) || !math.IsNaN(f.ratio) || f.row.goal.kind != 0 && f.held() != "not measured" {
				t.Errorf("%s: %v, %s", f.row.what, f.ours, f.held())
			}
		case f.row.digits == 3 && strings.Contains(f.row.what, "median"):
			if f.floor != 2 || f.ours != 7 || f.ratio != 2 || f.held() != "no" || len(f.rounds) != 4 {
				t.Errorf("%+v, %s", f, f.held())
			}
		}
	}
}

func TestHeld(t *testing.T) {
	none := math.NaN()
	for name, at := range map[string]struct {
		goal        goal
		ours, ratio float64
		words, held string
	}{
		"at the ratio":         {goal{ratioAtMost, 1.25}, 9, 1.25, "≤ 1.25x", "yes"},
		"over the ratio":       {goal{ratioAtMost, 1.25}, 0, 1.2501, "≤ 1.25x", "no"},
		"at the least ratio":   {goal{ratioAtLeast, 0.85}, 0, 0.85, "≥ 0.85x", "yes"},
		"under the least":      {goal{ratioAtLeast, 0.85}, 9, 0.8499, "≥ 0.85x", "no"},
		"at the figure":        {goal{atMost, 220}, 220, 9, "≤ 220 ms", "yes"},
		"over the figure":      {goal{atMost, 220}, 220.1, 0, "≤ 220 ms", "no"},
		"no goal":              {goal{}, 1, 1, "-", "-"},
		"no goal, no figure":   {goal{}, none, none, "-", "-"},
		"no ratio":             {goal{ratioAtMost, 1.25}, 1, none, "≤ 1.25x", "not measured"},
		"no figure":            {goal{atMost, 220}, none, 1, "≤ 220 ms", "not measured"},
		"figure without ratio": {goal{atMost, 220}, 1, none, "≤ 220 ms", "yes"},
	} {
		f := figure{row: row{goal: at.goal}, ours: at.ours, ratio: at.ratio}
		if got := f.held(); got != at.held || at.goal.words("ms") != at.words {
			t.Errorf("%s: %s, %s", name, at.goal.words("ms"), got)
		}
	}
}

func TestLine(t *testing.T) {
	f := figure{row: row{what: "calls", unit: "ms", digits: 1, goal: goal{ratioAtMost, 1.2}}, floor: 1.04, ours: 2.05, ratio: 1.966}
	if got, want := f.line(), "| calls, ms | 1.0 | 2.0 | 1.97 | ≤ 1.2x | no |"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	f = figure{row: row{what: "size", goal: goal{atMost, 40}}, floor: math.NaN(), ours: 5, ratio: math.NaN()}
	if got, want := f.line(), "| size | - | 5 | - | ≤ 40 | yes |"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
}

// The number of calls that the goal of memory names.
func TestTotal(t *testing.T) {
	if got := (options{calls: 400}).total(); got != 2800 {
		t.Errorf("%d calls", got)
	}
}

// A short run of everything: the answers are right, each row has its figures,
// and an answer with one digit too many ends it. What the figures are is not a
// test's business.
func TestWholeRun(t *testing.T) {
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	o := options{rounds: 1, calls: 8, starts: 2, settle: 10 * time.Millisecond, only: regexp.MustCompile("")}
	figures, err := w.measure(context.Background(), o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		memory := f.row.unit == "MiB" || strings.Contains(f.row.from, "processor")
		if helper := f.row.from == "helper size"; math.IsNaN(f.ours) || math.IsNaN(f.floor) != helper {
			if !memory || runtime.GOOS == "linux" {
				t.Errorf("%s: floor %v, hb-rest %v", f.row.what, f.floor, f.ours)
			}
		}
		switch f.row.from { // what does not depend on the machine
		case "slow":
			if f.floor < 200 || f.ours < 200 {
				t.Errorf("eight calls of 200 ms took %v and %v ms", f.floor, f.ours)
			}
		case "table bytes": // the same text, and the same words of the protocol around it
			if f.floor != f.ours || int(f.ours) < len(w.facts.ten) {
				t.Errorf("the table has %v and %v bytes on the wire, its text %d", f.floor, f.ours, len(w.facts.ten))
			}
		}
	}

	text := report(heading(o), figures)
	if !strings.Contains(text, runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH) || !strings.Contains(text, "load ") {
		t.Errorf("no machine and load in\n%s", text)
	}
	_, table, found := strings.Cut(text, tableHead+"\n")
	lines := strings.Split(table, "\n")
	if !found || len(lines) < len(rows) {
		t.Fatalf("the table is not whole:\n%s", text)
	}
	form := regexp.MustCompile(`^\| [^|]+ \| (-|-?\d+(\.\d+)?) \| (-|-?\d+(\.\d+)?) \| (-|-?\d+\.\d\d) \| (-|[≤≥] [^|]+) \| (-|yes|no|not measured) \|$`)
	for _, line := range lines[:len(rows)] {
		if !form.MatchString(line) {
			t.Errorf("not a row: %s", line)
		}
	}

	name := filepath.Join(t.TempDir(), "figures.json")
	if err := writeJSON(name, figures); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Ours []*float64 `json:"hb-rest"`
	}
	if err := json.Unmarshal(raw, &all); err != nil || len(all) != len(rows) || len(all[0].Ours) != 1 || *all[0].Ours[0] != figures[0].ours {
		t.Errorf("%v, %d rows in\n%.300s", err, len(all), raw)
	}

	w.facts.ten += "0"
	o.only = regexp.MustCompile("^table$")
	if _, err := w.measure(context.Background(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "the answer is") {
		t.Errorf("a wrong answer gave %v", err)
	}
}
