package tui

import (
	"cmp"
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// credentialsTab lists what may be known of credentials.
type credentialsTab struct {
	state  *control.SecretState // nil: not read yet
	seen   bool                 // the tab was shown: only then is a keyring asked
	list   list
	filter filter
	page   int
}

func newCredentialsTab() *credentialsTab {
	return &credentialsTab{list: list{header: []string{"NAME", "KIND", "HOSTS", "HEADERS", "UPDATED", "USED BY"}}}
}

func (t *credentialsTab) title(*model) string { return "Credentials" }

func (t *credentialsTab) shown(m *model) tea.Cmd {
	t.seen = true
	return t.load(m)
}

// load reads the list, once somebody has looked at it.
func (t *credentialsTab) load(m *model) tea.Cmd {
	if !t.seen {
		return nil
	}
	return func() tea.Msg {
		st, err := m.o.Backend.SecretState(m.ctx)
		return then(func(m *model) tea.Cmd {
			if err != nil {
				if m.away == nil && m.ctx.Err() == nil {
					m.fail(err)
				}
				return nil
			}
			t.state = st
			t.refresh()
			return nil
		})
	}
}

func (t *credentialsTab) refresh() {
	if t.state == nil {
		return
	}
	var rows []row
	for _, s := range t.state.Secrets {
		r := row{id: s.Name, cells: []string{
			clean(s.Name), clean(s.Kind), clean(strings.Join(s.AllowedHosts, ", ")), clean(headersText(s.Headers)), clean(day(s.Updated)), clean(strings.Join(s.UsedBy, ", ")),
		}}
		if s.Problem != "" {
			r.cells[2], r.look = clean("cannot be read: "+s.Problem), red
		}
		if t.filter.keeps(r.cells...) {
			rows = append(rows, r)
		}
	}
	t.list.set(rows)
}

func headersText(hs []control.SecretHeader) string {
	var out []string
	for _, h := range hs {
		out = append(out, strings.TrimSpace(h.Name+": "+h.Prefix)+" ***")
	}
	return strings.Join(out, ", ")
}

func (t *credentialsTab) find(name string) *control.SecretInfo {
	if t.state == nil {
		return nil
	}
	for i := range t.state.Secrets {
		if t.state.Secrets[i].Name == name {
			return &t.state.Secrets[i]
		}
	}
	return nil
}

func (t *credentialsTab) typing() bool { return t.filter.on }

func (t *credentialsTab) paste(_ *model, s string) {
	if t.filter.on {
		t.filter.in.add(s)
		t.refresh()
	}
}

func (t *credentialsTab) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if t.filter.key(k) {
		t.refresh()
		return nil
	}
	if t.list.key(k, t.page) {
		return nil
	}
	if k.String() == "n" {
		return t.open(m, nil, "", nil)
	}
	s := t.find(t.list.id())
	if s == nil {
		return nil
	}
	if k.String() == "enter" {
		p := newPager("Credential "+s.Name, credentialText(s))
		p.does, p.doKeys = t.keysFor(s.Name), "e edit  r new value  t test  d delete"
		m.push(p)
		return nil
	}
	if do := t.keysFor(s.Name)[k.String()]; do != nil {
		return do(m)
	}
	return nil
}

func (t *credentialsTab) keysFor(name string) map[string]func(m *model) tea.Cmd {
	with := func(do func(m *model, s *control.SecretInfo) tea.Cmd) func(m *model) tea.Cmd {
		return func(m *model) tea.Cmd {
			if s := t.find(name); s != nil {
				return do(m, s)
			}
			return nil
		}
	}
	return map[string]func(m *model) tea.Cmd{
		"e": with(func(m *model, s *control.SecretInfo) tea.Cmd { return t.open(m, s, "", nil) }),
		"r": with(t.rotate), "t": with(t.test), "d": with(t.remove),
	}
}

func credentialText(s *control.SecretInfo) []string {
	rows := [][2]string{{"kind", s.Kind}, {"hosts", strings.Join(s.AllowedHosts, ", ")}, {"headers", headersText(s.Headers)}}
	if o := s.OAuth; o != nil {
		rows = append(rows, [][2]string{{"token URL", o.TokenURL}, {"client id", o.ClientID}, {"scope", o.Scope}, {"audience", o.Audience}, {"auth style", o.AuthStyle}}...)
	}
	rows = append(rows, [][2]string{{"updated", s.Updated}, {"used by", cmp.Or(strings.Join(s.UsedBy, ", "), "no wrapper")}, {"problem", s.Problem}}...)
	rows = slices.DeleteFunc(rows, func(r [2]string) bool { return r[1] == "" })
	for i := range rows {
		rows[i][1] = clean(rows[i][1])
	}
	return append(facts(rows), "", "Its value is never shown. It is sent to these hosts alone.")
}

