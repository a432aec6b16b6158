package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/approval"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// approvalSetting is the name of the daemon's policy among the settings.
const approvalSetting = "approval"

// newDesk makes the desk that holds the questions for the person.
func (d *Daemon) newDesk(wait time.Duration) *approval.Desk {
	return approval.New(approval.Options{
		Policy:  d.policyFor,
		Trusted: func(_ string, doc [32]byte) bool { return d.store.Trusts(doc) },
		Trust: func(id string, doc [32]byte) error {
			return d.store.Trust(store.Trusted{Wrapper: id, Doc: doc})
		},
		Record: d.recordApproval,
		NewID:  newQuestion,
		Now:    d.now,
		Wait:   wait,
	})
}

// newQuestion is an id of 128 random bits: knowing one question's tells nothing
// of another's.
func newQuestion() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(id[:])
}

// policyFor is the policy that holds for a document. A wrapper's own policy that
// asks less than the daemon's is for the document that the person had before
// them; whoever edits the wrapper does not take it along. One that asks more
// stays with the id, also of a document that is not saved.
func (d *Daemon) policyFor(id string, doc [32]byte) approval.Policy {
	all := approval.Policy(d.state.Load().cfg.Approval)
	own, ok := d.store.ApprovalPolicyOf(id)
	switch p := approval.Policy(own.Policy); {
	case !ok:
		return all
	case own.Damaged:
		return approval.Always
	case all.Stricter(p) && own.Doc != doc:
		return all
	default:
		return p
	}
}

// carefully is the configuration with the policy that cannot be less careful
// than what a person has stored: when that cannot be read, always.
func (d *Daemon) carefully(cfg config.Daemon) config.Daemon {
	s, err := config.FindSetting(approvalSetting)
	if err == nil && d.store.SettingDamaged(approvalSetting) && !s.InEnvironment(d.env) {
		cfg.Approval = string(approval.Always)
	}
	return cfg
}

// allow asks the person for a write of a call.
func (d *Daemon) allow(ctx context.Context, a approval.Ask) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ending, cancel)()
	err := d.desk.Allow(waiting, a)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return fault.New("SHUTTING_DOWN", "hbrestd is stopping; nobody had allowed the call, and nothing was sent")
	}
	return err
}

// recordPatience bounds how long a question or an answer waits for its row.
const recordPatience = 5 * time.Second

// recordApproval writes down what became of a question, under its id.
func (d *Daemon) recordApproval(e approval.Event) {
	row := audit.Row{
		Time: d.now(), Kind: audit.KindChange, Call: e.ID, Wrapper: e.Ask.Wrapper, Method: e.Ask.Method, Host: e.Ask.Host,
	}
	switch e.Kind {
	case approval.EventAsked:
		row.Action = audit.ActionApprovalAsked
	case approval.EventAllowed:
		row.Action, row.Author = audit.ActionApprovalGiven, audit.AuthorHuman
	case approval.EventTrusted:
		row.Action, row.Author = audit.ActionApprovalTrust, audit.AuthorHuman
	case approval.EventDenied:
		row.Action, row.Author = audit.ActionApprovalDenied, audit.AuthorHuman
	case approval.EventExpired:
		row.Action = audit.ActionApprovalLapsed
	}
	d.log.Info(string(row.Action), "wrapper", row.Wrapper, "method", row.Method, "host", row.Host, "question", e.ID)
	ctx, cancel := context.WithTimeout(context.Background(), recordPatience)
	defer cancel()
	if err := d.audit.Intent(ctx, row); err != nil {
		d.log.Error("a change is not in the audit trail", "action", row.Action, "cause", err)
	}
}

// Approvals lists the questions. With the current revision it waits for news,
// for at most followPatience.
func (p person) Approvals(ctx context.Context, after uint64) (*control.ApprovalList, error) {
	wait, cancel := p.patience(ctx)
	defer cancel()
	rev, questions := p.desk.List(wait, after)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &control.ApprovalList{Revision: rev, Approvals: make([]control.Approval, 0, len(questions))}
	for _, q := range questions {
		out.Approvals = append(out.Approvals, p.shownQuestion(q))
	}
	return out, nil
}

// Approval is one question with its request.
func (p person) Approval(_ context.Context, id string) (*control.Approval, error) {
	q, err := p.desk.Find(id)
	if err != nil {
		return nil, err
	}
	out := p.shownQuestion(q)
	return &out, nil
}

// Answer answers a question.
func (p person) Answer(ctx context.Context, a *control.ApprovalAnswer) (*control.Approval, error) {
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	verdict := approval.Deny
	switch a.Answer {
	case control.AnswerAllow:
		verdict = approval.Allow
	case control.AnswerTrust:
		verdict = approval.Trust
	}
	q, err := p.desk.Decide(a.ID, verdict)
	if err != nil {
		return nil, err
	}
	out := p.shownQuestion(q)
	return &out, nil
}

