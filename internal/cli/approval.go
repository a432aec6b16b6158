package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func (a *app) approvalCommand() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "approval",
		Short: "Allow or deny what agents want to write",
		Long: `With a policy other than off, a call that may change something (POST, PUT, PATCH,
DELETE, or a wrapper that says so) waits for you. It is sent when you allow it
here, and only here: no tool and no route of the bridge can. After 15 seconds
the agent is told to ask you; the question stays for ten minutes, and so does
your answer, for the very same call.

What is answered or changed here is for a person. When a variable in the
environment tells that an agent runs such a command, it is refused, unless
pinentry can ask you and you allow it. That is a speed bump: a program that runs
as you can do what you can.`,
		Example: "  hbrestd approval policy first\n  hbrestd approval list\n  hbrestd approval show ID\n  hbrestd approval allow ID",
	}, a.approvalListCommand(), a.approvalShowCommand(), a.approvalAllowCommand(), a.approvalDenyCommand(), a.approvalPolicyCommand())
}

type approvalOptions struct {
	app   *app
	id    string
	trust bool
	json  bool
}

func (a *app) approvalListCommand() *cobra.Command {
	o := &approvalOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what waits for an answer",
		Long: `Lists the questions that wait, and those whose answer is not used up or not over
yet, oldest first.`,
		Example: "  hbrestd approval list\n  hbrestd approval list --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *approvalOptions) list(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	l, err := d.Approvals(ctx, 0)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(l)
	}
	if len(l.Approvals) == 0 {
		o.app.say("nothing waits for an answer")
		return nil
	}
	t := table{header: []string{"ID", "STATE", "UNTIL", "WRAPPER", "METHOD", "URL"}}
	for _, q := range l.Approvals {
		t.add(q.ID, q.State, clock(q.Expires), q.Wrapper, q.Method, control.Visible(q.URL))
	}
	return o.app.printTable(t)
}

// clock is the time of day of an RFC 3339 moment, here.
func clock(moment string) string {
	at, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return moment
	}
	return at.Local().Format("15:04:05")
}

func (a *app) approvalShowCommand() *cobra.Command {
	o := &approvalOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show the request that waits for an answer",
		Long: `Shows the request as it would be sent, whole. Values that are shaped like
credentials are masked; of a stored credential only the name is known here.
Characters that a terminal hides are written as their numbers.`,
		Example: "  hbrestd approval show 5f2c0a9e7d1b4c3a8e6f00112233aabb",
		Args:    takes(1, 1, "the id of a question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return o.show(cmd.Context())
		},
		ValidArgsFunction: a.completeQuestions(),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *approvalOptions) show(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	q, err := d.Approval(ctx, o.id)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(q)
	}
	return o.app.print(questionText(q))
}

// questionText is a question for a person: first what decides, then the request.
func questionText(q *control.Approval) string {
	state := q.State
	if q.Expires != "" && (q.State == "pending" || q.State == "allowed" || q.State == "denied") {
		state += ", until " + clock(q.Expires)
	}
	if q.Waiting > 0 {
		state += fmt.Sprintf("; %d %s now", q.Waiting, plainWord(q.Waiting, "call waits", "calls wait"))
	}
	rows := [][2]string{{"question", q.ID}, {"state", state}, {"wrapper", q.Wrapper + " (" + q.Name + ")"}, {"version", q.VersionWords()}}
	if q.State == "pending" {
		rows = append(rows, [2]string{"allow covers", coverWords(q)})
	}
	if q.Pages > 1 {
		rows = append(rows, [2]string{"requests", fmt.Sprintf("up to %d, a page each; the first is shown", q.Pages)})
	}
	rows = append(rows, [2]string{"credential", cmp.Or(q.Credential, "none")})
	var b strings.Builder
	b.WriteString(facts(rows))
	b.WriteString("\n")
	// Indented, so that nothing of a request passes for a line of ours.
	line := func(s string) { b.WriteString("  " + control.Visible(s) + "\n") }
	line(q.Method + " " + q.URL)
	for _, h := range q.Headers {
		line(h)
	}
	switch {
	case q.Body != "":
		b.WriteString("\n")
		for text := range strings.Lines(q.BodyText()) {
			line(strings.TrimSuffix(text, "\n"))
		}
	case q.Headers == nil && (q.State == "used" || q.State == "expired" || q.Expires == ""):
		b.WriteString("\n(its headers and body are not kept any longer)\n")
	}
	return b.String()
}

