package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A model is the whole panel. Calls to the daemon run beside it and come back
// as a then, which is applied here: nothing else changes it.
type model struct {
	ctx context.Context
	o   Options

	width, height int
	tabs          []tab
	at            int // the tab shown
	stack         []screen
	said          notice
	away          error // why the daemon does not answer; nil: it does
	calls         int   // that are under way for the person

	wrappers    *wrappersTab
	credentials *credentialsTab
	approvals   *approvalsTab
	audit       *auditTab
}

// A then is what came back from the daemon, to be applied to the model.
type then func(m *model) tea.Cmd

// A screen fills the panel between its heading and its foot.
type screen interface {
	// key takes a key that the panel itself does not use.
	key(m *model, k tea.KeyPressMsg) tea.Cmd
	// lines draws at most height lines, with the place of the cursor, if any.
	lines(m *model, width, height int) ([]string, *tea.Position)
	// keys names the keys, for the foot.
	keys(m *model) string
	// typing says that letters are text now and not keys.
	typing() bool
	// paste takes what was pasted.
	paste(m *model, text string)
}

// A tab is a screen that is always there.
type tab interface {
	screen
	title(m *model) string
	shown(m *model) tea.Cmd // when it comes to the front
}

// A notice is the last thing said to the person.
type notice struct {
	text, hint string
	look       func(string) string
}

func newModel(ctx context.Context, o Options) *model {
	m := &model{ctx: ctx, o: o}
	m.wrappers, m.credentials, m.approvals, m.audit = newWrappersTab(), newCredentialsTab(), newApprovalsTab(), newAuditTab()
	m.tabs = []tab{m.wrappers, m.credentials, m.approvals, m.audit}
	return m
}

// Init starts the calls that wait for news.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.watchWrappers(0), m.watchApprovals(0), m.startAudit(), m.loadPolicies())
}

// Update applies one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case then:
		return m, msg(m)
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.PasteMsg:
		m.front().paste(m, msg.Content)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

func (m *model) front() screen {
	if n := len(m.stack); n > 0 {
		return m.stack[n-1]
	}
	return m.tabs[m.at]
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch name {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	}
	front := m.front()
	if front.typing() {
		return front.key(m, k)
	}
	if name == "?" {
		m.push(newPager("Keys, and the command behind each action", helpLines()))
		return nil
	}
	if len(m.stack) > 0 {
		return front.key(m, k)
	}
	switch name {
	case "q":
		return tea.Quit
	case "tab", "right":
		return m.show((m.at + 1) % len(m.tabs))
	case "shift+tab", "left":
		return m.show((m.at + len(m.tabs) - 1) % len(m.tabs))
	case "1", "2", "3", "4":
		return m.show(int(name[0] - '1'))
	}
	return front.key(m, k)
}

func (m *model) show(i int) tea.Cmd {
	m.at, m.said = i, notice{}
	return m.tabs[i].shown(m)
}

func (m *model) push(s screen) { m.stack = append(m.stack, s) }

// close takes a screen away, and what lies over it.
func (m *model) close(s screen) {
	for i, have := range m.stack {
		if have == s {
			m.stack = m.stack[:i]
			return
		}
	}
}

// open reports whether a screen is still there.
func (m *model) open(s screen) bool {
	for _, have := range m.stack {
		if have == s {
			return true
		}
	}
	return false
}

// do makes a call for the person, who sees that it runs.
func (m *model) do(what string, f func(ctx context.Context) then) tea.Cmd {
	m.calls++
	m.say("%s ...", what)
	said := m.said
	return func() tea.Msg {
		next := f(m.ctx)
		return then(func(m *model) tea.Cmd {
			m.calls--
			if m.said.text == said.text {
				m.said = notice{}
			}
			return next(m)
		})
	}
}

func (m *model) say(format string, args ...any) {
	m.said = notice{text: clean(fmt.Sprintf(format, args...)), look: plain}
}

func (m *model) good(format string, args ...any) {
	m.said = notice{text: clean(fmt.Sprintf(format, args...)), look: green}
}

