package cli

import (
	"context"
	"fmt"

	"github.com/hyperbolic-gateway/hb-rest/internal/autostart"
)

func (o *serviceOptions) status(ctx context.Context) error {
	d, s, err := o.open()
	if err != nil {
		return err
	}
	st, err := s.State(ctx)
	if err != nil {
		return err
	}
	if st.State == "unknown" { // the task scheduler does not say
		st.State = "stopped"
		if daemon := o.running(ctx, d); daemon != nil {
			st.State, st.PID, st.Since = "running", daemon.PID, daemon.StartedAt
		}
	}
	if o.json {
		err = o.app.printJSON(st)
	} else {
		err = o.app.print(facts(serviceRows(st)))
	}
	if err == nil && !st.Running() {
		err = coded{exitNotRunning, errSilent}
	}
	return err
}

func serviceRows(st *autostart.State) [][2]string {
	state := st.State
	if st.Since != "" {
		state += " since " + st.Since
	}
	if st.PID != 0 {
		state += fmt.Sprintf(", pid %d", st.PID)
	}
	rows := [][2]string{{"service", state}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, [2]string{name, value})
		}
	}
	add("says", st.Says)
	if st.LastExit != nil {
		add("last exit", st.LastExit.String())
	}
	if st.Restarts > 0 {
		add("restarts", fmt.Sprint(st.Restarts))
	}
	add("manager", st.Manager)
	add("unit", st.Unit)
	for _, f := range st.DropIns {
		add("drop-in", f)
	}
	if st.Installed {
		add("at login", map[bool]string{true: "started", false: "not started; `hbrestd service install` enables it"}[st.Enabled])
	}
	if st.Linger != nil && st.Installed {
		add("linger", map[bool]string{true: "on: it runs without a session", false: "off: it ends with the last session (`loginctl enable-linger`)"}[*st.Linger])
	}
	add("log", st.Log)
	switch {
	case st.State == "masked":
		add("fix", "`systemctl --user unmask hbrestd.service`")
	case st.State == "not installed":
		add("fix", "`hbrestd service install`")
	case st.Stale:
		add("note", "the unit's file has changed since it was read; `hbrestd service install` makes it count")
	}
	return rows
}
