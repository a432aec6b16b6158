package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
)

// clientChecks look at every MCP client that has an entry, and start it.
func (o *checkup) clientChecks(ctx context.Context) []finding {
	d := &doctorOptions{clientOptions: clientOptions{app: o.app, scope: string(clientconfig.User)}}
	env, scope, err := d.env()
	if err != nil {
		return []finding{wrong("clients", err)}
	}
	var without []string
	var with []clientconfig.Client
	for _, c := range clientconfig.Known() {
		if !c.Detected(env, scope) {
			continue
		}
		st, err := c.Inspect(env, scope)
		if err == nil && !st.Present && len(st.Old) == 0 {
			without = append(without, c.Name)
			continue
		}
		with = append(with, c)
	}
	found := make([][]finding, len(with))
	var wg sync.WaitGroup
	for i, c := range with {
		wg.Go(func() { found[i] = o.client(ctx, d, env, scope, c) })
	}
	wg.Wait()
	out := slices.Concat(found...)
	switch {
	case len(with) == 0 && len(without) == 0:
		out = append(out, skipped("clients", "no MCP client was found; `hbrestd client list --all` shows where they are looked for"))
	case len(with) == 0:
		out = append(out, finding{
			Check: "clients", State: findWarn, Detail: "no MCP client has an entry for hb-rest; found: " + strings.Join(without, ", "), Run: []string{"hbrestd client install --all"},
		})
	case len(without) > 0:
		out = append(out, skipped("clients", "without an entry: %s", strings.Join(without, ", ")))
	}
	return out
}

// client is one of them.
func (o *checkup) client(ctx context.Context, d *doctorOptions, env clientconfig.Env, scope clientconfig.Scope, c clientconfig.Client) []finding {
	check := "client " + c.Name
	r := &clientReport{Client: c.Name}
	var out []finding
	st, err := c.Inspect(env, scope)
	flags := ""
	if err == nil && st.Present && !st.Ours {
		flags = " --force" // without it, install leaves what starts another program alone
	}
	if err == nil && st.Present && len(st.Old) > 0 {
		out = append(out, o.mend(c, finding{
			Check: check, State: findWarn, Detail: fmt.Sprintf("the entry of kuang-wrap, the predecessor (%s), is still in %s, so its tools appear too", strings.Join(st.Old, ", "), st.Path),
		}, " --replace-old"))
	}
	if e := d.examine(c, env, scope, r); e != nil {
		p, err := probe(ctx, *e, o.app.clientEnv(*e), clientTimeout)
		diagnose(r, p, err)
	}
	for _, ch := range r.Checks {
		if ch.OK {
			continue
		}
		f := finding{Check: check, State: findFail, Detail: ch.Detail}
		f.Fix, f.Run = commandIn(ch.Fix)
		switch {
		case ch.Name == "file" && r.File != "":
			f.Fix, f.Run = ch.Fix+":", []string{"hbrestd client doctor " + c.Name}
		case ch.Name == "daemon" && o.status == nil:
			f.State, f.Fix, f.Run = findSkip, "", nil
			f.Detail = fmt.Sprintf("it starts and lists %s; the daemon does not run", counted(len(r.Tools), "tool", "tools"))
		case ch.Name == "daemon":
			f.Detail = "its hb-rest does not reach the daemon: " + ch.Detail
			f = o.mend(c, f, flags)
		case ch.Name == "start", ch.Name == "answer", ch.Name == "tools":
			f = o.mend(c, f, flags)
		}
		if c.Editable && strings.HasSuffix(strings.Join(f.Run, ""), " --force") {
			f.Fix = "The entry hb-rest starts a program that is not ours; this replaces it:"
		}
		return append(out, f)
	}
	if r.Version != o.app.version.Version {
		return append(out, o.mend(c, finding{
			Check: check, State: findFail, Detail: fmt.Sprintf("its hb-rest is version %s, and this hbrestd is %s", r.Version, o.app.version.Version),
		}, flags))
	}
	return append(out, fine(check, "it starts %s in %d ms, lists %s and reaches the daemon", clientconfig.Name, r.Milliseconds, counted(len(r.Tools), "tool", "tools")))
}

// mend puts the command that brings a client's entry up to date into a finding.
func (o *checkup) mend(c clientconfig.Client, f finding, flags string) finding {
	if c.Editable {
		f.Fix, f.Run = "", []string{"hbrestd client install " + c.Name + flags}
	} else {
		f.Fix, f.Run = "Put what this prints into the client's file:", []string{"hbrestd client print " + c.Name}
	}
	return f
}
