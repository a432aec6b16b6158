package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func (a *app) secretSetCommand() *cobra.Command {
	o := &secretOptions{app: a}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Store a credential, or change one",
		Long: `Stores a credential and asks for its value: in a window of pinentry when there
is one and a display or GPG_TTY, else on the terminal, without showing what is
typed. The value is never an argument or a variable.

Without --basic and --oauth2 the value is sent in headers as it is; without
--header in "Authorization: Bearer VALUE". --header NAME alone sends nothing
before the value; a PREFIX that is a word gets a space after it. For several
headers several values are asked for. --basic asks for a user name and a
password. --oauth2 asks for a client secret and fetches tokens with it.

Of a credential that exists, what is not given stays: hosts, headers, and the
value when an empty one is entered.

--stdin reads the value from stdin, one line for each, for provisioning. What
writes it there must keep it as safe as hbrestd does.`,
		Example: `  hbrestd secret set orders-key --host api.example.com
  hbrestd secret set shop --host api.example.com --header X-App-Id --header X-App-Key
  hbrestd secret set tickets --host api.example.com --header Authorization:Token
  hbrestd secret set build --host ci.example.com --basic
  hbrestd secret set crm --host api.example.com --oauth2 --token-url https://login.example.com/token \
    --client-id 7f3a --scope orders.read --auth-style basic
  hbrestd secret set orders-key --stdin --host api.example.com < value`,
		Args: named(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.changed = args[0], cmd.Flags().Changed
			return o.set(cmd.Context())
		},
		ValidArgsFunction: a.completeSecrets(1),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.hosts, "host", nil, "a `HOST` that may be sent it; may be repeated")
	f.StringArrayVar(&o.headers, "header", nil, "the header that carries a value, as `NAME[:PREFIX]`; may be repeated")
	f.BoolVar(&o.basic, "basic", false, "user name and password, as HTTP's Basic scheme sends them")
	f.BoolVar(&o.oauth2, "oauth2", false, "tokens of OAuth2's client-credentials grant")
	f.StringVar(&o.oauth.TokenURL, "token-url", "", "the `URL` that hands out tokens")
	f.StringVar(&o.oauth.ClientID, "client-id", "", "the client's `ID` there")
	f.StringVar(&o.oauth.Scope, "scope", "", "the `SCOPE` to ask for")
	f.StringVar(&o.oauth.Audience, "audience", "", "the `AUDIENCE` to ask for")
	f.StringVar(&o.oauth.AuthStyle, "auth-style", "", "where the client id and secret are sent: `body|basic`")
	oneOf(cmd, "auth-style", "body", "basic")
	addStdin(cmd, &o.stdin)
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask whether the token URL may be on another site than the hosts")
	addJSON(cmd, &o.json)
	return cmd
}

func addStdin(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "stdin", false, "read the value from stdin, one line for each")
}

var oauthFlags = []string{"token-url", "client-id", "scope", "audience", "auth-style"}

func (o *secretOptions) set(ctx context.Context) error {
	if err := o.checkSet(); err != nil {
		return err
	}
	person, err := o.app.person(ctx, o.wish("store"), "change credentials")
	if err != nil {
		return err
	}
	d, st, err := o.state(ctx)
	if err != nil {
		return err
	}
	old := find(st, o.name)
	q, err := o.put(old)
	if err != nil {
		return err
	}
	if err := usable(st); err != nil {
		return err
	}
	places := q.Places(old)
	shown, err := o.check(ctx, d, person, q, places)
	if err != nil {
		return err
	}
	q.Values, err = o.values(ctx, person, shown, places)
	defer wipe(q.Values)
	if err != nil {
		return err
	}
	kept := keptOf(q.Values)
	if kept == len(places) && !o.anyChange() {
		return errDeclined
	}
	r, err := o.save(ctx, d, person, q)
	if err != nil {
		return o.inFlags(err, q, places)
	}
	if kept > 0 {
		o.app.say("kept the saved %s", plainWord(kept, "value", "values"))
	}
	if q.Create {
		o.app.say(`a wrapper uses it with "auth": %q in its request`, o.name)
	}
	return o.done(r, "saved")
}

// check has everything but the values looked at, and the person asked what they
// must be asked, before a value is entered. It returns the credential as it
// would be saved: two names that look alike differ there.
func (o *secretOptions) check(ctx context.Context, d control.Backend, person *asker, q *control.SecretPut, places []control.ValuePlace) (*control.SecretInfo, error) {
	r, err := o.send(ctx, person, q.Confirm, func(confirm []string) (*control.SecretResult, error) {
		q.Confirm = confirm
		return d.CheckSecret(ctx, q)
	}, q)
	if err != nil {
		return nil, o.inFlags(err, q, places)
	}
	if r.Secret == nil {
		return nil, failed(exitFailed, "The commands and the daemon are of different versions: restart the daemon.", "the daemon does not say what it would save")
	}
	return r.Secret, nil
}