func (t *credentialsTab) lines(_ *model, width, height int) ([]string, *tea.Position) {
	if t.state == nil {
		return []string{"", "  Asking the daemon and the keyring ..."}, nil
	}
	var out []string
	if !usable(t.state) && t.state.State != "not asked" {
		out = append(out, red(cut(clean("Credentials cannot be used: "+stateWords(t.state.State)+"."), width)))
		for _, s := range []string{t.state.Reason, t.state.Fix} {
			if s != "" {
				out = append(out, wrap([]string{"  " + clean(s)}, width)...)
			}
		}
		out = append(out, "")
	}
	line, cursor, on := t.filter.line(width)
	if on {
		if cursor != nil {
			cursor.Y = len(out)
		}
		out = append(out, line)
	}
	switch {
	case len(t.state.Secrets) == 0:
		return append(out, "", "  No credential is stored. Press n to store one."), cursor
	case len(t.list.rows) == 0:
		return append(out, "", "  No credential has all these words."), cursor
	}
	t.page = height - len(out) - 1
	return append(out, t.list.lines(width, height-len(out))...), cursor
}

func stateWords(state string) string {
	switch state {
	case "none":
		return "there is no keyring"
	case "key missing":
		return "the keyring does not have their key"
	}
	return "the keyring is " + state
}

func usable(st *control.SecretState) bool { return st.State == "ready" }

func (t *credentialsTab) keys(*model) string {
	if t.filter.on {
		return "type words to keep  enter done  esc all"
	}
	return "enter show  n new  e edit  r new value  t test  d delete  / filter  ? help"
}

func (t *credentialsTab) remove(m *model, s *control.SecretInfo) tea.Cmd {
	lines := []string{clean("Forget the credential " + s.Name + "? Its value cannot be had back.")}
	if len(s.UsedBy) > 0 {
		lines = append(lines, clean("These wrappers use it: "+strings.Join(s.UsedBy, ", ")))
	}
	m.ask(func(m *model) tea.Cmd {
		return m.do("forgetting "+s.Name, func(ctx context.Context) then {
			_, err := m.o.Backend.DeleteSecret(ctx, &control.SecretName{Name: s.Name})
			return func(m *model) tea.Cmd {
				if err != nil {
					m.fail(err)
					return nil
				}
				m.stack = nil
				m.good("forgot %s", s.Name)
				return t.load(m)
			}
		})
	}, lines...)
	return nil
}

// test calls a wrapper that reads and uses the credential.
func (t *credentialsTab) test(m *model, s *control.SecretInfo) tea.Cmd {
	var can []choice
	for _, id := range s.UsedBy {
		if w := m.wrappers.entry(id); w != nil && !w.Mutating && w.Method == "GET" && len(w.Required) == 0 {
			can = append(can, choice{id, clean(id + " (" + w.Host + ")")})
		}
	}
	if len(can) == 0 {
		m.warn("no saved wrapper can test %s: one is needed that names it, reads with GET and takes no required argument", s.Name)
		return nil
	}
	m.push(&form{
		name: "Test the credential " + s.Name, saves: "send",
		fields: []*field{
			pick("wrapper", "Wrapper", "", "A wrapper that only reads. Its request is sent, with the credential.", can...),
			action("Send its request", "Sends the request once.", func(m *model, f *form) tea.Cmd { return f.save(m, f) }),
		},
		save: func(m *model, f *form) tea.Cmd {
			q := &control.SecretTest{Name: s.Name, Wrapper: f.value("wrapper")}
			f.problems = nil
			return m.do("calling "+q.Wrapper, func(ctx context.Context) then {
				r, err := m.o.Backend.TestSecret(ctx, q)
				return func(m *model) tea.Cmd {
					if err != nil {
						f.problems = shortProblems(err)
						return nil
					}
					m.close(f)
					m.good("%s works with %s", s.Name, q.Wrapper)
					m.push(newPager("Answer of "+q.Wrapper+" with "+s.Name, resultLines(r)))
					return nil
				}
			})
		},
	})
	return nil
}
