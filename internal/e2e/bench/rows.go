package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A row is one figure of the table. In each round its samples of a program
// become one number; of the rounds the median counts.
type row struct {
	what   string
	unit   string
	digits int                          // behind the point
	from   string                       // which samples, by the names of steps.go
	of     func(list []float64) float64 // what makes one number of a round's samples
	goal   goal
}

// A goal is what hb-rest is to hold. The zero goal is none.
type goal struct {
	kind  goalKind
	limit float64
}

type goalKind int

const (
	ratioAtMost  goalKind = iota + 1 // of hb-rest's figure to the floor's
	ratioAtLeast                     // the same
	atMost                           // hb-rest's figure itself
)

// rows are the table, and the goals.
var rows = []row{
	{"start of the shim to its answer to `initialize`, least", "ms", 2, "start", least, goal{ratioAtMost, 1.2}},
	{"the same, median", "ms", 2, "start", median, goal{ratioAtMost, 1.2}},
	{"start of the service to its first answer", "ms", 1, "service", median, goal{atMost, 60}},
	{"`tools/list`", "ms", 2, "list", median, goal{}},
	{"1 KB object as a document, median", "ms", 3, "object", median, goal{ratioAtMost, 1.25}},
	{"the same, 95 %", "ms", 3, "object", p95, goal{}},
	{"the same, processor time of all processes", "µs a call", 0, "object processor", median, goal{ratioAtMost, 1.5}},
	{"ten rows of five columns, median", "ms", 3, "table", median, goal{ratioAtMost, 1.15}},
	{"the same, 95 %", "ms", 3, "table", p95, goal{}},
	{"the same, processor time of all processes", "µs a call", 0, "table processor", median, goal{}},
	{"objects, 8 in flight", "calls/s", 0, "rate 8", median, goal{ratioAtLeast, 0.85}},
	{"objects, 32 in flight", "calls/s", 0, "rate 32", median, goal{ratioAtLeast, 0.85}},
	{"new connections to the API for 1 000 calls, 32 in flight", "", 0, "connections", median, goal{atMost, 40}},
	{"eight calls of 200 ms at once", "ms", 0, "slow", median, goal{atMost, 220}},
	{"50 rows out of 5 MB, first call", "ms", 1, "big first", median, goal{}},
	{"the same, later calls", "ms", 1, "big", median, goal{ratioAtMost, 2.0}},
	{"the same, peak memory of both processes", "MiB", 1, "big peak", median, goal{atMost, 45}},
	{"memory at rest, both processes", "MiB", 1, "rest", median, goal{atMost, 40}},
	{"memory of each further client", "MiB", 1, "client", median, goal{atMost, 10}},
	{"memory after the calls above", "MiB", 1, "after", median, goal{}},
	{"growth by these calls since rest", "MiB", 1, "growth", median, goal{atMost, 12}},
	{"answer with the object, on the wire", "bytes", 0, "object bytes", median, goal{}},
	{"answer with the table, on the wire", "bytes", 0, "table bytes", median, goal{}},
	{"answer to `tools/list`, on the wire", "bytes", 0, "list bytes", median, goal{}},
	{"shim on disk", "MB", 1, "shim size", median, goal{}},
	{"service on disk", "MB", 1, "service size", median, goal{}},
	{"keyring helper on disk", "MB", 1, "helper size", median, goal{}},
}

func least(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	return slices.Min(list)
}

func median(list []float64) float64 { return quantile(list, 0.5) }
func p95(list []float64) float64    { return quantile(list, 0.95) }

// quantile is between two values where it does not fall on one; of none it is NaN.
func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(list))
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 == len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// A figure is a row when all rounds are done. NaN stands for what was not measured.
type figure struct {
	row                row
	floor, ours, ratio float64
	rounds             [][2]float64 // floor and hb-rest, round by round
}

// sum makes a figure of each row. Each round holds the samples of the floor and
// of hb-rest. The ratio is the median of the rounds' own ratios: what disturbs
// a machine disturbs both programs of one round alike.
func sum(rounds [][2]samples) []figure {
	var out []figure
	for _, r := range rows {
		f := figure{row: r}
		var floors, ours, ratios []float64
		for _, both := range rounds {
			a, b := r.of(both[0][r.from]), r.of(both[1][r.from])
			f.rounds = append(f.rounds, [2]float64{a, b})
			floors, ours = known(floors, a), known(ours, b)
			if a > 0 {
				ratios = known(ratios, b/a)
			}
		}
		f.floor, f.ours, f.ratio = median(floors), median(ours), median(ratios)
		out = append(out, f)
	}
	return out
}

func known(list []float64, v float64) []float64 {
	if math.IsNaN(v) {
		return list
	}
	return append(list, v)
}

// held is the verdict: yes, no, or what there is instead of one.
func (f figure) held() string {
	v := f.ours
	if f.row.goal.kind != atMost {
		v = f.ratio
	}
	switch {
	case f.row.goal.kind == 0:
		return "-"
	case math.IsNaN(v):
		return "not measured"
	case f.row.goal.kind == ratioAtLeast && v >= f.row.goal.limit, f.row.goal.kind != ratioAtLeast && v <= f.row.goal.limit:
		return "yes"
	}
	return "no"
}

func (g goal) words(unit string) string {
	limit := strconv.FormatFloat(g.limit, 'f', -1, 64)
	switch g.kind {
	case ratioAtMost:
		return "≤ " + limit + "x"
	case ratioAtLeast:
		return "≥ " + limit + "x"
	case atMost:
		if unit != "" {
			limit += " " + unit
		}
		return "≤ " + limit
	}
	return "-"
}

func written(v float64, digits int) string {
	if math.IsNaN(v) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// line is the figure as a row of Markdown.
func (f figure) line() string {
	what := f.row.what
	if f.row.unit != "" {
		what += ", " + f.row.unit
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", what,
		written(f.floor, f.row.digits), written(f.ours, f.row.digits), written(f.ratio, 2), f.row.goal.words(f.row.unit), f.held())
}

const tableHead = "| What | floor | hb-rest | ratio | goal | held |\n| --- | ---: | ---: | ---: | ---: | --- |"
