package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/autostart"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
)

// An installResult is the answer of `service install --json`.
type installResult struct {
	*autostart.Installed
	Daemon *api.Status `json:"daemon,omitempty"` // that runs now
}

func (o *serviceOptions) install(ctx context.Context) error {
	d, s, err := o.open()
	if err != nil {
		return err
	}
	old := o.running(ctx, d)
	r, err := s.Install(ctx, old != nil && old.Version != o.app.version.Version)
	if err != nil {
		return err
	}
	o.app.reached = nil // the daemon of before may have been of another version
	if !o.json {
		if err := o.app.print(installText(r)); err != nil {
			return err
		}
	}
	for _, name := range o.leftOut() {
		o.app.warn("%s is set here, and the service does not get it; `hbrestd config set` stores what shall hold for it", name)
	}
	result := installResult{Installed: r}
	switch {
	case o.now || r.Restarted:
		if result.Daemon, err = o.started(ctx, d, s, starting(r)); err != nil {
			return err
		}
		if !o.json {
			err = o.app.print(facts(statusRows(result.Daemon)))
		}
	case !r.Running && !o.json:
		err = o.app.print("It starts at your next login; `hbrestd service start` starts it now.\n")
	}
	if err != nil {
		return err
	}
	o.lingering(ctx, s)
	if o.json {
		return o.app.printJSON(result)
	}
	return nil
}

// starting is Start, or nothing where Install has started it just now.
func starting(r *autostart.Installed) func(*autostart.Service, context.Context) error {
	if r.Restarted || r.Running {
		return func(*autostart.Service, context.Context) error { return nil }
	}
	return (*autostart.Service).Start
}

func installText(r *autostart.Installed) string {
	var b strings.Builder
	switch {
	case r.Created:
		fmt.Fprintf(&b, "installed: %s\n", clean(r.Unit))
	case r.Packaged:
		fmt.Fprintf(&b, "enabled: %s, which came with the package\n", clean(r.Unit))
	case len(r.Changes) > 0:
		fmt.Fprintf(&b, "brought up to date: %s\n", clean(r.Unit))
	default:
		fmt.Fprintf(&b, "already up to date: %s\n", clean(r.Unit))
	}
	for _, line := range r.Changes {
		fmt.Fprintf(&b, "  %s\n", clean(line))
	}
	if r.Kept != "" {
		fmt.Fprintf(&b, "It had been edited; the edited one is kept as %s. What you still want of it belongs into a drop-in.\n", clean(r.Kept))
	}
	for _, f := range r.DropIns {
		fmt.Fprintf(&b, "left as it is: %s\n", clean(f))
	}
	if r.Restarted {
		b.WriteString("It ran, and was started again.\n")
	}
	return b.String()
}

// leftOut are the variables that would change the daemon if it were started
// from this shell, and that the service does not get.
func (o *serviceOptions) leftOut() []string {
	var names []string
	for _, s := range config.Settings() {
		for _, name := range []string{s.Variable, strings.Replace(s.Variable, "HB_WRAP_", "KUANG_WRAP_", 1)} {
			if v, ok := o.app.env(name); ok && v != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// lingering says that the service ends with the session, where that is likely
// not to be wanted: without a graphical one.
func (o *serviceOptions) lingering(ctx context.Context, s *autostart.Service) {
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY"} {
		if v, ok := o.app.env(name); ok && v != "" {
			return
		}
	}
	if st, err := s.State(ctx); err == nil && st.Linger != nil && !*st.Linger {
		o.app.say("note: the service runs while you are logged in, and ends with your last session. `loginctl enable-linger` lets it run from boot on, without one")
	}
}

// A removeResult is the answer of `service uninstall --json`.
type removeResult struct {
	*autostart.Removed
	Data []string `json:"data"` // folders that stay
}

func (o *serviceOptions) uninstall(ctx context.Context) error {
	d, s, err := o.open()
	if err != nil {
		return err
	}
	r, err := s.Uninstall(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(removeResult{r, []string{d.Home}})
	}
	var b strings.Builder
	switch {
	case !r.Was:
		b.WriteString("It was not installed.\n")
	case r.Packaged:
		fmt.Fprintf(&b, "stopped, and no longer started at login; the package keeps %s\n", clean(r.Unit))
	default:
		fmt.Fprintf(&b, "removed: %s\n", clean(r.Unit))
	}
	for _, f := range r.Left {
		fmt.Fprintf(&b, "left as it is: %s\n", clean(f))
	}
	fmt.Fprintf(&b, "Wrappers, credentials and the audit trail stay in %s\n", clean(d.Home))
	return o.app.print(b.String())
}
