package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// choose says which drafts are to be saved: those the command line named, or
// those a person picks from the list.
func (o *importOptions) choose(ctx context.Context, r *importReport) ([]*importDraft, error) {
	can := r.savable()
	if !o.asks() {
		return can, nil
	}
	if err := o.app.print(r.text(len(can) > 0 && !o.all) + r.sum() + "\n"); err != nil {
		return nil, err
	}
	switch {
	case len(can) == 0:
		return nil, nil
	case o.all || len(can) == 1:
		question := "Save it?"
		if len(can) > 1 {
			question = fmt.Sprintf("Save all %d?", len(can))
		}
		return can, o.app.confirm(ctx, question)
	}
	picked, err := o.pick(ctx, len(can))
	if err != nil {
		return nil, err
	}
	save := make([]*importDraft, 0, len(picked))
	for _, n := range picked {
		save = append(save, can[n-1])
	}
	return save, nil
}

// pick asks for numbers from 1 to n until the answer makes sense. An empty one
// chooses nothing.
func (o *importOptions) pick(ctx context.Context, n int) ([]int, error) {
	in := bufio.NewReader(o.app.stdin)
	for {
		fmt.Fprintf(o.app.stderr, "Save which? Numbers and ranges such as 1,3-5, or all; nothing to give up: ")
		line, err := o.line(ctx, in)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(line) == "" {
			return nil, errDeclined
		}
		picked, err := numbers(line, n)
		if err == nil {
			return picked, nil
		}
		o.app.say("%v", err)
	}
}

func (o *importOptions) line(ctx context.Context, in *bufio.Reader) (string, error) {
	answer := make(chan string, 1)
	go func() { // reading a terminal cannot be cancelled; the process ends soon after
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(o.app.stderr)
		return "", ctx.Err()
	case line := <-answer:
		return line, nil
	}
}

// numbers reads "1,3-5 8" or "all" as numbers from 1 to n, each once, in order.
func numbers(text string, n int) ([]int, error) {
	chosen := make([]bool, n+1)
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
	for _, word := range words {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		if strings.EqualFold(word, "all") {
			from, to = "1", strconv.Itoa(n)
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || first < 1 || last > n || first > last {
			return nil, fmt.Errorf("%q is no number or range from 1 to %d", word, n)
		}
		for i := first; i <= last; i++ {
			chosen[i] = true
		}
	}
	var out []int
	for i, is := range chosen {
		if is {
			out = append(out, i)
		}
	}
	return out, nil
}

// end prints what has become of an import; of a dry run and of a script's import
// what there was to choose from, too.
func (o *importOptions) end(r *importReport, saved []*importDraft) error {
	text := ""
	if !o.asks() {
		text = r.text(false)
		if o.dryRun && len(r.Drafts) == 1 {
			text += indent(pretty(r.Drafts[0].Wrapper), "    ")
		}
		text += r.sum()
		if o.dryRun {
			text += "; nothing is saved"
		}
		text += "\n"
	}
	done := 0
	for _, d := range saved {
		if d.Saved {
			done++
		}
	}
	if done > 0 {
		text += fmt.Sprintf("saved %s; `hbrestd wrapper expose ID` makes one a tool of its own\n", plural(done, "wrapper", "wrappers"))
	}
	for _, s := range r.Secrets {
		text += "store the credential " + clean(s.Name) + ": " + clean(s.Command) + "\n"
	}
	if err := o.app.print(text); err != nil {
		return err
	}
	const most = 10
	for i, d := range saved {
		if i == most {
			o.app.say("`hbrestd wrapper lint` shows what is suspicious in the others")
			break
		}
		o.app.warnings(d.ID, d.Warnings)
	}
	return nil
}
