package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// mostFindings is how many wrappers are named one by one.
const mostFindings = 10

// daemonChecks: does it run, with these settings and of this version, and who
// has its port if it does not?
func (o *checkup) daemonChecks(ctx context.Context) []finding {
	st := o.status
	if st == nil {
		return o.whyDown(ctx)
	}
	out := []finding{fine("daemon", "running since %s, pid %d, at http://%s", st.StartedAt, st.PID, st.Address)}
	if st.Version != o.app.version.Version {
		out = append(out, finding{
			Check: "version", State: findFail, Detail: fmt.Sprintf("the running daemon is version %s, and this hbrestd is %s", st.Version, o.app.version.Version),
			Fix: "Start the daemon again, so that it is this version:", Run: o.restartCommands(),
		})
	}
	for _, note := range st.Notes {
		out = append(out, finding{Check: "daemon", State: findWarn, Detail: note})
	}
	return out
}

func (o *checkup) whyDown(ctx context.Context) []finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if o.offline.Store.InUse && (fault.Is(o.unreached, "BRIDGE_TIMEOUT") || fault.Is(o.unreached, "CALL_DEADLINE")) {
		return []finding{o.hangs(ctx)}
	}
	if o.unreached != nil && !fault.Is(o.unreached, "BRIDGE_UNREACHABLE") {
		return []finding{wrong("daemon", o.unreached)} // such as a folder that others can enter
	}
	// It may run, and have its socket where this shell does not look.
	if st, _ := (&statusOptions{app: o.app}).overBridge(ctx); st != nil {
		f := finding{
			Check: "daemon", State: findFail, Detail: fmt.Sprintf("it runs (pid %d, home %s), but not with the settings of this shell: nothing answers on %s", st.PID, st.Home, o.d.ControlSocket),
			Fix: "Give this shell what the daemon has:",
		}
		if f.Run = []string{"export HB_WRAP_HOME=" + o.quote(st.Home)}; st.Home == o.d.Home {
			f.Run = []string{fmt.Sprintf("export XDG_RUNTIME_DIR=/run/user/%d", os.Getuid())}
		}
		return []finding{f}
	}
	var out []finding
	if o.offline.Store.InUse {
		out = append(out, finding{
			Check: "daemon", State: findFail, Detail: fmt.Sprintf("another program has %s open, but answers neither at %s nor on its port: an hbrestd that hangs, or has another XDG_RUNTIME_DIR", o.d.StorePath, o.d.ControlSocket),
			Fix: "Find it and end it:", Run: []string{"pgrep -fl 'hbrestd.* run'"},
		})
	}
	if at, err := netip.ParseAddrPort(o.d.Addr); err == nil && at.Port() != 0 {
		if owner, taken := o.app.portOwner(ctx, o.d.Addr); taken {
			f := finding{Check: "port", State: findFail, Detail: fmt.Sprintf("%s, where the daemon would listen, is in use by %s", o.d.Addr, owner)}
			f.Fix = "Stop that program, or give this hbrestd another port (docs/services.md, Another port)."
			if owner.Hbrestd {
				f.Detail += ", which has another home"
				f.Fix = "One hbrestd is enough: stop that one, or set HB_WRAP_HOME to its home here."
			}
			if owner.PID != 0 {
				f.Run = []string{endCommand(o.app.goos, owner.PID)}
			} else {
				f.Run = []string{whoHas(o.app.goos, at.Port())}
			}
			out = append(out, f)
		}
	}
	f := finding{Check: "daemon", State: findFail, Detail: "it does not run", Run: []string{o.startCommand()}}
	if f.Run[0] == "hbrestd run" {
		f.Fix = "Start it in a terminal of its own, or put this where your session starts programs:"
	}
	return append(out, f)
}

// hangs is for a daemon that has its files and its socket, and does not answer.
func (o *checkup) hangs(ctx context.Context) finding {
	f := finding{
		Check: "daemon", State: findFail, Detail: fmt.Sprintf("it runs, but has not answered on %s within %s", o.d.ControlSocket, checkTimeout),
		Fix: "Run it again in a moment, as it may be busy. If it stays so, end it and start it again:",
	}
	owner, _ := o.app.portOwner(ctx, o.d.Addr)
	switch {
	case o.service != nil && o.service.Running():
		f.Run = []string{"hbrestd service restart"}
	case owner.PID != 0 && o.app.goos == "windows":
		f.Run = []string{endCommand(o.app.goos, owner.PID), o.startCommand()}
	case owner.PID != 0:
		f.Run = []string{fmt.Sprintf("kill -9 %d", owner.PID), o.startCommand()}
	default:
		f.Run = []string{"pgrep -fl 'hbrestd.* run'"}
	}
	return f
}

