package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// A talk is the panel line by line: it says, asks, and reads an answer. Nothing
// is drawn over, so that a screen reader can follow.
type talk struct {
	o   Options
	m   *model // for words that both forms of the panel use; it draws nothing
	out io.Writer
}

// errLeft ends the panel: its input is over, or the person has left.
var errLeft = errors.New("left")

// errGone goes back from the menu of what is not there any more.
var errGone = errors.New("gone")

// RunLines is the panel without a screen: numbered menus and plain answers. It
// ends with q, with the end of the input, or with ctx.
func RunLines(ctx context.Context, o Options) error {
	o = o.filled()
	t := &talk{o: o, m: newModel(ctx, o), out: o.Output}
	err := t.top(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

func (t *talk) say(format string, args ...any) { t.write(clean(fmt.Sprintf(format, args...))) }

func (t *talk) write(lines ...string) {
	for _, l := range lines {
		fmt.Fprintln(t.out, clean(l))
	}
}

// ask reads one line. Each is read when it is asked for: in between, a value may
// be asked for on the same terminal.
func (t *talk) ask(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(t.out, clean(prompt)+" ")
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // reading a terminal cannot be cancelled; the process ends soon after
		line, err := readLine(t.o.Input)
		got <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-got:
		if a.err != nil {
			t.write("")
			return "", errLeft
		}
		return strings.TrimSpace(a.line), nil
	}
}

// readLine reads up to the next line end and not further: the bytes behind it
// are somebody else's.
func readLine(r io.Reader) (string, error) {
	var line []byte
	var one [1]byte
	for len(line) < maxTyped {
		n, err := r.Read(one[:])
		if n == 1 {
			if one[0] == '\n' {
				return string(line), nil
			}
			line = append(line, one[0])
		}
		if err != nil {
			if len(line) > 0 && errors.Is(err, io.EOF) {
				return string(line), nil
			}
			return "", err
		}
	}
	return string(line), nil
}

// fail says why something did not work; the panel goes on.
func (t *talk) fail(err error) {
	f := faultOf(err)
	t.say("Error %s: %s", f.Code, f.Message)
	for _, d := range f.Details {
		t.say("  %s: %s", d.Field, d.Message)
	}
	if f.Hint != "" {
		t.say("%s", f.Hint)
	}
}

// An option is one entry of a menu.
type option struct {
	name string
	do   func(ctx context.Context) error
}

// menu shows numbered entries again and again, until the person goes back.
func (t *talk) menu(ctx context.Context, title string, entries func(ctx context.Context) ([]option, error)) error {
	for {
		list, err := entries(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			t.fail(err)
			list = nil
		}
		t.write("")
		t.say("%s", title)
		for i, o := range list {
			t.say("%d. %s", i+1, o.name)
		}
		if len(list) == 0 {
			t.say("Nothing is here.")
		}
		answer, err := t.ask(ctx, "Number, Enter to go back, q to quit:")
		switch n, bad := strconv.Atoi(answer); {
		case err != nil:
			return err
		case answer == "":
			return nil
		case answer == "q":
			return errLeft
		case bad != nil, n < 1, n > len(list):
			t.say("That is not one of the numbers.")
		default:
			err := list[n-1].do(ctx)
			if errors.Is(err, errGone) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
}

// yes asks a question; only y and yes are yes.
func (t *talk) yes(ctx context.Context, question string) (bool, error) {
	answer, err := t.ask(ctx, question+" Type yes to do it:")
	answer = strings.ToLower(answer)
	if err == nil && answer != "y" && answer != "yes" {
		t.say("Nothing was changed.")
	}
	return answer == "y" || answer == "yes", err
}

func fixedEntries(list ...option) func(context.Context) ([]option, error) {
	return func(context.Context) ([]option, error) { return list, nil }
}

func (t *talk) top(ctx context.Context) error {
	t.say("hbrestd settings, line by line.")
	return t.menu(ctx, "Settings", fixedEntries(
		option{"Wrappers", func(ctx context.Context) error { return t.menu(ctx, "Wrappers", t.wrappers) }},
		option{"Credentials", func(ctx context.Context) error { return t.menu(ctx, "Credentials", t.credentials) }},
		option{"Approvals", func(ctx context.Context) error { return t.menu(ctx, "Approvals", t.approvals) }},
		option{"Audit: the newest 20 rows", t.audit},
	))
}

func (t *talk) wrappers(ctx context.Context) ([]option, error) {
	l, err := t.o.Backend.Manifest(ctx, 0)
	if err != nil {
		return nil, err
	}
	t.m.wrappers.set(t.m, l)
	var list []option
	for i := range l.Wrappers {
		w := &l.Wrappers[i]
		name := fmt.Sprintf("%s, %s to %s, %s, %s", w.ID, methods(w), w.Host, t.m.toolState(w), w.VerifiedNote())
		if w.Damaged != "" {
			name = w.ID + ", damaged: " + w.Damaged
		}
		if n := w.DriftNote(); n != "" {
			name += ", " + n
		}
		id := w.ID
		list = append(list, option{name, func(ctx context.Context) error { return t.wrapper(ctx, id) }})
	}
	return list, nil
}

func (t *talk) wrapper(ctx context.Context, id string) error {
	return t.menu(ctx, "Wrapper "+id, fixedEntries(
		option{"Show its document", func(ctx context.Context) error {
			return t.tell(ctx, func() ([]string, error) {
				doc, err := t.o.Backend.Wrapper(ctx, id)
				return t.m.wrapperText(id, doc), err
			})
		}},
		option{"Dry run: show the request, send nothing", func(ctx context.Context) error {
			args, err := t.ask(ctx, "Arguments as a JSON object, Enter for none:")
			if err != nil {
				return err
			}
			return t.tell(ctx, func() ([]string, error) {
				q := &api.TestRequest{ID: id}
				if args != "" {
					if _, err := parseMembers([]byte(args)); err != nil {
						return nil, errors.New("the arguments must be one JSON object")
					}
					q.Args = []byte(args)
				}
				r, err := t.o.Backend.Test(ctx, q)
				if err != nil || r.Plan == nil {
					return nil, err
				}
				return planLines(r.Plan), nil
			})
		}},
		option{"Turn its own tool on or off", func(ctx context.Context) error {
			w := t.m.wrappers.entry(id)
			if w == nil {
				return nil
			}
			return t.tell(ctx, func() ([]string, error) {
				r, err := t.o.Backend.Expose(ctx, &control.ExposeRequest{ID: id, Hide: w.ExposeAsTool})
				if err != nil {
					return nil, err
				}
				w.ExposeAsTool = r.Exposed
				if !r.Exposed {
					return []string{clean(id + " is hidden; wrap_run still reaches it.")}, nil
				}
				return []string{strings.TrimSpace(fmt.Sprintf("%s is the tool %s. %s", id, r.Tool, r.Quarantined))}, nil
			})
		}},
		option{"Remove it", func(ctx context.Context) error {
			ok, err := t.yes(ctx, "Remove the wrapper "+id+"?")
			if err != nil || !ok {
				return err
			}
			return t.removed(ctx, "Removed "+id+".", func() error {
				_, err := t.o.Backend.Change(ctx, &api.ChangeRequest{Action: "delete", ID: id})
				return err
			})
		}},
	))
}

// tell shows what a call gave, or why it failed.
func (t *talk) tell(ctx context.Context, call func() ([]string, error)) error {
	lines, err := call()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		t.fail(err)
	default:
		t.write(lines...)
	}
	return nil
}

// removed removes something, and goes back when it is gone.
func (t *talk) removed(ctx context.Context, said string, call func() error) error {
	gone := false
	err := t.tell(ctx, func() ([]string, error) {
		err := call()
		gone = err == nil
		return []string{said}, err
	})
	if err == nil && gone {
		return errGone
	}
	return err
}

func (t *talk) credentials(ctx context.Context) ([]option, error) {
	st, err := t.o.Backend.SecretState(ctx)
	if err != nil {
		return nil, err
	}
	if !usable(st) && st.State != "not asked" {
		t.say("Credentials cannot be used: %s. %s. %s", stateWords(st.State), st.Reason, st.Fix)
	}
	var list []option
	for i := range st.Secrets {
		s := &st.Secrets[i]
		name := fmt.Sprintf("%s, %s, for %s, %s", s.Name, s.Kind, strings.Join(s.AllowedHosts, " and "), headersText(s.Headers))
		list = append(list, option{name, func(ctx context.Context) error { return t.credential(ctx, s) }})
	}
	return list, nil
}

func (t *talk) credential(ctx context.Context, s *control.SecretInfo) error {
	return t.menu(ctx, "Credential "+s.Name, fixedEntries(
		option{"Show it, without its value", func(context.Context) error { t.write(credentialText(s)...); return nil }},
		option{"Enter a new value", func(ctx context.Context) error { return t.rotate(ctx, s) }},
		option{"Forget it", func(ctx context.Context) error {
			ok, err := t.yes(ctx, "Forget the credential "+s.Name+"? Its value cannot be had back.")
			if err != nil || !ok {
				return err
			}
			return t.removed(ctx, "Forgot "+s.Name+".", func() error {
				_, err := t.o.Backend.DeleteSecret(ctx, &control.SecretName{Name: s.Name})
				return err
			})
		}},
	))
}

func (t *talk) rotate(ctx context.Context, old *control.SecretInfo) error {
	q, places, problem := rotation(old)
	if problem != "" {
		t.say("%s", problem)
		return nil
	}
	s := &saving{q: q, places: places}
	r, err := t.o.Backend.CheckSecret(ctx, q)
	if err != nil {
		t.fail(err)
		return nil
	}
	if r.Confirm != "" {
		ok, err := t.yes(ctx, r.Message+". Send the client secret there?")
		if err != nil || !ok {
			return err
		}
		q.Confirm = append(q.Confirm, r.Confirm)
	}
	a := &asking{ask: t.o.Ask, prompts: s.prompts(r.Secret)}
	defer a.wipe()
	err = a.Run()
	if err == nil {
		err = s.take(a.values)
	}
	if err == nil {
		_, err = t.o.Backend.PutSecret(ctx, q)
	}
	if err != nil {
		t.fail(err)
		return nil
	}
	t.say("Saved %s.", old.Name)
	return nil
}

func (t *talk) approvals(ctx context.Context) ([]option, error) {
	p, err := t.o.Backend.ApprovalPolicies(ctx)
	if err != nil {
		return nil, err
	}
	t.m.approvals.policies = p
	t.write(t.m.approvals.policyLines()...)
	l, err := t.o.Backend.Approvals(ctx, 0)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(l.Approvals, func(a, b control.Approval) int { return order(a.State) - order(b.State) })
	var list []option
	for _, q := range l.Approvals {
		list = append(list, option{control.Visible(fmt.Sprintf("%s: %s %s of %s", q.State, q.Method, q.URL, q.Wrapper)), func(ctx context.Context) error { return t.question(ctx, q.ID) }})
	}
	return list, nil
}

// question shows a request whole, and then asks.
func (t *talk) question(ctx context.Context, id string) error {
	q, err := t.o.Backend.Approval(ctx, id)
	if err != nil {
		t.fail(err)
		return nil
	}
	t.write(t.m.questionLines(q)...)
	if !answerable(q.State) {
		return nil
	}
	answer, err := t.ask(ctx, "Type allow, deny, or trust for this version of the wrapper for good; Enter leaves it open:")
	if err != nil || answer == "" {
		return err
	}
	if !slices.Contains([]string{control.AnswerAllow, control.AnswerDeny, control.AnswerTrust}, answer) {
		t.say("That is none of the answers; the question stays open.")
		return nil
	}
	return t.tell(ctx, func() ([]string, error) {
		q, err := t.o.Backend.Answer(ctx, &control.ApprovalAnswer{ID: id, Answer: answer})
		if err != nil {
			return nil, err
		}
		return []string{control.Visible(fmt.Sprintf("Answered %s: %s %s of %s is %s.", answer, q.Method, q.URL, q.Wrapper, q.State))}, nil
	})
}

func (t *talk) audit(ctx context.Context) error {
	return t.tell(ctx, func() ([]string, error) {
		p, err := t.o.Backend.Audit(ctx, 20)
		if err != nil {
			return nil, err
		}
		if len(p.Rows) == 0 {
			return []string{"The audit trail is empty."}, nil
		}
		var lines []string
		for _, r := range p.Rows {
			words := []string{r.Time, r.Kind, r.Wrapper, r.Method, r.Host}
			if r.Status != 0 {
				words = append(words, "status "+strconv.Itoa(r.Status))
			}
			words = append(words, auditResult(r))
			words = slices.DeleteFunc(words, func(s string) bool { return s == "" })
			lines = append(lines, clean(strings.Join(words, ", ")))
		}
		return lines, nil
	})
}
