package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
)

// A clientCheck is one line of `client doctor`.
type clientCheck struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// A clientReport is the answer of `client doctor`. The checks end with the
// first that fails, as those after it would say nothing.
type clientReport struct {
	Client       string        `json:"client"`
	OK           bool          `json:"ok"`
	File         string        `json:"file,omitempty"`
	Checks       []clientCheck `json:"checks"`
	Server       string        `json:"server,omitempty"`
	Version      string        `json:"version,omitempty"`
	Protocol     string        `json:"protocol,omitempty"`
	Tools        []string      `json:"tools,omitempty"`
	Milliseconds int64         `json:"milliseconds,omitempty"` // from the start to the list of tools
	Stderr       string        `json:"stderr,omitempty"`       // the end of it
}

func (r *clientReport) pass(name, format string, args ...any) {
	r.Checks = append(r.Checks, clientCheck{Name: name, OK: true, Detail: fmt.Sprintf(format, args...)})
}

func (r *clientReport) fail(name, detail, fix string) {
	r.Checks = append(r.Checks, clientCheck{Name: name, Detail: detail, Fix: fix})
}

type doctorOptions struct {
	clientOptions
	force bool
}

func (a *app) clientDoctorCommand() *cobra.Command {
	o := &doctorOptions{clientOptions: clientOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "doctor NAME",
		Short: "Start what a client's file says, as the client would, and list its tools",
		Long: `Reads the entry from the client's file, starts its command with the variables of
the entry and otherwise only HOME and PATH, as clients do, asks for its tools and
calls wrap_list. Each line is ok or FAIL; the exit code is 1 if one fails, and
what to do about it is on stderr.

A file in a project's folder may come from somebody else: what it names is
started only if it is this hb-rest, or with --force.`,
		Example: "  hbrestd client doctor claude-desktop\n  hbrestd client doctor codex --json",
		Args:    takes(1, 1, "the name of a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.doctor(cmd.Context(), args[0])
		},
		ValidArgsFunction: completeClients(1, false),
	}
	o.addScope(cmd)
	cmd.Flags().BoolVar(&o.force, "force", false, "start the program whatever it is")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *doctorOptions) doctor(ctx context.Context, name string) error {
	env, scope, err := o.env()
	if err != nil {
		return err
	}
	c, err := findClient(name)
	if err != nil {
		return err
	}
	r := &clientReport{Client: c.Name, Checks: []clientCheck{}}
	if e := o.examine(c, env, scope, r); e != nil {
		p, err := probe(ctx, *e, o.app.clientEnv(*e), probeTimeout)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		diagnose(r, p, err)
	}
	r.OK = !slices.ContainsFunc(r.Checks, func(c clientCheck) bool { return !c.OK })
	if err := o.printReport(r); err != nil {
		return err
	}
	if !r.OK {
		return errSilent
	}
	return nil
}

// examine checks what can be without starting anything. It returns the entry to
// start, or nil if a check failed.
func (o *doctorOptions) examine(c clientconfig.Client, env clientconfig.Env, scope clientconfig.Scope, r *clientReport) *clientconfig.Entry {
	put := "Run: hbrestd client install " + c.Name
	if !c.Editable {
		put = "Run: hbrestd client print " + c.Name + ", and put that into the file"
	}
	if scope == clientconfig.Project {
		put += " --scope project"
	}
	st, err := c.Inspect(env, scope)
	r.File = st.Path
	switch {
	case err != nil:
		r.fail("file", messageOf(err), "Mend the file; nothing of ours writes into it before")
		return nil
	case !st.Exists:
		r.fail("file", st.Path+" is not there", put)
		return nil
	}
	r.pass("file", "%s", st.Path)
	switch {
	case !st.Present && len(st.Old) > 0:
		r.fail("entry", fmt.Sprintf("only the entry of kuang-wrap, the predecessor, is there (%s)", strings.Join(st.Old, ", ")), put+" --replace-old")
		return nil
	case !st.Present:
		r.fail("entry", "there is no entry "+clientconfig.Name, put)
		return nil
	case st.Entry == nil:
		r.fail("entry", "the entry "+clientconfig.Name+" starts no program", put+" --force")
		return nil
	case st.Off:
		r.fail("entry", "the entry is switched off", "Switch it on in "+c.Title)
		return nil
	}
	e := *st.Entry
	r.pass("entry", "%s", shellLine(append([]string{e.Command}, e.Args...)))
	detail, fix := o.startable(c, scope, e, put)
	if detail != "" {
		r.fail("command", detail, fix)
		return nil
	}
	r.pass("command", "it can be started")
	return &e
}

