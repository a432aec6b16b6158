package tui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// wrappersTab lists the saved wrappers.
type wrappersTab struct {
	all    *api.Manifest // nil: not read yet
	ranks  map[string]int
	list   list
	filter filter
	page   int
}

func newWrappersTab() *wrappersTab {
	return &wrappersTab{list: list{header: []string{"ID", "NAME", "METHOD", "HOST", "VERIFIED", "TOOL"}}}
}

func (t *wrappersTab) title(*model) string { return "Wrappers" }

func (t *wrappersTab) shown(*model) tea.Cmd { return nil }

func (t *wrappersTab) set(m *model, l *api.Manifest) {
	t.all, t.ranks = l, l.ToolRanks()
	t.refresh(m)
}

func (t *wrappersTab) refresh(m *model) {
	if t.all == nil {
		return
	}
	var rows []row
	for i := range t.all.Wrappers {
		w := &t.all.Wrappers[i]
		cells := []string{clean(w.ID), clean(w.Name), methods(w), clean(w.Host), verified(w), clean(m.toolState(w))}
		if !t.filter.keeps(append(cells, clean(w.Description), clean(w.Secret))...) {
			continue
		}
		rows = append(rows, row{id: w.ID, cells: cells, look: lookOf(w)})
	}
	t.list.set(rows)
}

func lookOf(w *api.ManifestEntry) func(string) string {
	switch {
	case w.Damaged != "":
		return red
	case w.Quarantined != "", w.Stale, len(w.Drift) > 0:
		return yellow
	}
	return nil
}

func methods(w *api.ManifestEntry) string {
	if len(w.Methods) > 1 {
		return strings.Join(w.Methods, "/")
	}
	return w.Method
}

func verified(w *api.ManifestEntry) string {
	s := day(w.Verified)
	if w.Stale {
		s = "stale " + s
	}
	if len(w.Drift) > 0 {
		s = "drift " + s // first, where a narrow column does not cut it off
	}
	return s
}

func (m *model) toolState(w *api.ManifestEntry) string {
	rank := m.wrappers.ranks[w.ID]
	switch {
	case w.Damaged != "":
		return "damaged: " + w.Damaged
	case !w.ExposeAsTool:
		return "hidden"
	case w.Quarantined != "":
		return "quarantined: " + w.Quarantined
	case rank > m.o.MaxTools:
		return fmt.Sprintf("over cap: %d of %d", rank, m.o.MaxTools)
	}
	return "tool"
}

func (t *wrappersTab) entry(id string) *api.ManifestEntry {
	if t.all == nil {
		return nil
	}
	for i := range t.all.Wrappers {
		if t.all.Wrappers[i].ID == id {
			return &t.all.Wrappers[i]
		}
	}
	return nil
}

func (t *wrappersTab) typing() bool { return t.filter.on }

func (t *wrappersTab) paste(m *model, s string) {
	if t.filter.on {
		t.filter.in.add(s)
		t.refresh(m)
	}
}

func (t *wrappersTab) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if t.filter.key(k) {
		t.refresh(m)
		return nil
	}
	if t.list.key(k, t.page) {
		return nil
	}
	if k.String() == "n" {
		return m.newWrapper()
	}
	w := t.entry(t.list.id())
	if w == nil {
		return nil
	}
	if k.String() == "enter" {
		return m.showWrapper(w.ID)
	}
	if do := wrapperKeys(w.ID)[k.String()]; do != nil {
		return do(m)
	}
	return nil
}

// wrapperKeys are the keys for one wrapper, in the list and over its document.
func wrapperKeys(id string) map[string]func(m *model) tea.Cmd {
	with := func(do func(m *model, id string) tea.Cmd) func(m *model) tea.Cmd {
		return func(m *model) tea.Cmd { return do(m, id) }
	}
	return map[string]func(m *model) tea.Cmd{
		"e": with((*model).editWrapper), "E": with((*model).editDocument), "t": with((*model).tryWrapper), "s": with((*model).sampleWrapper),
		"x": with((*model).toggleTool), "p": with((*model).setPriority), "d": with((*model).deleteWrapper),
	}
}

func (t *wrappersTab) lines(_ *model, width, height int) ([]string, *tea.Position) {
	var out []string
	line, cursor, on := t.filter.line(width)
	if on {
		out = append(out, line)
	}
	switch {
	case t.all == nil:
		return append(out, "", "  Asking the daemon ..."), cursor
	case len(t.all.Wrappers) == 0:
		return append(out, "", "  No wrapper is saved yet. Press n to make one, or let your agent make one."), cursor
	case len(t.list.rows) == 0:
		return append(out, "", "  No wrapper has all these words."), cursor
	}
	t.page = height - len(out) - 2
	out = append(out, t.list.lines(width, height-len(out)-1)...)
	for len(out) < height-1 {
		out = append(out, "")
	}
	return append(out, faint(t.about())), cursor
}