func (m *model) warn(format string, args ...any) {
	m.said = notice{text: clean(fmt.Sprintf(format, args...)), look: yellow}
}

// fail says why something did not work, and what to do about it. An error of
// several problems gets a screen for them.
func (m *model) fail(err error) {
	f := faultOf(err)
	m.said = notice{text: clean(string(f.Code) + ": " + f.Message), hint: clean(f.Hint), look: red}
	if len(f.Details) > 1 {
		m.push(newPager("What is wrong", problemLines(f)))
	}
}

func faultOf(err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return fault.New("FAILED", "%v", err)
}

func problemLines(f *fault.Error) []string {
	lines := []string{clean(string(f.Code) + ": " + f.Message), ""}
	for _, d := range f.Details {
		text := d.Message
		if d.Field != "" && !strings.HasPrefix(text, d.Field) {
			text = d.Field + ": " + text
		}
		lines = append(lines, clean(text))
		if d.Hint != "" {
			lines = append(lines, "    "+clean(d.Hint))
		}
	}
	if f.Hint != "" {
		lines = append(lines, "", clean(f.Hint))
	}
	return lines
}

// View draws the panel.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen, v.WindowTitle = true, "hbrestd settings"
	if m.width == 0 {
		return v
	}
	if m.width < leastWidth || m.height < leastHeight {
		v.Content = cut(fmt.Sprintf("hbrestd settings needs %dx%d, and this terminal is %dx%d.", leastWidth, leastHeight, m.width, m.height), m.width) +
			"\n" + cut("Make it larger, or press ctrl+c and use the commands: hbrestd --help", m.width)
		return v
	}
	lines := []string{m.heading(), faint(strings.Repeat("─", m.width))}
	if m.away != nil {
		lines = append(lines, reverse(pad(" "+m.banner(), m.width)))
	}
	room := m.height - m.footRoom() - 1
	body, cursor := m.front().lines(m, m.width, room-len(lines))
	if cursor != nil {
		v.Cursor = tea.NewCursor(cursor.X, cursor.Y+len(lines))
		v.Cursor.Blink = false
	}
	lines = append(lines, body...)
	for len(lines) < room {
		lines = append(lines, "")
	}
	lines = append(lines[:room], m.foot()...) // after the body, which knows what can be scrolled
	for i, l := range lines {
		lines[i] = cut(l, m.width)
	}
	v.Content = strings.Join(lines, "\n")
	return v
}

// banner says that the daemon does not answer, and what to do about it.
func (m *model) banner() string {
	f := faultOf(m.away)
	if f.Code == "BRIDGE_UNREACHABLE" {
		return "The daemon does not answer. Start it: hbrestd service start"
	}
	return clean(string(f.Code) + ": " + f.Message)
}

func (m *model) heading() string {
	var b strings.Builder
	if m.width >= 76 {
		b.WriteString(bold("hbrestd settings") + "  ")
	}
	for i, t := range m.tabs {
		name := fmt.Sprintf("%d %s", i+1, t.title(m))
		if i == m.at {
			b.WriteString(reverse("[" + name + "]"))
		} else {
			b.WriteString(" " + name + " ")
		}
	}
	return b.String()
}

// footRoom is how many lines what was last said has.
func (m *model) footRoom() int {
	if m.height >= 20 {
		return 3
	}
	return 2
}

// foot is what was last said with its hint, in lines of a fixed number, and the
// keys.
func (m *model) foot() []string {
	look := m.said.look
	if look == nil {
		look = plain
	}
	room := m.footRoom()
	var said []string
	for _, l := range wrap([]string{m.said.text}, m.width) {
		said = append(said, look(l))
	}
	if m.said.hint != "" {
		said = append(said, wrap([]string{m.said.hint}, m.width)...)
	}
	if len(said) > room {
		said = append(said[:room-1], cut(said[room-1]+" …", m.width-1))
	}
	for len(said) < room {
		said = append(said, "")
	}
	return append(said, faint(m.front().keys(m)))
}