// startable says why the entry's program cannot, or should not, be started.
func (o *doctorOptions) startable(c clientconfig.Client, scope clientconfig.Scope, e clientconfig.Entry, put string) (detail, fix string) {
	if strings.Contains(e.Command, "${") {
		return "the command holds a variable that only " + c.Title + " can fill in", put
	}
	if !filepath.IsAbs(e.Command) {
		return e.Command + " is not an absolute path; a program with a window seldom has the PATH of your shell", put
	}
	if err := executable(e.Command); err != nil {
		return err.Error(), put
	}
	if scope == clientconfig.Project && !o.force {
		if mine, err := o.shim(); err != nil || !sameFile(mine, e.Command) {
			return "the file of this project names another program than this hb-rest", "Look at it first; --force starts it"
		}
	}
	return "", ""
}

// clientEnv is what a client starts a server with: the entry's variables, and
// of its own only those that a server cannot do without.
func (a *app) clientEnv(e clientconfig.Entry) []string {
	passed := []string{"HOME", "PATH"}
	if a.goos == "windows" {
		passed = append(passed, "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
	}
	var env []string
	for _, name := range passed {
		if v, ok := a.env(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		env = append(env, name+"="+e.Env[name])
	}
	return env
}

// diagnose turns a probe into lines.
func diagnose(r *clientReport, p probed, err error) {
	r.Server, r.Version, r.Protocol, r.Tools, r.Milliseconds = p.name, p.version, p.protocol, p.tools, p.took.Milliseconds()
	var failed *probeError
	switch {
	case errors.As(err, &failed) && failed.step == "start":
		r.Stderr = p.stderr
		r.fail("start", failed.text, "Start it by hand to see more; `hb-rest --help` names its settings")
		return
	case err != nil:
		r.Stderr = p.stderr
		r.fail("answer", err.Error(), "Is it hb-rest? hbrestd client install, with --command PATH, names another program")
		return
	}
	r.pass("answer", "%s %s, protocol %s, %d ms to the list of tools", p.name, p.version, p.protocol, r.Milliseconds)
	var missing []string
	for _, t := range metaTools {
		if !slices.Contains(p.tools, t) {
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		r.fail("tools", fmt.Sprintf("%d tools, without %s", len(p.tools), strings.Join(missing, ", ")), "Install hb-rest and hbrestd of the same version")
		return
	}
	r.pass("tools", "%d", len(p.tools))
	if p.daemon != "" {
		r.Stderr = p.stderr
		r.fail("daemon", p.daemon, "`hbrestd status` says whether the daemon runs; `hbrestd run` starts it")
		return
	}
	r.pass("daemon", "hb-rest reaches it")
}

func (o *doctorOptions) printReport(r *clientReport) error {
	if o.json {
		return o.app.printJSON(r)
	}
	t := table{header: []string{"", "CHECK", "DETAIL"}}
	for _, c := range r.Checks {
		t.add(map[bool]string{true: "ok", false: "FAIL"}[c.OK], c.Name, c.Detail)
	}
	text := separated(t.rows)
	if o.app.width() != 0 {
		text = aligned(t, 1<<20, false) // a path that is cut is none
	}
	if err := o.app.print(text); err != nil {
		return err
	}
	for _, line := range lastLines(r.Stderr, 10) {
		o.app.say("it printed: %s", line)
	}
	for _, c := range r.Checks {
		if !c.OK {
			o.app.say("%s: %s", c.Name, c.Fix)
		}
	}
	return nil
}

// lastLines are the last lines of a text, at most n.
func lastLines(s string, n int) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(s, "\n")
	return lines[max(len(lines)-n, 0):]
}