// askManager asks the service manager for the service.
func (o *checkup) askManager(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	s, err := (&serviceOptions{app: o.app}).service(o.d)
	if err == nil {
		o.service, err = s.State(ctx)
	}
	if err != nil {
		o.service, o.noSvc = nil, err
		return
	}
	if o.service.State == "unknown" { // the task scheduler does not say
		o.service.State = "stopped"
		if o.status != nil {
			o.service.State, o.service.PID = "running", o.status.PID
		}
	}
}

func (o *checkup) serviceChecks(context.Context) []finding {
	if o.noSvc != nil {
		f := wrong("service", o.noSvc)
		f.State, f.Run = findSkip, nil
		return []finding{f}
	}
	st := o.service
	other := o.status != nil && (st.PID == 0 || st.PID != o.status.PID) // the daemon that answers is not the service's
	f := finding{Check: "service", State: findFail}
	switch {
	case st.State == "masked":
		f.Detail = "the unit is masked: somebody has forbidden its start"
		f.Run = []string{"systemctl --user unmask hbrestd.service", "hbrestd service install --now"}
		if o.status != nil {
			f.State, f.Run = findWarn, f.Run[:1]
		}
	case !st.Installed:
		f.State, f.Detail, f.Run = findWarn, "not installed: the daemon is not started at login", []string{"hbrestd service install --now"}
		if other {
			f.Run = []string{"hbrestd service install"}
		}
	case st.Running() && other:
		f.Detail = fmt.Sprintf("the daemon that answers (pid %d) is not the service's (pid %d): there are two", o.status.PID, st.PID)
		f.Fix = "End the one that was started by hand, and bring the service to this home:"
		f.Run = []string{endCommand(o.app.goos, o.status.PID), "hbrestd service install --now"}
	case st.State == "failed" || st.State == "restarting":
		f.Detail = st.State
		if st.State == "restarting" {
			f.Detail = "it is started again and again"
		}
		if st.LastExit != nil {
			f.Detail += ": " + st.LastExit.String()
		}
		if st.Says != "" {
			f.Detail += "; it said: " + st.Says
		}
		if f.Run = []string{"hbrestd service start"}; other {
			f.Fix = fmt.Sprintf("An hbrestd that was started by hand (pid %d) has its place. End that one, and start the service:", o.status.PID)
			f.Run = []string{endCommand(o.app.goos, o.status.PID), "hbrestd service start"}
		}
	case !st.Enabled:
		f.State, f.Detail, f.Run = findWarn, st.State+", and not started at login", []string{"hbrestd service install"}
	case st.Stale:
		f.State, f.Detail, f.Run = findWarn, "the unit's file has changed since it was read", []string{"hbrestd service install"}
	case st.Running():
		return []finding{fine("service", "running, and started at login (%s)", st.Manager)}
	case other:
		f.State, f.Detail = findWarn, fmt.Sprintf("it is installed and %s; the daemon that answers (pid %d) was started by hand", st.State, o.status.PID)
		f.Run = []string{endCommand(o.app.goos, o.status.PID), "hbrestd service start"}
	default:
		f.State, f.Detail = findWarn, "it is installed and "+st.State
	}
	return []finding{f}
}