// save sends what was checked with its values.
func (o *secretOptions) save(ctx context.Context, d control.Backend, person *asker, q *control.SecretPut) (*control.SecretResult, error) {
	return o.send(ctx, person, q.Confirm, func(confirm []string) (*control.SecretResult, error) {
		q.Confirm = confirm
		return d.PutSecret(ctx, q)
	}, q)
}

// wish says what the command is going to do, for whoever must allow it.
func (o *secretOptions) wish(verb string) string {
	text := fmt.Sprintf("%s the credential %s", verb, o.name)
	if len(o.hosts) > 0 {
		text += ", for " + strings.Join(o.hosts, ", ")
	}
	if o.oauth.TokenURL != "" {
		text += ", with tokens from " + o.oauth.TokenURL
	}
	return text
}

// anyChange reports whether something other than the value was given.
func (o *secretOptions) anyChange() bool {
	for _, f := range append([]string{"host", "header", "basic", "oauth2"}, oauthFlags...) {
		if o.changed(f) {
			return true
		}
	}
	return false
}

// checkSet refuses flags that do not go together, whatever is stored.
func (o *secretOptions) checkSet() error {
	switch s := o.oauth.AuthStyle; {
	case o.basic && o.oauth2:
		return usage("--basic and --oauth2 are different kinds; give one")
	case o.basic && len(o.headers) > 0:
		return usage("--basic is always sent in the Authorization header; leave --header out")
	case o.oauth2 && len(o.headers) > 1:
		return usage("a token is sent in one header; give --header once")
	case o.changed("auth-style") && s != "body" && s != "basic":
		return usage("--auth-style must be body or basic")
	}
	if o.basic {
		for _, f := range oauthFlags {
			if o.changed(f) {
				return usage("--%s is for --oauth2, not for --basic", f)
			}
		}
	}
	if o.stdin && isTerminal(o.app.stdin) {
		return usage("stdin is a terminal, which would show the value; leave --stdin out, and it is asked for")
	}
	for _, h := range o.headers {
		if _, err := parseHeader(h); err != nil {
			return err
		}
	}
	return nil
}

// put is the request without its values: what is stored, changed by the flags.
func (o *secretOptions) put(old *control.SecretInfo) (*control.SecretPut, error) {
	q := &control.SecretPut{Name: o.name, Kind: "static", Create: old == nil, Stdin: o.stdin}
	if old != nil {
		q.Seen = old.Seal // it may be changed while the person types
	}
	if old != nil && old.Problem != "" { // nothing of it can be read
		old = nil
	}
	if old != nil {
		q.Kind, q.Headers, q.AllowedHosts = old.Kind, old.Headers, old.AllowedHosts
	}
	switch {
	case o.basic:
		q.Kind, q.Headers = "basic", nil
	case o.oauth2 && q.Kind != "oauth2":
		q.Kind, q.Headers = "oauth2", nil
	}
	if len(o.hosts) > 0 {
		q.AllowedHosts = once(o.hosts)
	}
	if len(q.AllowedHosts) == 0 {
		return nil, usage("--host is missing: name each host that may be sent %s", o.name)
	}
	if err := o.putHeaders(q); err != nil {
		return nil, err
	}
	return q, o.putOAuth(q, old)
}

func (o *secretOptions) putHeaders(q *control.SecretPut) error {
	if len(o.headers) == 0 {
		if q.Kind == "static" && len(q.Headers) == 0 {
			q.Headers = []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}}
		}
		return nil
	}
	switch {
	case q.Kind == "basic":
		return usage("%s is of kind basic, which is always sent in the Authorization header; remove it first to make it one of another kind", o.name)
	case q.Kind == "oauth2" && len(o.headers) > 1:
		return usage("%s is of kind oauth2, whose token is sent in one header; give --header once", o.name)
	}
	q.Headers = nil
	for _, text := range o.headers {
		h, err := parseHeader(text)
		if err != nil {
			return err
		}
		q.Headers = append(q.Headers, h)
	}
	return nil
}