func coverWords(q *control.Approval) string {
	switch q.Policy {
	case "first":
		return "every request of this version of the wrapper, until the daemon stops"
	case "always":
		return "this request, once; --trust covers every request of this version, for good"
	}
	return "nothing: the policy is off now"
}

func (a *app) approvalAllowCommand() *cobra.Command {
	o := &approvalOptions{app: a}
	cmd := &cobra.Command{
		Use:   "allow ID",
		Short: "Let a request out",
		Long: `Under the policy always it lets out the request that "show" prints, once, now or
within ten minutes; under first every request of this version of the wrapper
until the daemon stops. With --trust nobody is asked again about this version of
the wrapper; an edited one is another version. An answer that is not used yet can
be turned around with "approval deny".`,
		Example: "  hbrestd approval allow 5f2c0a9e7d1b4c3a8e6f00112233aabb\n  hbrestd approval allow 5f2c0a9e7d1b4c3a8e6f00112233aabb --trust",
		Args:    takes(1, 1, "the id of a question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			if o.trust {
				return o.answer(cmd.Context(), control.AnswerTrust)
			}
			return o.answer(cmd.Context(), control.AnswerAllow)
		},
		ValidArgsFunction: a.completeQuestions(),
	}
	cmd.Flags().BoolVar(&o.trust, "trust", false, "never ask about this version of the wrapper again")
	addJSON(cmd, &o.json)
	return cmd
}

func (a *app) approvalDenyCommand() *cobra.Command {
	o := &approvalOptions{app: a}
	cmd := &cobra.Command{
		Use:   "deny ID",
		Short: "Refuse a request",
		Long: `The call is told that a person refused it, and so is the very same call for ten
minutes. It also takes back an answer that is not used yet.`,
		Example: "  hbrestd approval deny 5f2c0a9e7d1b4c3a8e6f00112233aabb",
		Args:    takes(1, 1, "the id of a question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return o.answer(cmd.Context(), control.AnswerDeny)
		},
		ValidArgsFunction: a.completeQuestions(),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *approvalOptions) answer(ctx context.Context, answer string) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	q, err := d.Approval(ctx, o.id)
	if err != nil {
		return err
	}
	request := fmt.Sprintf("%s %s of wrapper %s", q.Method, control.Visible(q.URL), q.Wrapper)
	wish := map[string]string{
		control.AnswerAllow: "let out the request ", control.AnswerTrust: "trust, for good, the wrapper that makes the request ", control.AnswerDeny: "refuse the request ",
	}[answer] + request
	if q.Body != "" { // for the person who is asked in a window
		wish += ", with the body " + fault.Shorten(control.Visible(q.Body), shownBody)
	}
	if _, err := o.app.person(ctx, wish, "answer for a person"); err != nil {
		return err
	}
	if q, err = d.Answer(ctx, &control.ApprovalAnswer{ID: o.id, Answer: answer}); err != nil {
		return err
	}
	if q.Version == "other" && answer != control.AnswerDeny {
		o.app.warn("the saved wrapper %s is another version; this answer does not hold for it", q.Wrapper)
	}
	if o.json {
		return o.app.printJSON(q)
	}
	return o.app.print(clean(answered(q, answer, request)) + "\n")
}

// shownBody is how many characters of a body a window shows.
const shownBody = 400

func answered(q *control.Approval, answer, request string) string {
	switch {
	case answer == control.AnswerDeny:
		return "denied: " + request
	case answer == control.AnswerTrust:
		return "allowed for good, with every request of this version of the wrapper: " + request
	case q.Policy == "first":
		return "allowed until the daemon stops, with every request of this version of the wrapper: " + request
	case q.Waiting > 0 || q.State == "used":
		return "allowed: " + request
	case q.Expires != "":
		return "allowed once, until " + clock(q.Expires) + ", when the same call comes again: " + request
	}
	return "allowed: " + request
}

// completeQuestions gives the ids of what waits.
func (a *app) completeQuestions() completer {
	return a.complete(1, func(ctx context.Context, c control.Backend) ([][2]string, error) {
		l, err := c.Approvals(ctx, 0)
		if err != nil {
			return nil, err
		}
		var ids [][2]string
		for _, q := range l.Approvals {
			ids = append(ids, [2]string{q.ID, q.Wrapper + ": " + q.Method + " " + q.URL})
		}
		return ids, nil
	})
}