// tokenChecks look at the token as an hb-rest would that is started from here.
func (o *checkup) tokenChecks(ctx context.Context) []finding {
	const check = "token"
	read := ""
	for _, p := range o.shim.TokenCandidates {
		if _, err := os.Lstat(p); err == nil {
			read = p
			break
		}
	}
	written := o.d.TokenPath
	if o.status != nil {
		written = o.status.TokenFile
	}
	stale := finding{Check: check, State: findFail, Detail: fmt.Sprintf("hb-rest would read %s, and the daemon's token is in %s", read, written)}
	switch {
	case o.shim.TokenFile != "" && o.shim.TokenFile != written:
		stale.Detail = fmt.Sprintf("HB_WRAP_TOKEN_FILE is %s, and the daemon's token is in %s", o.shim.TokenFile, written)
		stale.Fix = "Take the variable away, also where your shell or your client sets it:"
		stale.Run = []string{o.unset("HB_WRAP_TOKEN_FILE")}
		return []finding{stale}
	case o.status == nil:
		return []finding{skipped(check, "it is renewed when the daemon starts")}
	case read != "" && read != written:
		stale.Fix, stale.Run = "Give this shell the home that the daemon has:", []string{"export HB_WRAP_HOME=" + o.quote(o.status.Home)}
		return []finding{stale}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	_, err := client.New(client.Options{
		URL: &url.URL{Scheme: "http", Host: o.status.Address}, TokenFiles: o.shim.TokenCandidates, Version: o.app.version.Version,
		Timeout: checkTimeout, Started: time.Unix(0, 0),
	}).Status(ctx)
	switch {
	case err == nil:
		return []finding{fine(check, "the bridge takes the one in %s", written)}
	case fault.Is(err, "TOKEN_FILE_MISSING"):
		f := wrong(check, err)
		if len(f.Run) == 0 || !strings.HasPrefix(f.Run[0], "chmod ") {
			f.Fix, f.Run = "The daemon writes it when it starts:", o.restartCommands()
		}
		return []finding{f}
	case fault.Is(err, "UNAUTHORIZED"), fault.Is(err, "BRIDGE_BAD_ANSWER"):
		return []finding{{
			Check: check, State: findFail, Detail: fmt.Sprintf("the token in %s is not the one that the daemon has", written),
			Fix: "Something has changed that file. The daemon writes it when it starts:", Run: o.restartCommands(),
		}}
	}
	return []finding{wrong(check, err)}
}

// storeChecks look at the saved wrappers: over the daemon, or in its file.
func (o *checkup) storeChecks(ctx context.Context) []finding {
	const check = "wrappers"
	if o.status == nil {
		return o.storeOffline()
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	m, err := o.backend.Manifest(ctx, 0)
	if err != nil {
		return []finding{wrong(check, err)}
	}
	var out []finding
	damaged, quarantined := 0, 0
	for _, e := range m.Wrappers {
		switch {
		case e.Damaged != "":
			if damaged++; damaged <= mostFindings {
				out = append(out, finding{
					Check: check, State: findFail, Detail: fmt.Sprintf("%s cannot be used: %s", e.ID, e.Damaged),
					Fix: "Save it again with `hbrestd wrapper apply FILE`, if you have it in a file; or remove it:", Run: []string{"hbrestd wrapper rm --yes " + shellLine([]string{e.ID})},
				})
			}
		case e.Quarantined != "":
			if quarantined++; quarantined <= mostFindings {
				out = append(out, finding{
					Check: check, State: findWarn, Detail: fmt.Sprintf("%s is not shown as a tool: %s", e.ID, e.Quarantined),
					Fix: "Change its inputSchema and save it again, or do without the tool:", Run: []string{"hbrestd wrapper hide " + shellLine([]string{e.ID})},
				})
			}
		}
	}
	if more := max(damaged-mostFindings, 0) + max(quarantined-mostFindings, 0); more > 0 {
		out = append(out, finding{Check: check, State: findWarn, Detail: fmt.Sprintf("%d more; `hbrestd wrapper list` shows all", more)})
	}
	if len(out) == 0 {
		return []finding{fine(check, "%s, all of use", counted(len(m.Wrappers), "is saved", "are saved"))}
	}
	return out
}

func (o *checkup) storeOffline() []finding {
	const check = "wrappers"
	l, err := o.offline.Store, o.offline.StoreErr
	switch {
	case errors.Is(err, fs.ErrPermission): // the file, or its folder, is a finding already
		return []finding{skipped(check, "%s cannot be read", o.d.StorePath)}
	case err != nil:
		return []finding{wrong(check, err)}
	case !l.Exists:
		return []finding{skipped(check, "there is no %s yet", o.d.StorePath)}
	case l.InUse:
		return []finding{skipped(check, "%s is open elsewhere", o.d.StorePath)}
	case len(l.Faults) > 0:
		return []finding{{
			Check: check, State: findFail, Detail: fmt.Sprintf("%s is damaged: %s", o.d.StorePath, l.Faults[0]),
			Fix: "The daemon keeps it beside and makes a new one of what can be read, when it starts:", Run: []string{o.startCommand()},
		}}
	case len(l.Lost) > 0:
		return []finding{{
			Check: check, State: findFail, Detail: fmt.Sprintf("%s cannot be read: %s", counted(len(l.Lost), "wrapper", "wrappers"), strings.Join(l.Lost[:min(len(l.Lost), mostFindings)], ", ")),
			Fix: "Start the daemon; then save them again, or remove them:", Run: []string{o.startCommand(), "hbrestd wrapper rm --yes " + shellLine(l.Lost)},
		}}
	}
	return []finding{fine(check, "%s in %s, which is sound", counted(l.Wrappers, "wrapper", "wrappers"), o.d.StorePath)}
}

// keyringChecks ask the keyring: the daemon does where one runs, because it may
// have another session than this shell.
func (o *checkup) keyringChecks(ctx context.Context) []finding {
	const check = "keyring"
	ctx, cancel := context.WithTimeout(ctx, keyringTimeout)
	defer cancel()
	var k daemon.KeyringLook
	var bad []finding
	saved := o.offline.Store.Sealed
	if o.status == nil {
		k = daemon.LookKeyring(ctx, o.d, saved)
	} else {
		st, err := o.app.connect(o.d.ControlSocket, control.ClientOptions{Version: o.app.version.Version, Timeout: keyringTimeout}).SecretState(ctx)
		if err != nil {
			return []finding{wrong(check, err)}
		}
		k, saved = daemon.KeyringLook{Status: st.State, Reason: st.Reason, Fix: st.Fix}, len(st.Secrets)
		for _, s := range st.Secrets {
			if s.Problem != "" {
				bad = append(bad, finding{
					Check: check, State: findFail, Detail: fmt.Sprintf("the credential %s cannot be used: %s", s.Name, s.Problem),
					Fix: "Remove it and enter its value again:", Run: []string{"hbrestd secret rm --yes " + shellLine([]string{s.Name}), "hbrestd secret set " + shellLine([]string{s.Name}) + " --host HOST"},
				})
			}
		}
	}
	f := finding{Check: check, State: findFail, Detail: k.Reason, Fix: k.Fix}
	switch {
	case k.Status == "ready" && len(bad) > 0:
		return bad
	case k.Status == "ready":
		return []finding{fine(check, "it works; %s", counted(saved, "credential is saved", "credentials are saved"))}
	case k.Status == "off", strings.Contains(k.Reason, "switched off by the setting keyring"):
		return []finding{skipped(check, "credentials are switched off by the setting keyring")}
	case k.Status == "not asked":
		return []finding{skipped(check, "%s", k.Reason)}
	case saved == 0:
		f.State = findWarn
		f.Detail += "; no credential is saved, so nothing needs it yet"
	default:
		f.Detail += fmt.Sprintf("; %s cannot be used", counted(saved, "credential", "credentials"))
	}
	return []finding{f}
}

// policyChecks name what opens more than the defaults do.
func (o *checkup) policyChecks(ctx context.Context) []finding {
	const check = "policy"
	private, plain := o.d.AllowPrivate, o.d.AllowHTTP
	origin := map[string]string{}
	if o.status != nil {
		private, plain = o.status.AllowPrivate, o.status.AllowHTTP
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		if l, err := o.backend.Settings(ctx); err == nil {
			for _, s := range l.Settings {
				origin[s.Name] = s.Origin
			}
		}
	}
	warn := func(setting, variable, what string) finding {
		f := finding{Check: check, State: findWarn, Detail: what}
		if origin[setting] == "stored" {
			f.Run = []string{"hbrestd config unset " + setting}
		} else {
			f.Fix = "If that is not meant: take " + variable + " out of the environment in which the daemon is started, and start it again."
		}
		return f
	}
	switch {
	case private:
		return []finding{warn("allow-private", "HB_WRAP_ALLOW_PRIVATE", "private destinations and plain http are allowed to every wrapper")}
	case plain:
		return []finding{warn("allow-http", "HB_WRAP_ALLOW_HTTP", "plain http is allowed to every wrapper: who is on the way can read and change it")}
	}
	return []finding{fine(check, "only public hosts, and only https")}
}
