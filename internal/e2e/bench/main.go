// Command bench measures hb-rest beside the least program of the same design,
// internal/e2e/floor, and says of each goal whether it is held. Both are built
// as packages are and driven over stdio by the SDK's client, before an API on
// loopback; they take turns at every step of a round, and in each round
// another one is first. Figures are ratios within a round where they can be,
// because a busy machine disturbs both alike.
//
// It exits with 0 whatever the figures are, and with 1 when something does not
// work or an answer is not, digit for digit, what it must be. Start with rows.go
// for the figures and goals, and with steps.go for what is done.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	o := options{settle: 700 * time.Millisecond, starts: 20}
	flag.IntVar(&o.rounds, "rounds", 5, "measure everything `so often`")
	flag.IntVar(&o.calls, "calls", 400, "calls of one caller in a round; other steps make multiples of it")
	var names []string
	for _, s := range steps(o) {
		names = append(names, s.name)
	}
	only := flag.String("only", "", "measure those steps whose name matches this regular `expression`: "+strings.Join(names, ", "))
	out := flag.String("out", "", "write the table to this `file` too")
	raw := flag.String("json", "", "write every round's figures to this `file`")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile("(?i)" + *only); err != nil || flag.NArg() > 0 || o.rounds < 1 || o.calls < 1 {
		fmt.Fprintln(os.Stderr, "bench takes flags alone: -rounds and -calls from 1 on, and a regular expression after -only; see -help")
		os.Exit(2)
	}
	if err := run(o, *out, *raw); err != nil {
		fmt.Fprintln(os.Stderr, "bench: FAILED:", err)
		os.Exit(1)
	}
}

func run(o options, out, raw string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	head := heading(o)
	fmt.Fprintln(os.Stderr, "building ...")
	w, err := newWorld()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	figures, err := w.measure(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	text := report(head, figures)
	fmt.Print(text)
	if out != "" {
		err = os.WriteFile(out, []byte(text), 0o644)
	}
	if raw != "" {
		err = errors.Join(err, writeJSON(raw, figures))
	}
	return err
}

// newWorld builds the programs in a folder of their own and starts the API.
func newWorld() (_ *world, err error) {
	dir, err := os.MkdirTemp("", "hb-bench-")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, token: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err := w.build(); err != nil {
		return nil, err
	}
	if w.api, err = serve(exec.Command(w.path("floor"), "api"), regexp.MustCompile(`^listening (\S+)`), false); err != nil {
		return nil, err
	}
	if err := w.learn(); err != nil {
		return nil, err
	}
	for _, p := range []*program{w.floor(), w.hbRest()} {
		if err := p.prepare(w); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return w, nil
}

// close ends the API and removes the folder.
func (w *world) close() error {
	var err error
	if w.api != nil {
		err = w.api.stop()
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}

// measure makes the rounds.
func (w *world) measure(ctx context.Context, o options, progress io.Writer) ([]figure, error) {
	floor := &side{program: w.floor(), world: w, opt: o}
	ours := &side{program: w.hbRest(), world: w, opt: o}
	var rounds [][2]samples
	for n := range o.rounds {
		order := []*side{floor, ours}
		if n%2 == 1 {
			slices.Reverse(order)
		}
		begin := time.Now()
		if err := round(ctx, order, o); err != nil {
			return nil, err
		}
		rounds = append(rounds, [2]samples{floor.got, ours.got})
		fmt.Fprintf(progress, "round %d of %d: %s, load %s\n", n+1, o.rounds, time.Since(begin).Round(100*time.Millisecond), load())
	}
	return sum(rounds), nil
}

// prepare sets the program up, once.
func (p *program) prepare(w *world) (err error) {
	s := &side{program: p, world: w}
	defer func() { err = errors.Join(err, s.down()) }()
	if err := s.up(); err != nil {
		return err
	}
	return p.setUp(s.client)
}

// heading says what was measured where.
func heading(o options) string {
	commit := "unknown"
	if out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
		if changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(changed) > 0 {
			commit += " and changes"
		}
	}
	only := ""
	if o.only.String() != "(?i)" {
		only = fmt.Sprintf(" Of its steps only those that match %q.", o.only)
	}
	return fmt.Sprintf("%s, %s/%s, %d processors%s, load %s at the start. Commit %s. %s.\nRounds: %d; a whole one makes %d starts and %d calls of each program.%s\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processorName(), load(), commit, time.Now().UTC().Format("2006-01-02 15:04 MST"),
		o.rounds, o.starts, o.total(), only)
}

// load is the load average of the last minute, five and fifteen, where the system says it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}

func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return " (" + strings.TrimSpace(value) + ")"
		}
	}
	return ""
}

// report is the table below its heading.
func report(head string, figures []figure) string {
	var b strings.Builder
	b.WriteString(head + "\n" + tableHead + "\n")
	for _, f := range figures {
		b.WriteString(f.line() + "\n")
	}
	b.WriteString("\nFigures are medians of the rounds, ratios the median of the rounds' own ratios. Every answer was checked: every number in it was exact.\n")
	return b.String()
}

// writeJSON keeps every round; what was not measured is null.
func writeJSON(name string, figures []figure) error {
	type entry struct {
		What  string     `json:"what"`
		Unit  string     `json:"unit"`
		Floor []*float64 `json:"floor"` // round by round
		Ours  []*float64 `json:"hb-rest"`
		Held  string     `json:"held"`
	}
	number := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	var all []entry
	for _, f := range figures {
		e := entry{What: f.row.what, Unit: f.row.unit, Held: f.held()}
		for _, r := range f.rounds {
			e.Floor, e.Ours = append(e.Floor, number(r[0])), append(e.Ours, number(r[1]))
		}
		all = append(all, e)
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