func (p person) shownQuestion(q approval.Question) control.Approval {
	out := control.Approval{
		ID: q.ID, State: string(q.State), Policy: string(q.Policy), Wrapper: q.Wrapper, Name: q.Name, Version: "saved",
		Document: hex.EncodeToString(q.Doc[:]),
		Method:   q.Method, URL: q.URL, Headers: q.Headers, Body: q.Body, BodyType: q.BodyType, Credential: q.Auth, Pages: q.Pages,
		Asked: q.Asked.UTC().Format(time.RFC3339), Waiting: q.Waiting,
	}
	if !q.Expires.IsZero() {
		out.Expires = q.Expires.UTC().Format(time.RFC3339)
	}
	switch saved, err := p.store.Get(q.Wrapper); {
	case err != nil:
		out.Version = "unsaved"
	case saved.Digest() != q.Doc:
		out.Version = "other"
	}
	return out
}

// ApprovalPolicies says what holds for whom.
func (p person) ApprovalPolicies(context.Context) (*control.ApprovalPolicies, error) {
	p.settings.Lock()
	defer p.settings.Unlock()
	out := &control.ApprovalPolicies{}
	for _, s := range p.settingList().Settings {
		if s.Name == approvalSetting {
			out.Policy, out.Origin, out.Variable = s.Value, s.Origin, s.Variable
		}
	}
	rows := map[string]*control.WrapperApproval{}
	row := func(id string) *control.WrapperApproval {
		key := strings.ToLower(id)
		if rows[key] == nil {
			rows[key] = &control.WrapperApproval{Wrapper: id}
		}
		return rows[key]
	}
	for _, t := range p.store.Trusted() {
		row(t.Wrapper).Stale = true
	}
	for _, own := range p.store.ApprovalPolicies() {
		r := row(own.Wrapper)
		r.Policy, r.Damaged = own.Policy, own.Damaged
	}
	for _, e := range p.store.List() { // the id as it is written, and the version that is saved
		r := rows[strings.ToLower(e.ID)]
		if r == nil || e.Wrapper == nil {
			continue
		}
		r.Wrapper = e.ID
		doc := e.Wrapper.Digest()
		r.Holds = string(p.policyFor(e.ID, doc))
		r.Edited = r.Policy != "" && r.Holds != r.Policy
		if r.Trusted = p.store.Trusts(doc); r.Trusted {
			r.Stale = false
		}
	}
	for _, r := range rows {
		if r.Holds == "" { // not saved: of a document that nobody knows yet
			r.Holds = string(p.policyFor(r.Wrapper, [32]byte{}))
		}
		out.Wrappers = append(out.Wrappers, *r)
	}
	slices.SortFunc(out.Wrappers, func(a, b control.WrapperApproval) int { return strings.Compare(a.Wrapper, b.Wrapper) })
	return out, nil
}

// SetApprovalPolicy sets the policy of the daemon, or of one wrapper. For a
// wrapper it also takes back every answer and trust that it has: who sets a
// policy wants that one, not what was said before.
func (p person) SetApprovalPolicy(ctx context.Context, c *control.ApprovalPolicyChange) (*control.ApprovalPolicies, error) {
	if c.Wrapper == "" {
		s := &control.SettingChange{Name: approvalSetting, Value: c.Policy}
		if c.Policy == "default" {
			s.Value, s.Unset = "", true
		}
		if _, err := p.SetSetting(ctx, s); err != nil {
			return nil, err
		}
		return p.ApprovalPolicies(ctx)
	}
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	own, err := p.ownPolicy(c)
	if err != nil {
		return nil, err
	}
	if err := p.store.SetApproval(own); err != nil {
		return nil, err
	}
	p.desk.Forget(c.Wrapper)
	p.changed(ctx, approvalChanged, c.Wrapper)
	p.log.Info("approval policy changed", "wrapper", c.Wrapper, "policy", c.Policy)
	return p.ApprovalPolicies(ctx)
}

// ownPolicy is the record of a wrapper's policy.
func (p person) ownPolicy(c *control.ApprovalPolicyChange) (store.ApprovalPolicy, error) {
	own := store.ApprovalPolicy{Wrapper: c.Wrapper, Policy: c.Policy}
	if c.Policy == "default" {
		own.Policy = ""
	}
	w, err := p.store.Get(c.Wrapper)
	if err == nil {
		own.Doc = w.Digest()
		return own, nil
	}
	_, has := p.store.ApprovalPolicyOf(c.Wrapper)
	has = has || slices.ContainsFunc(p.store.Trusted(), func(t store.Trusted) bool { return strings.EqualFold(t.Wrapper, c.Wrapper) })
	switch {
	case fault.Is(err, "WRAPPER_NOT_FOUND") && has && (own.Policy == "" || own.Policy == "always"):
	case fault.Is(err, "WRAPPER_UNREADABLE") && (own.Policy == "" || own.Policy == "always"):
	default:
		return own, err
	}
	return own, nil
}

// questions says how many calls wait for a person; "" when none does.
func (d *Daemon) questions() string {
	_, list := d.desk.List(context.Background(), 0)
	n := 0
	for _, q := range list {
		if q.State == approval.Pending {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 write waits for a person to allow it: `hbrestd approval list`"
	}
	return fmt.Sprintf("%d writes wait for a person to allow them: `hbrestd approval list`", n)
}
