package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Rows of the audit trail.
const (
	auditDefault = 20
	auditMost    = 1000 // of one call; the control socket's limit
)

// followPause is the least time between two questions of a follower, should
// the daemon answer at once that there is nothing.
const followPause = 250 * time.Millisecond

type auditOptions struct {
	app    *app
	rows   int
	follow bool
	head   string
	json   bool
}

func (a *app) auditCommand() *cobra.Command {
	o := &auditOptions{app: a}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show what was sent where and what was changed, newest last",
		Long: `Shows the newest rows of the audit trail: each request that left this machine
and each change that a person or an agent made. A row holds no header, body,
path, argument or credential.

For a program the columns are: sequence, time, kind, wrapper, method, host,
status, bytes, milliseconds, result. With --follow --json each line is one row.`,
		Example:     "  hbrestd audit\n  hbrestd audit -n 100 --json\n  hbrestd audit --follow",
		Args:        noSuchCommand,
		Annotations: map[string]string{"acts": "yes"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().IntVarP(&o.rows, "rows", "n", auditDefault, "how many rows, at most 1000")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "wait for further rows, until interrupted")
	addJSON(cmd, &o.json)
	cmd.AddCommand(a.auditVerifyCommand(), a.auditHeadCommand())
	return cmd
}

func (o *auditOptions) run(ctx context.Context) error {
	if o.rows < 1 || o.rows > auditMost {
		return usage("--rows is %d, not a whole number from 1 to %d", o.rows, auditMost)
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	page, err := d.Audit(ctx, o.rows)
	if err != nil {
		return err
	}
	if !o.follow {
		if o.json {
			return o.app.printJSON(page)
		}
		if len(page.Rows) == 0 {
			o.app.say("the audit trail is empty")
			return nil
		}
		return o.print(page.Rows, true)
	}
	err = o.followFrom(ctx, d, page)
	if ctx.Err() != nil && (fault.Is(err, "CALL_CANCELLED") || err == nil) {
		return nil // interrupting is how following ends
	}
	return err
}

// followFrom prints a page and what comes after it.
func (o *auditOptions) followFrom(ctx context.Context, d control.Backend, page *api.AuditPage) error {
	heading := true
	for {
		if heading || len(page.Rows) > 0 {
			if err := o.print(page.Rows, heading); err != nil {
				return err
			}
			heading = false
		}
		asked := time.Now()
		next, err := d.AuditFollow(ctx, page.Next, auditMost)
		if err != nil {
			return err
		}
		if len(next.Rows) == 0 && time.Since(asked) < followPause {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(followPause):
			}
		}
		page = next
	}
}

// print writes rows; those of a follower with columns that stay where they are.
func (o *auditOptions) print(rows []api.AuditRow, heading bool) error {
	if o.json {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return fmt.Errorf("writing JSON: %w", err)
			}
		}
		return o.app.print(b.String())
	}
	t := table{header: []string{"SEQ", "TIME", "KIND", "WRAPPER", "METHOD", "HOST", "STATUS", "BYTES", "MS", "RESULT"}}
	if o.follow {
		t.least = []int{6, len("2026-11-30T08:00:00.123Z"), 6, 20, 6, 24, 6, 7, 6, 0}
	}
	for _, r := range rows {
		t.add(auditCells(r)...)
	}
	if width := o.app.width(); width > 0 {
		return o.app.print(aligned(t, width, heading))
	}
	return o.app.print(separated(t.rows))
}

func auditCells(r api.AuditRow) []string {
	status, bytes, ms := "", "", ""
	if r.Status != 0 {
		status = strconv.Itoa(r.Status)
	}
	if r.Kind != "change" {
		bytes, ms = strconv.FormatInt(r.Bytes, 10), strconv.FormatInt(r.DurationMs, 10)
	}
	var result []string
	add := func(s string) {
		if s != "" {
			result = append(result, s)
		}
	}
	add(r.Action)
	if r.Author != "" {
		add("by " + r.Author)
	}
	add(r.Error)
	if r.Outcome == "unknown" {
		add("unknown outcome")
	} else {
		add(r.Outcome)
	}
	return []string{strconv.FormatUint(r.Seq, 10), r.Time, r.Kind, r.Wrapper, r.Method, r.Host, status, bytes, ms, strings.Join(result, " ")}
}

func (a *app) auditVerifyCommand() *cobra.Command {
	o := &auditOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no row of the audit trail was changed or taken out",
		Long: `Reads the whole audit trail and checks that each row follows from the one
before. With --head it also checks that the row whose head was noted elsewhere
is still there, which shows a trail that was rewritten from some row on.
Exit code 1: it does not verify.`,
		Example: "  hbrestd audit verify\n  hbrestd audit verify --head \"$(cat noted-head)\"",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.verify(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.head, "head", "", "a head (`SEQ:HASH`) that was noted earlier")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *auditOptions) verify(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	r, err := d.AuditVerify(ctx, &control.AuditVerifyRequest{Head: strings.TrimSpace(o.head)})
	if err != nil {
		return err
	}
	if o.json {
		err = o.app.printJSON(r)
	} else {
		err = o.app.print(verdict(r))
	}
	if err == nil && !r.OK {
		return errSilent
	}
	return err
}

func verdict(r *control.AuditReport) string {
	if !r.OK {
		at := ""
		if r.BadSeq != 0 {
			at = fmt.Sprintf(" at row %d", r.BadSeq)
		}
		return fmt.Sprintf("the audit trail does NOT verify%s: %s\n", at, clean(r.Problem))
	}
	if r.Rows == 0 {
		return "the audit trail is empty\n"
	}
	seen := ""
	if r.HeadSeen {
		seen = "; the noted head is in it"
	}
	lost := ""
	if r.Recovered > 0 {
		lost = fmt.Sprintf("note: row %d says that a damaged file was set aside; rows before it may be missing\n", r.Recovered)
	}
	return fmt.Sprintf("the audit trail verifies: %d rows from %d on, head %s%s\n", r.Rows, r.First, clean(r.Head), seen) + lost
}

func (a *app) auditHeadCommand() *cobra.Command {
	o := &auditOptions{app: a}
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Print the head of the audit trail, to be noted elsewhere",
		Long: `Prints SEQ:HASH of the newest row. Noted where this machine cannot change it,
it lets "audit verify --head" prove later that nothing before it was touched.`,
		Example: "  hbrestd audit head > noted-head",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.printHead(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *auditOptions) printHead(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	h, err := d.AuditHead(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(h)
	}
	return o.app.print(clean(h.Head) + "\n")
}
