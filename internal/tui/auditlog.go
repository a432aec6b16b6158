package tui

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// auditTab is the live end of the audit trail, newest last.
type auditTab struct {
	rows   []api.AuditRow
	read   bool
	list   list
	filter filter
	page   int
}

func newAuditTab() *auditTab {
	return &auditTab{list: list{header: []string{"TIME", "KIND", "WRAPPER", "METHOD", "HOST", "STATUS", "MS", "RESULT"}, tail: true}}
}

func (t *auditTab) title(*model) string { return "Audit" }

func (t *auditTab) shown(*model) tea.Cmd { return nil }

func (t *auditTab) set(m *model, rows []api.AuditRow) {
	t.rows, t.read = rows, true
	t.refresh(m)
}

// add takes new rows. What a change touches is read again.
func (t *auditTab) add(m *model, rows []api.AuditRow) tea.Cmd {
	if len(rows) == 0 {
		return nil
	}
	changed := false
	for _, r := range rows {
		changed = changed || r.Kind == "change"
		t.put(r)
	}
	t.rows = t.rows[max(0, len(t.rows)-auditRows):]
	t.refresh(m)
	if !changed {
		return nil
	}
	return tea.Batch(m.loadPolicies(), m.credentials.load(m))
}

// put adds a row, in the place of the intent that it is the result of.
func (t *auditTab) put(r api.AuditRow) {
	for i := len(t.rows) - 1; i >= 0 && r.Call != ""; i-- {
		if t.rows[i].Call == r.Call && t.rows[i].Outcome == "unknown" && t.rows[i].Kind == r.Kind {
			t.rows[i] = r
			return
		}
	}
	t.rows = append(t.rows, r)
}

func (t *auditTab) refresh(m *model) {
	var rows []row
	for _, r := range t.rows {
		status := ""
		if r.Status != 0 {
			status = strconv.Itoa(r.Status)
		}
		ms := ""
		if r.Kind != "change" {
			ms = strconv.FormatInt(r.DurationMs, 10)
		}
		cells := []string{m.local(r.Time, "15:04:05"), clean(r.Kind), clean(r.Wrapper), clean(r.Method), clean(r.Host), status, ms, clean(auditResult(r))}
		if t.filter.keeps(cells...) {
			rows = append(rows, row{id: strconv.FormatUint(r.Seq, 10), cells: cells, look: auditLook(r)})
		}
	}
	t.list.set(rows)
}

func auditLook(r api.AuditRow) func(string) string {
	switch {
	case r.Outcome != "", r.Status >= 500:
		return red
	case r.Error != "" && r.Status == 0:
		return red
	case r.Status >= 400, r.Error != "":
		return yellow
	case r.Status >= 200 && r.Status < 300:
		return green
	}
	return nil
}

func auditResult(r api.AuditRow) string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
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
	return strings.Join(parts, " ")
}

func (t *auditTab) typing() bool { return t.filter.on }

func (t *auditTab) paste(m *model, s string) {
	if t.filter.on {
		t.filter.in.add(s)
		t.refresh(m)
	}
}

func (t *auditTab) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if t.filter.key(k) {
		t.refresh(m)
		return nil
	}
	if t.list.key(k, t.page) {
		return nil
	}
	switch k.String() {
	case "enter":
		for _, r := range t.rows {
			if strconv.FormatUint(r.Seq, 10) == t.list.id() {
				m.push(newPager(fmt.Sprintf("Row %d of the audit trail", r.Seq), auditLines(r)))
				return nil
			}
		}
	case "v":
		return m.verifyAudit()
	}
	return nil
}

func auditLines(r api.AuditRow) []string {
	rows := [][2]string{
		{"time", r.Time},
		{"kind", r.Kind},
		{"wrapper", r.Wrapper},
		{"method", r.Method},
		{"host", r.Host},
		{"call", r.Call},
		{"result", auditResult(r)},
	}
	if r.Status != 0 {
		rows = append(rows, [2]string{"status", strconv.Itoa(r.Status)})
	}
	if r.Kind != "change" {
		rows = append(rows, [2]string{"bytes", strconv.FormatInt(r.Bytes, 10)}, [2]string{"took", strconv.FormatInt(r.DurationMs, 10) + " ms"})
	}
	var kept [][2]string
	for _, f := range rows {
		if f[1] != "" {
			kept = append(kept, [2]string{f[0], clean(f[1])})
		}
	}
	return append(facts(kept), "", "A row holds no header, body, path, argument or credential.")
}

func (m *model) verifyAudit() tea.Cmd {
	return m.do("reading the whole trail", func(ctx context.Context) then {
		r, err := m.o.Backend.AuditVerify(ctx, &control.AuditVerifyRequest{})
		return func(m *model) tea.Cmd {
			switch {
			case err != nil:
				m.fail(err)
			case !r.OK:
				m.said = notice{text: clean("the audit trail does NOT verify: " + r.Problem), hint: "See docs/troubleshooting.md, and `hbrestd audit verify`.", look: red}
			case r.Rows == 0:
				m.say("the audit trail is empty")
			default:
				m.good("the audit trail verifies: %d rows from %d on, head %s", r.Rows, r.First, r.Head)
			}
			return nil
		}
	})
}

func (t *auditTab) lines(_ *model, width, height int) ([]string, *tea.Position) {
	var out []string
	line, cursor, on := t.filter.line(width)
	if on {
		out = append(out, line)
	}
	switch {
	case !t.read:
		return append(out, "", "  Asking the daemon ..."), cursor
	case len(t.rows) == 0:
		return append(out, "", "  The audit trail is empty. New rows appear here by themselves."), cursor
	case len(t.list.rows) == 0:
		return append(out, "", "  No row has all these words."), cursor
	}
	t.page = height - len(out) - 2
	out = append(out, t.list.lines(width, height-len(out)-1)...)
	for len(out) < height-1 {
		out = append(out, "")
	}
	live := "live"
	if t.list.at < len(t.list.rows)-1 {
		live = "end goes live again"
	}
	cells := t.list.rows[t.list.at].cells
	about := []string{fmt.Sprintf("%d of %d", t.list.at+1, len(t.list.rows)), live}
	for _, c := range []string{cells[2], cells[4], cmp.Or(cells[7], "no error")} { // what the columns cut away
		if c != "" {
			about = append(about, c)
		}
	}
	return append(out, faint(cut(strings.Join(about, " · "), width))), cursor
}

func (t *auditTab) keys(*model) string {
	if t.filter.on {
		return "type words to keep  enter done  esc all"
	}
	return "enter whole row  / filter  end live  v verify  tab next tab  ? help  q quit"
}
