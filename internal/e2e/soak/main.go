// Command soak runs, one after the other, the tests that load hbrestd and that
// break what it stands on, for long, and says of each how it ended and what it
// counted. It tests nothing itself: a run is a Go test by its name. Start with
// the type run; runs*.go list them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// A run is one test, or several of one package, that internal/soak makes long.
type run struct {
	name  string        // what is done, in words
	pack  string        // the package, from the top of the repository
	test  string        // what `go test -run` selects, without ^ and $
	limit time.Duration // of the whole run; past it the verdict is "too long"
}

func all() []run {
	return slices.Concat(storeRuns, daemonRuns, promiseRuns, promiseNetRuns, scaleRuns, longRuns)
}

func main() {
	only := flag.String("only", "", "run those whose name or test matches this regular `expression`")
	out := flag.String("out", "", "write the table to this `file` too")
	list := flag.Bool("list", false, "print what would run, and end")
	flag.Parse()
	wanted, err := regexp.Compile("(?i)" + *only)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "soak takes flags alone, and -only is a regular expression; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	table := new(strings.Builder)
	fmt.Fprintln(table, "| Run | Verdict | Time | Counted |\n| --- | --- | --- | --- |")
	bad, chosen := 0, 0
	for _, r := range all() {
		if !wanted.MatchString(r.name) && !wanted.MatchString(r.test) {
			continue
		}
		chosen++
		if *list {
			fmt.Printf("%-60s %s %s\n", r.name, r.pack, r.test)
			continue
		}
		v := r.do(ctx)
		if v.verdict != "pass" {
			bad++
			fmt.Fprintf(os.Stderr, "--- %s (%s %s): %s\n%s\n", r.name, r.pack, r.test, v.verdict, v.output)
		}
		line := fmt.Sprintf("| %s | %s | %s | %s |\n", r.name, v.verdict, v.took.Round(time.Second), strings.Join(v.measured, "; "))
		table.WriteString(line)
		fmt.Print(line)
		if ctx.Err() != nil {
			break
		}
	}
	if chosen == 0 {
		fmt.Fprintf(os.Stderr, "no run has a name or a test like %q; -list shows them\n", *only)
		os.Exit(2)
	}
	if *out != "" {
		if err := os.WriteFile(*out, []byte(table.String()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if bad > 0 {
		fmt.Fprintf(os.Stderr, "%d did not pass\n", bad)
		os.Exit(1)
	}
}

// A result is how a run ended.
type result struct {
	verdict  string // pass, fail, skipped, too long, did not run
	took     time.Duration
	measured []string // what the tests counted, in their words
	output   string   // all of it, for who looks for the reason
}

func (r run) do(ctx context.Context) result {
	ctx, cancel := context.WithTimeout(ctx, r.limit+time.Minute) // the test ends itself at the limit and shows where it stood
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout="+r.limit.String(), "-json", "-run", "^("+r.test+")$", "./"+r.pack)
	cmd.Env = append(os.Environ(), soak.Variable+"=1")
	cmd.Stderr = os.Stderr
	begun := time.Now()
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return result{verdict: "did not run: " + err.Error()}
	}
	res := read(stdout)
	if err := cmd.Wait(); err != nil && res.verdict == "pass" {
		res.verdict, res.output = "fail", res.output+"go test: "+err.Error()+"\n"
	}
	res.took = time.Since(begun)
	return res
}

// read makes a result of what `go test -json` prints.
func read(stdout io.Reader) result {
	var passed, failed, skipped int
	var output strings.Builder
	var measured []string
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			output.WriteString(lines.Text() + "\n") // what a build says
			continue
		}
		output.WriteString(e.Output)
		if _, text, found := strings.Cut(e.Output, "measured: "); found {
			measured = append(measured, strings.TrimSpace(text))
		}
		if e.Test == "" || strings.Contains(e.Test, "/") {
			continue
		}
		switch e.Action {
		case "pass":
			passed++
		case "fail":
			failed++
		case "skip":
			skipped++
		}
	}
	res := result{measured: measured, output: output.String()}
	switch {
	case strings.Contains(res.output, "panic: test timed out"):
		res.verdict = "too long"
	case failed > 0:
		res.verdict = "fail"
	case skipped > 0:
		res.verdict = "skipped" // its reason is in the output
	case passed == 0:
		res.verdict = "did not run"
	default:
		res.verdict = "pass"
	}
	return res
}
