package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// approvalsTab lists the questions that wait for the person.
type approvalsTab struct {
	all      *control.ApprovalList // nil: not read yet
	policies *control.ApprovalPolicies
	list     list
	page     int
}

func newApprovalsTab() *approvalsTab {
	return &approvalsTab{list: list{header: []string{"STATE", "UNTIL", "WRAPPER", "METHOD", "URL", "ID"}}}
}

func (t *approvalsTab) title(*model) string {
	if n := t.waiting(); n > 0 {
		return fmt.Sprintf("Approvals (%d)", n)
	}
	return "Approvals"
}

func (t *approvalsTab) waiting() int {
	n := 0
	if t.all != nil {
		for _, q := range t.all.Approvals {
			if q.State == "pending" {
				n++
			}
		}
	}
	return n
}

func (t *approvalsTab) shown(m *model) tea.Cmd { return m.loadPolicies() }

// set takes the list, and brings questions that are open up to date.
func (t *approvalsTab) set(m *model, l *control.ApprovalList) tea.Cmd {
	t.all = l
	var rows []row
	for _, q := range l.Approvals {
		r := row{id: q.ID, cells: []string{control.Visible(q.State), m.clock(q.Expires), control.Visible(q.Wrapper), control.Visible(q.Method), control.Visible(q.URL), control.Visible(q.ID)}}
		switch q.State {
		case "pending":
			r.look = yellow
		case "denied", "expired":
			r.look = red
		case "allowed", "used":
			r.look = green
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(order(a.cells[0]), order(b.cells[0])) })
	t.list.set(rows)
	var cmds []tea.Cmd
	for _, s := range m.stack {
		if q, ok := s.(*questionScreen); ok {
			cmds = append(cmds, q.reload(m))
		}
	}
	return tea.Batch(cmds...)
}

// order puts what waits first.
func order(state string) int {
	if state == "pending" {
		return 0
	}
	return 1
}

func (m *model) loadPolicies() tea.Cmd {
	return func() tea.Msg {
		p, err := m.o.Backend.ApprovalPolicies(m.ctx)
		return then(func(m *model) tea.Cmd {
			if err == nil { // if not, the calls for news say so
				m.approvals.policies = p
			}
			return nil
		})
	}
}

func (t *approvalsTab) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if t.list.key(k, t.page) {
		return nil
	}
	switch k.String() {
	case "enter":
		if id := t.list.id(); id != "" {
			return m.showQuestion(id)
		}
	case "p":
		return t.setPolicy(m)
	}
	return nil
}

func (t *approvalsTab) lines(_ *model, width, height int) ([]string, *tea.Position) {
	out := wrap(cleaned(t.policyLines()), width)
	out = append(out[:min(len(out), height/2)], "")
	switch {
	case t.all == nil:
		return append(out, "  Asking the daemon ..."), nil
	case len(t.all.Approvals) == 0:
		return append(out, "  Nothing waits for an answer."), nil
	}
	t.page = height - len(out) - 1
	return append(out, t.list.lines(width, height-len(out))...), nil
}

func (t *approvalsTab) policyLines() []string {
	p := t.policies
	if p == nil {
		return []string{"Policy: not known yet"}
	}
	words := map[string]string{"off": "writes are not asked about", "first": "asks before the first write of each version of a wrapper", "always": "asks before every write"}[p.Policy]
	lines := []string{clean(fmt.Sprintf("Policy: %s (%s): %s", p.Policy, p.Origin, words))}
	for _, w := range p.Wrappers {
		s := w.Holds
		switch {
		case w.Trusted:
			s = "trusted: its writes ask nobody"
		case w.Damaged:
			s += ", its own policy cannot be read: set it again"
		case w.Edited:
			s += ", edited since its own policy " + w.Policy + " was set"
		case w.Stale:
			s += ", another version was trusted"
		}
		lines = append(lines, clean("  "+w.Wrapper+": "+s))
	}
	return lines
}

func (t *approvalsTab) keys(*model) string {
	return "enter see the whole request and answer  p policy  tab next tab  ? help"
}
func (t *approvalsTab) typing() bool         { return false }
func (t *approvalsTab) paste(*model, string) {}

// setPolicy asks for a policy, the daemon's or one wrapper's.
func (t *approvalsTab) setPolicy(m *model) tea.Cmd {
	whose := []choice{{"", "the daemon, for all wrappers"}}
	if m.wrappers.all != nil {
		for _, w := range m.wrappers.all.Wrappers {
			whose = append(whose, choice{w.ID, clean(w.ID)})
		}
	}
	m.push(&form{
		name: "Who is asked before a write",
		fields: []*field{
			pick("whose", "For", "", "A wrapper's own policy holds for the version that is saved now.", whose...),
			pick("policy", "Policy", "first", "first: once for each version of a wrapper. always: each request. default: forget what was set.",
				choice{"first", "first"}, choice{"always", "always"}, choice{"off", "off"}, choice{"default", "default"}),
			action("Save", "Trust and answers that a wrapper has are taken back.", func(m *model, f *form) tea.Cmd { return f.save(m, f) }),
		},
		save: func(m *model, f *form) tea.Cmd {
			q := &control.ApprovalPolicyChange{Wrapper: f.value("whose"), Policy: f.value("policy")}
			return m.do("setting the policy", func(ctx context.Context) then {
				p, err := m.o.Backend.SetApprovalPolicy(ctx, q)
				return func(m *model) tea.Cmd {
					if err != nil {
						f.problems = shortProblems(err)
						return nil
					}
					t.policies = p
					m.close(f)
					m.good("the policy is set")
					return nil
				}
			})
		},
	})
	return nil
}