// about is what the columns cut away of the chosen wrapper.
func (t *wrappersTab) about() string {
	w := t.entry(t.list.id())
	if w == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%d of %d", t.list.at+1, len(t.list.rows)), w.VerifiedNote()}
	if n := w.DriftNote(); n != "" {
		parts = append(parts, n)
	}
	if w.Tool != "" {
		parts = append(parts, w.Tool)
	}
	if w.Quarantined != "" {
		parts = append(parts, w.Quarantined)
	}
	if w.Damaged != "" {
		parts = append(parts, w.Damaged)
	}
	return clean(strings.Join(parts, " · "))
}

func (t *wrappersTab) keys(m *model) string {
	if t.filter.on {
		return "type words to keep  enter done  esc all"
	}
	if m.width < 100 {
		return "enter show  n new  e edit  t test  x tool on/off  d delete  / filter  ? help"
	}
	return "enter show  n new  e edit  E as JSON  t dry run  s sample  x tool on/off  p priority  d delete  / filter  tab next tab  ? help  q quit"
}

// showWrapper shows what is known of a wrapper, and its document.
func (m *model) showWrapper(id string) tea.Cmd {
	return m.do("reading "+id, func(ctx context.Context) then {
		doc, err := m.o.Backend.Wrapper(ctx, id)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			p := newPager("Wrapper "+id, m.wrapperText(id, doc))
			p.does, p.doKeys = wrapperKeys(id), "e edit  E JSON  t dry run  s sample  x tool  d delete"
			m.push(p)
			return nil
		}
	})
}

func (m *model) wrapperText(id string, doc json.RawMessage) []string {
	var rows [][2]string
	if w := m.wrappers.entry(id); w != nil {
		add := func(name, value string) {
			if value != "" {
				rows = append(rows, [2]string{name, clean(value)})
			}
		}
		add("name", w.Name)
		add("request", methods(w)+" to "+w.Host)
		add("credential", cmp.Or(w.Secret, "none"))
		add("writes", yesNo(w.Mutating))
		tool := m.toolState(w)
		if w.Tool != "" && tool == "tool" {
			tool = w.Tool
		}
		if rank := m.wrappers.ranks[id]; rank > 0 {
			tool += fmt.Sprintf(", priority %d, rank %d", w.Priority, rank)
		}
		add("tool", tool)
		add("worked", w.VerifiedNote())
		add("drift", w.DriftNote())
		rows = append(rows, [2]string{"", ""})
	}
	return append(facts(rows), cleanLines(pretty(doc))...)
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// toggleTool exposes a hidden wrapper, and hides an exposed one.
func (m *model) toggleTool(id string) tea.Cmd {
	w := m.wrappers.entry(id)
	if w == nil {
		return nil
	}
	return m.expose(&control.ExposeRequest{ID: id, Hide: w.ExposeAsTool})
}

func (m *model) expose(q *control.ExposeRequest) tea.Cmd {
	return m.do("changing "+q.ID, func(ctx context.Context) then {
		r, err := m.o.Backend.Expose(ctx, q)
		return func(m *model) tea.Cmd {
			switch {
			case err != nil:
				m.fail(err)
			case !r.Exposed:
				m.good("%s is hidden; wrap_run still reaches it", r.ID)
			case r.Quarantined != "":
				m.warn("%s is a tool, but no client is shown it: %s", r.ID, r.Quarantined)
			case r.Rank > m.o.MaxTools:
				m.warn("%s is the tool %s of rank %d, and clients show %d: give it a higher priority (p)", r.ID, r.Tool, r.Rank, m.o.MaxTools)
			default:
				m.good("%s is the tool %s, priority %d, rank %d", r.ID, r.Tool, r.Priority, r.Rank)
			}
			return nil
		}
	})
}

// setPriority asks for a tool's place under the cap.
func (m *model) setPriority(id string) tea.Cmd {
	w := m.wrappers.entry(id)
	if w == nil || !w.ExposeAsTool {
		m.warn("%s is hidden; x makes it a tool first", id)
		return nil
	}
	m.push(&form{
		name: "Priority of " + id,
		fields: []*field{text("priority", "Priority", strconv.Itoa(w.Priority),
			fmt.Sprintf("0 to 1000. Clients show the %d tools of the highest priority.", m.o.MaxTools))},
		save: func(m *model, f *form) tea.Cmd {
			n, err := strconv.Atoi(f.value("priority"))
			if err != nil || n < 0 || n > 1000 {
				f.problems = []string{"the priority must be a whole number from 0 to 1000"}
				return nil
			}
			m.close(f)
			return m.expose(&control.ExposeRequest{ID: id, Priority: &n})
		},
	})
	return nil
}

func (m *model) deleteWrapper(id string) tea.Cmd {
	m.ask(func(m *model) tea.Cmd {
		return m.do("removing "+id, func(ctx context.Context) then {
			_, err := m.o.Backend.Change(ctx, &api.ChangeRequest{Action: "delete", ID: id})
			return func(m *model) tea.Cmd {
				if err != nil {
					m.fail(err)
					return nil
				}
				m.stack = nil
				m.good("removed %s", id)
				return nil
			}
		})
	}, clean("Remove the wrapper "+id+"?"))
	return nil
}
