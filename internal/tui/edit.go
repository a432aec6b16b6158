package tui

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"
)

// maxDocument bounds what is read back from an editor, in bytes.
const maxDocument = maxSample

// edit opens the person's editor on a private file and hands over what it holds
// afterwards. The file is gone when done is called.
func (m *model) edit(name string, data []byte, done func(m *model, data []byte) tea.Cmd) tea.Cmd {
	dir, err := os.MkdirTemp("", "hbrestd-settings-") // of mode 0700
	if err != nil {
		m.fail(err)
		return nil
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		_ = os.RemoveAll(dir)
		m.fail(err)
		return nil
	}
	return m.exec(m.o.Edit(path), func(m *model, err error) tea.Cmd {
		data, readErr := readEdited(path)
		_ = os.RemoveAll(dir)
		if err = errors.Join(err, readErr); err != nil {
			m.fail(err)
			return nil
		}
		return done(m, bytes.TrimSpace(data))
	})
}

func readEdited(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the edited file: %w", err)
	case st.Size() > maxDocument:
		return nil, fmt.Errorf("the edited file has more than %d MiB", maxDocument>>20)
	}
	return os.ReadFile(path)
}