// A questionScreen shows a request that waits, whole, and takes the answer.
// Only here can it be given: nobody allows what they have not been shown.
type questionScreen struct {
	*pager
	q *control.Approval
}

func (m *model) showQuestion(id string) tea.Cmd {
	return m.do("reading the request", func(ctx context.Context) then {
		q, err := m.o.Backend.Approval(ctx, id)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			s := &questionScreen{pager: newPager("", nil)}
			s.set(m, q)
			m.push(s)
			return nil
		}
	})
}

func (s *questionScreen) set(m *model, q *control.Approval) {
	s.q, s.name, s.text = q, "May this request be sent?", m.questionLines(q)
	if q.State != "pending" {
		s.name = "A request that was asked about: " + q.State
	}
}

func (s *questionScreen) reload(m *model) tea.Cmd {
	return func() tea.Msg {
		q, err := m.o.Backend.Approval(m.ctx, s.q.ID)
		return then(func(m *model) tea.Cmd {
			if err == nil {
				s.set(m, q)
			} else if m.away == nil && m.open(s) && s.q.State == "pending" {
				gone := *s.q
				gone.State = "gone"
				s.set(m, &gone)
			}
			return nil
		})
	}
}

func (s *questionScreen) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "esc" || name == "q" || name == "left" || name == "backspace" {
		m.close(s)
		return nil
	}
	if !answerable(s.q.State) {
		return s.pager.key(m, k)
	}
	if !s.read && (name == "a" || name == "T") {
		m.warn("the request goes on below: scroll to its end before you allow it")
		return nil
	}
	switch name {
	case "a":
		return s.answer(m, control.AnswerAllow)
	case "d":
		return s.answer(m, control.AnswerDeny)
	case "T":
		m.ask(func(m *model) tea.Cmd { return s.answer(m, control.AnswerTrust) },
			control.Visible("Trust this version of the wrapper "+s.q.Wrapper+" for good?"),
			"Nobody is asked about its writes any more, whatever their arguments, until it is edited.")
		return nil
	}
	return s.pager.key(m, k)
}

// answerable reports whether an answer would change anything: what waits, and
// an answer that was not used yet.
func answerable(state string) bool {
	return state == "pending" || state == "allowed" || state == "denied"
}

func (s *questionScreen) keys(m *model) string {
	if !answerable(s.q.State) {
		return s.pager.keys(m)
	}
	keys := "a allow  d deny  T trust this version  esc later"
	if s.total > s.page {
		keys = "↑↓ scroll  " + keys
	}
	return keys
}

func (s *questionScreen) answer(m *model, answer string) tea.Cmd {
	id := s.q.ID
	return m.do("answering", func(ctx context.Context) then {
		q, err := m.o.Backend.Answer(ctx, &control.ApprovalAnswer{ID: id, Answer: answer})
		return func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return s.reload(m)
			}
			m.close(s)
			what := fmt.Sprintf("%s %s of %s", control.Visible(q.Method), control.Visible(q.URL), control.Visible(q.Wrapper))
			switch {
			case answer == control.AnswerDeny:
				m.warn("denied: %s", what)
			case q.Version == "other":
				m.warn("allowed, but the saved wrapper is another version, for which it does not hold: %s", what)
			case answer == control.AnswerTrust:
				m.good("trusted for good: %s", what)
			default:
				m.good("allowed: %s", what)
			}
			return m.loadPolicies()
		}
	})
}

// questionLines are a question for a person: first what decides, then the
// request, in which everything can be seen.
func (m *model) questionLines(q *control.Approval) []string {
	state := control.Visible(q.State)
	switch {
	case q.State == "expired":
		state = "expired: nobody answered in time; the agent must call again"
	case q.State == "gone":
		state = "gone: it was answered elsewhere, or is over"
	case q.Expires != "" && slices.Contains([]string{"pending", "allowed", "denied"}, q.State):
		state += ", until " + m.clock(q.Expires)
	}
	if q.Waiting > 0 {
		state += "; " + plural(q.Waiting, "call waits now", "calls wait now")
	}
	rows := [][2]string{{"question", control.Visible(q.ID)}, {"state", state}, {"wrapper", control.Visible(q.Wrapper + " (" + q.Name + ")")}, {"version", q.VersionWords()}}
	if q.State == "pending" {
		rows = append(rows, [2]string{"allow covers", coverWords(q)})
	}
	if q.Pages > 1 {
		rows = append(rows, [2]string{"requests", fmt.Sprintf("up to %d, a page each; the first is shown", q.Pages)})
	}
	rows = append(rows, [2]string{"credential", control.Visible(cmp.Or(q.Credential, "none"))})
	lines := append(facts(rows), "")
	// Indented, so that nothing of a request passes for a line of ours.
	lines = append(lines, "  "+control.Visible(q.Method+" "+q.URL))
	for _, h := range q.Headers {
		lines = append(lines, "  "+control.Visible(h))
	}
	if q.Body != "" {
		lines = append(lines, "")
		for _, l := range exactLines(q.BodyText()) {
			lines = append(lines, "  "+l)
		}
	}
	return lines
}

// coverWords say what allowing a question would allow.
func coverWords(q *control.Approval) string {
	switch q.Policy {
	case "first":
		return "every request of this version of the wrapper, until the daemon stops"
	case "always":
		return "this request, once"
	}
	return "nothing: the policy is off now"
}