func (o *secretOptions) putOAuth(q *control.SecretPut, old *control.SecretInfo) error {
	if q.Kind != "oauth2" {
		for _, f := range oauthFlags {
			if o.changed(f) {
				return usage("--%s is for a credential of kind oauth2; give --oauth2", f)
			}
		}
		return nil
	}
	p := control.SecretOAuth{}
	if old != nil && old.OAuth != nil {
		p = *old.OAuth
	}
	for _, f := range []struct {
		flag      string
		to, given *string
	}{
		{"token-url", &p.TokenURL, &o.oauth.TokenURL},
		{"client-id", &p.ClientID, &o.oauth.ClientID},
		{"scope", &p.Scope, &o.oauth.Scope},
		{"audience", &p.Audience, &o.oauth.Audience},
		{"auth-style", &p.AuthStyle, &o.oauth.AuthStyle},
	} {
		if o.changed(f.flag) {
			*f.to = *f.given
		}
	}
	switch {
	case p.TokenURL == "":
		return usage("--token-url is missing")
	case p.ClientID == "":
		return usage("--client-id is missing")
	case p.AuthStyle == "":
		return usage("--auth-style is missing: body or basic, as the API's documentation says; a guess would send the secret twice")
	}
	q.OAuth = &p
	return nil
}

// long is text that is rather a value than a scheme's name: no scheme has a
// digit in so long a word.
var long = regexp.MustCompile(`[A-Za-z0-9_+/.-]{12,}`)

// parseHeader reads NAME[:PREFIX]. It repeats nothing of what follows the name,
// where people used to other programs put the value.
func parseHeader(text string) (control.SecretHeader, error) {
	name, prefix, _ := strings.Cut(text, ":")
	prefix = strings.TrimLeft(prefix, " ")
	for _, word := range long.FindAllString(prefix, -1) {
		if strings.ContainsAny(word, "0123456789") || len(word) > 24 {
			return control.SecretHeader{}, usage("--header %s: what follows the colon looks like a value; it must be a prefix, such as Bearer, and the value is asked for", clean(name))
		}
	}
	if name == "" {
		return control.SecretHeader{}, usage("--header is NAME or NAME:PREFIX; the name is missing")
	}
	for i := range len(name) {
		if c := name[i]; !isWordByte(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 { // RFC 9110; the rest may be a value
			return control.SecretHeader{}, usage("--header %s: only a colon and a prefix may follow a header's name, as in Authorization:Bearer; the value is asked for", name[:i])
		}
	}
	if n := len(prefix); n > 0 && isWordByte(prefix[n-1]) {
		prefix += " "
	}
	return control.SecretHeader{Name: name, Prefix: prefix}, nil
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// done prints what is now stored.
func (o *secretOptions) done(r *control.SecretResult, word string) error {
	if o.json {
		return o.app.printJSON(r)
	}
	if r.Secret == nil {
		return o.app.print(fmt.Sprintf("%s %s\n", word, clean(o.name)))
	}
	return o.app.print(clean(fmt.Sprintf("%s %s: %s", word, r.Secret.Name, asNamed(r.Secret))) + "\n")
}

// send makes a change, and asks the person what the daemon wants them asked.
// confirmed is what they have said yes to already.
func (o *secretOptions) send(ctx context.Context, person *asker, confirmed []string, do func(confirm []string) (*control.SecretResult, error), q *control.SecretPut) (*control.SecretResult, error) {
	for range 3 { // more questions than there are
		r, err := do(confirmed)
		if err != nil || r.Confirm == "" {
			return r, err
		}
		if !o.yes || person.marker != "" { // an agent's --yes is not a person's
			if err := person.yes(ctx, question(r, q), confirmation(r)); err != nil {
				return nil, err
			}
		}
		confirmed = append(confirmed, r.Confirm)
	}
	return nil, failed(exitFailed, "The commands and the daemon are of different versions: restart the daemon.", "the daemon asks the same again")
}

// question shows where a client secret would go.
func question(r *control.SecretResult, q *control.SecretPut) string {
	text := sentence(confirmation(r))
	if q != nil && q.OAuth != nil {
		hosts := q.AllowedHosts
		if r.Secret != nil {
			hosts = r.Secret.AllowedHosts
		}
		text += fmt.Sprintf("\n  token URL  %s\n  hosts      %s", clean(q.OAuth.TokenURL), clean(strings.Join(hosts, ", ")))
	}
	return text + "\nSend the client secret there?"
}

// confirmation is what the daemon wants a person to know before they say yes.
func confirmation(r *control.SecretResult) string {
	if r.Message == "" {
		return "the daemon asks to confirm " + clean(r.Confirm)
	}
	return clean(r.Message)
}

// sentence makes one of the text of a message.
func sentence(s string) string {
	return capital(s) + "."
}

func capital(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[n:]
}
