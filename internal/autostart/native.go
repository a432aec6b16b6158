package autostart

import (
	"github.com/kardianos/service"
)

// A Definition is what a native service is made from.
type Definition struct {
	Name    string // of the unit, without its ending
	Program string
	Text    string // the whole unit, or property list
}

// A Native installs and removes the service where the system has it.
// Install fails if there is one already.
type Native interface {
	Install() error
	Uninstall() error
}

// native is kardianos/service with our texts. Its templates would interpret
// what stands in a path, so the text goes through as one value, which it
// writes as it is.
func native(d Definition) Native {
	s, err := service.New(nil, &service.Config{
		Name: d.Name, Executable: d.Program, WorkingDirectory: d.Text,
		Option: service.KeyValue{
			"UserService":   true,
			"SystemdScript": "{{WorkingDirectory}}",
			"LaunchdConfig": "{{WorkingDirectory}}",
		},
	})
	if err != nil {
		return broken{err}
	}
	return s
}

// platform is the service manager that kardianos/service has found.
func platform() string { return service.Platform() }

type broken struct{ err error }

func (b broken) Install() error   { return b.err }
func (b broken) Uninstall() error { return b.err }
