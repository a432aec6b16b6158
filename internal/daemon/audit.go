package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// An action is a change by a person or an agent, as the trail names it.
type action struct {
	words  audit.Action
	author audit.Author
}

var (
	settingChanged  = action{audit.ActionSettingChanged, audit.AuthorHuman}
	allowAdded      = action{audit.ActionAllowAdded, audit.AuthorHuman}
	allowRemoved    = action{audit.ActionAllowRemoved, audit.AuthorHuman}
	approvalChanged = action{audit.ActionApprovalPolicy, audit.AuthorHuman}
)

// openAudit opens the trail on its own file.
func (d *Daemon) openAudit(path string) error {
	file, err := store.OpenAudit(path, store.AuditOptions{Now: d.now, Log: d.log})
	if err != nil {
		return err
	}
	if said := file.Recovered(); said != "" {
		d.log.Error("the audit trail was damaged", "detail", said)
	}
	d.auditFile = file
	d.audit, err = audit.Open(audit.Options{
		Append: file.Append, Tail: file.Tail, Scan: file.Scan, Size: file.Size, Rotate: file.Rotate,
		Recovered: file.Recovered() != "", Now: d.now, Log: d.log,
		// The journal that collects stderr belongs to the system: a head noted
		// there cannot be rewritten together with the file.
		Report: func(head string) { d.log.Info("audit head", "head", head) },
	})
	return err
}

// newCall is an id that the rows of one call share.
func newCall() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(id[:])
}

// row is an exchange as the trail keeps it. Each hop has a row of its own.
func row(x outbound.Exchange) audit.Row {
	call := x.Tag.Call
	if call != "" && x.Hop > 0 {
		call += "-" + strconv.Itoa(x.Hop)
	}
	code := x.Err
	if code == "" { // nobody has read the answer
		code = executor.StatusCode(x.Method, x.Status)
	}
	return audit.Row{
		Time: x.Start, Kind: audit.Kind(x.Tag.Kind), Call: call, Wrapper: x.Tag.Wrapper, Method: x.Method, Host: x.Host,
		Status: x.Status, Bytes: x.Bytes, Duration: x.Duration, Error: code,
	}
}

// intent makes the row of a write durable before the write leaves.
func (d *Daemon) intent(ctx context.Context, x outbound.Exchange) error {
	return d.audit.Intent(ctx, row(x))
}

func (d *Daemon) observe(_ context.Context, x outbound.Exchange) {
	d.tidy.saw(x.Bytes)
	d.audit.Result(row(x))
}

// changed writes down a change that has been made, before its answer: what a
// caller was told is in the trail. A row that cannot be written does not undo
// the change; the log and status say so.
func (d *Daemon) changed(ctx context.Context, a action, wrapper string) {
	row := audit.Row{Time: d.now(), Kind: audit.KindChange, Wrapper: wrapper, Author: a.author, Action: a.words}
	if err := d.audit.Intent(context.WithoutCancel(ctx), row); err != nil {
		d.log.Error("a change is not in the audit trail", "action", a.words, "cause", err)
	}
}

// Audit is the newest rows, intent and result merged.
func (d *Daemon) Audit(ctx context.Context, limit int) (*api.AuditPage, error) {
	if err := d.audit.Settle(ctx); err != nil {
		return nil, err
	}
	rows, next, err := d.audit.Last(limit)
	if err != nil {
		return nil, err
	}
	return page(rows, next), nil
}

// AuditFollow waits for rows after a sequence number.
func (d *Daemon) AuditFollow(ctx context.Context, after uint64, limit int) (*api.AuditPage, error) {
	wait, cancel := d.patience(ctx)
	defer cancel()
	rows, next, err := d.audit.Follow(wait, after, limit)
	if err != nil && wait.Err() == nil {
		return nil, err
	}
	return page(rows, max(next, after)), nil
}

func page(rows []audit.Merged, next uint64) *api.AuditPage {
	out := &api.AuditPage{Rows: make([]api.AuditRow, 0, len(rows)), Next: next}
	for _, m := range rows {
		out.Rows = append(out.Rows, api.AuditRow{
			Seq: m.Seq, Time: m.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00"), Kind: string(m.Kind), Call: m.Call,
			Wrapper: m.Wrapper, Method: m.Method, Host: m.Host, Status: m.Status, Bytes: m.Bytes,
			DurationMs: m.Duration.Milliseconds(), Error: string(m.Error), Outcome: m.Outcome,
			Author: string(m.Author), Action: string(m.Action),
		})
	}
	return out
}

// AuditVerify checks the chain of all kept rows.
func (d *Daemon) AuditVerify(ctx context.Context, r *control.AuditVerifyRequest) (*control.AuditReport, error) {
	if err := d.audit.Settle(ctx); err != nil {
		return nil, err
	}
	rep, err := d.audit.Verify(ctx, r.Head)
	if err != nil {
		return nil, err
	}
	return &control.AuditReport{
		OK: rep.OK, Rows: rep.Rows, First: rep.First, Head: rep.Head, BadSeq: rep.BadSeq, Problem: rep.Problem, HeadSeen: rep.HeadSeen, Recovered: rep.Recovered,
	}, nil
}

// AuditHead is the end of the chain.
func (d *Daemon) AuditHead(context.Context) (*control.AuditHead, error) {
	seq, hash := d.audit.Head()
	return &control.AuditHead{Seq: seq, Hash: hash, Head: strconv.FormatUint(seq, 10) + ":" + hash}, nil
}

// followPatience bounds one wait of a long poll; the caller asks again.
const followPatience = 25 * time.Second

// patience is the context of one wait for news: it ends with the caller, with
// the daemon, and after followPatience.
func (d *Daemon) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, followPatience)
	stop := context.AfterFunc(d.ending, cancel)
	return ctx, func() { stop(); cancel() }
}
