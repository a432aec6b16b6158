package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// settleTime is how long a command waits before it begins. Bubble Tea 2.1.1
// starts its drawing loop again without waiting for the end of the last one,
// whose end then stops the new one's clock: after a command that ends at once
// the screen stays empty.
const settleTime = 50 * time.Millisecond

// exec gives the terminal to a command until it ends.
func (m *model) exec(c Command, done func(m *model, err error) tea.Cmd) tea.Cmd {
	return tea.Exec(&settled{c}, func(err error) tea.Msg {
		return then(func(m *model) tea.Cmd { return done(m, err) })
	})
}

// A settled command begins when the screen has been put away.
type settled struct{ Command }

// Run waits a moment and runs the command.
func (s *settled) Run() error {
	time.Sleep(settleTime)
	return s.Command.Run()
}
