package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func (a *app) allowCommand() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "allow",
		Short: "Choose private hosts that wrappers may call",
		Long: `Wrappers reach public hosts over https alone. A rule lets one name be reached
although it is private (on this machine, or in a private network) and, with
--http, over plain http. Metadata addresses of clouds stay closed. Rules hold
at once and are kept.`,
		Example: "  hbrestd allow add nas.home.arpa:8443\n  hbrestd allow list",
	}, a.allowAddCommand(), a.allowListCommand(), a.allowRmCommand())
}

type allowOptions struct {
	app  *app
	host string // HOST[:PORT]
	http bool
	json bool
}

func (a *app) allowAddCommand() *cobra.Command {
	o := &allowOptions{app: a}
	cmd := &cobra.Command{
		Use:     "add HOST[:PORT]",
		Short:   "Allow a private host",
		Example: "  hbrestd allow add nas.home.arpa:8443\n  hbrestd allow add localhost:8080 --http\n  hbrestd allow add [fd00::5]:443",
		Args:    takes(1, 1, "a host"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.host = args[0]
			return o.add(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&o.http, "http", false, "allow plain http to it too")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *allowOptions) add(ctx context.Context) error {
	rule, err := parseRule(o.host)
	if err != nil {
		return err
	}
	rule.HTTP = o.http
	return o.change(ctx, control.Backend.Allow, rule, "allowed "+hostPort(*rule)+ifHTTP(rule.HTTP))
}

func (a *app) allowRmCommand() *cobra.Command {
	o := &allowOptions{app: a}
	cmd := &cobra.Command{
		Use:     "rm HOST[:PORT]",
		Short:   "Take a rule back",
		Example: "  hbrestd allow rm nas.home.arpa:8443",
		Args:    takes(1, 1, "a host"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.host = args[0]
			return o.rm(cmd.Context())
		},
		ValidArgsFunction: a.completeRules(),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *allowOptions) rm(ctx context.Context) error {
	rule, err := parseRule(o.host)
	if err != nil {
		return err
	}
	return o.change(ctx, control.Backend.Disallow, rule, "no longer allowed: "+hostPort(*rule))
}

func (o *allowOptions) change(ctx context.Context, do func(control.Backend, context.Context, *control.AllowRule) (*control.AllowList, error), rule *control.AllowRule, done string) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	l, err := do(d, ctx, rule)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(l)
	}
	return o.app.print(clean(done) + "\n")
}

func (a *app) allowListCommand() *cobra.Command {
	o := &allowOptions{app: a}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the private hosts that are allowed",
		Example: "  hbrestd allow list\n  hbrestd allow list --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *allowOptions) list(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	l, err := d.Allowed(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(l)
	}
	if len(l.Rules) == 0 {
		o.app.say("no private host is allowed")
		return nil
	}
	t := table{header: []string{"HOST", "PORT", "PLAIN HTTP"}}
	for _, r := range l.Rules {
		port := r.Port
		if port == "" {
			port = "any"
		}
		t.add(r.Host, port, onOff(r.HTTP))
	}
	return o.app.printTable(t)
}

func ifHTTP(yes bool) string {
	if yes {
		return ", over plain http too"
	}
	return ""
}

// hostPort is how a person writes the place of a rule.
func hostPort(r control.AllowRule) string {
	host := r.Host
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	if r.Port == "" {
		return host
	}
	return host + ":" + r.Port
}

// parseRule splits HOST[:PORT]. Whether the host is a good one is the daemon's
// to say; it makes it canonical.
func parseRule(s string) (*control.AllowRule, error) {
	if i := strings.Index(s, "://"); i >= 0 || strings.ContainsAny(s, "/?#@ ") {
		return nil, usage("%q is not HOST[:PORT]: give the name alone, without scheme and path", s)
	}
	host, port := s, ""
	switch end := strings.LastIndexByte(s, ']'); {
	case strings.HasPrefix(s, "["):
		if end < 0 || len(s) > end+1 && s[end+1] != ':' {
			return nil, usage("%q is not HOST[:PORT]: an IPv6 address with a port is [ADDRESS]:PORT", s)
		}
		host = s[1:end]
		if len(s) > end+1 {
			port = s[end+2:]
			if port == "" {
				return nil, usage("the port of %q is missing", s)
			}
		}
	case strings.Count(s, ":") == 1:
		host, port, _ = strings.Cut(s, ":")
		if port == "" {
			return nil, usage("the port of %q is missing", s)
		}
	}
	if host == "" {
		return nil, usage("the host of %q is missing", s)
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, usage("%q is no port: use a number from 1 to 65535", port)
		}
		port = fmt.Sprint(n)
	}
	return &control.AllowRule{Host: host, Port: port}, nil
}
