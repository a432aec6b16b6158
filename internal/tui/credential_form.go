package tui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// open shows the form of a credential: of a stored one, or of a new one for
// host. saved is told what was stored; nil: nobody.
func (t *credentialsTab) open(m *model, old *control.SecretInfo, host string, saved func(m *model, s *control.SecretInfo)) tea.Cmd {
	f := &form{name: "New credential"}
	shown := control.SecretInfo{Kind: "static", Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}}}
	if host != "" {
		shown.AllowedHosts = []string{host}
	}
	name := text("name", "Name", "", "Wrappers name it in \"auth\". Agents see the name and the hosts.")
	value := pick("value", "Value", "ask", "It is asked for outside this screen, and never shown.", choice{"ask", "asked for when you save"})
	if old != nil {
		f.name = "Edit the credential " + old.Name
		name = text("name", "Name", old.Name, "")
		name.fixed = true
		if old.Problem == "" {
			shown = *old
			value = pick("value", "Value", "keep", "Keep it and change the rest, or enter another one when you save.",
				choice{"keep", "keep the saved one"}, choice{"ask", "ask for a new one when I save"})
		}
	}
	oauth := control.SecretOAuth{AuthStyle: "body"}
	if shown.OAuth != nil {
		oauth = *shown.OAuth
	}
	only := func(kinds ...string) func(f *form) bool {
		return func(f *form) bool { return !slices.Contains(kinds, f.value("kind")) }
	}
	under := func(d *field, hidden func(f *form) bool) *field { d.hidden = hidden; return d }
	f.fields = []*field{
		name,
		text("hosts", "Hosts", strings.Join(shown.AllowedHosts, ", "), "The hosts that may be sent it, with commas between them. No other ever is."),
		pick("kind", "Kind", shown.Kind, "How it is sent.", choice{"static", "a value in headers"}, choice{"basic", "user name and password (Basic)"}, choice{"oauth2", "OAuth2 client credentials"}),
		under(text("headers", "Headers", headerInputs(shown.Headers), "NAME or NAME:PREFIX, with commas between them. The value goes behind the prefix; do not type it here."), only("static", "oauth2")),
		under(text("tokenUrl", "Token URL", oauth.TokenURL, "Where tokens are fetched; the client secret is sent there."), only("oauth2")),
		under(text("clientId", "Client id", oauth.ClientID, ""), only("oauth2")),
		under(text("scope", "Scope", oauth.Scope, "May be empty."), only("oauth2")),
		under(text("audience", "Audience", oauth.Audience, "May be empty."), only("oauth2")),
		under(pick("authStyle", "Secret sent", oauth.AuthStyle, "As the API's documentation says.", choice{"body", "in the body"}, choice{"basic", "as Basic authorization"}), only("oauth2")),
		value,
		action("Save", "Asks for the value when one is needed, and saves.", func(m *model, f *form) tea.Cmd { return f.save(m, f) }),
	}
	f.save = func(m *model, f *form) tea.Cmd {
		q, problems := credentialOf(m, f, old)
		if f.problems = problems; len(problems) > 0 {
			return nil
		}
		places := q.Places(old)
		if f.value("value") == "keep" && !slices.ContainsFunc(places, func(p control.ValuePlace) bool { return !p.Keep }) {
			places = nil
		}
		s := &saving{tab: t, q: q, places: places, told: func(m *model, s *control.SecretInfo) {
			m.close(f)
			if saved != nil {
				saved(m, s)
			}
		}, failed: func(_ *model, problems []string) { f.problems = problems }}
		return s.check(m)
	}
	m.push(f)
	return nil
}

func headerInputs(hs []control.SecretHeader) string {
	var out []string
	for _, h := range hs {
		s := h.Name
		if h.Prefix != "" {
			s += ":" + strings.TrimSuffix(h.Prefix, " ")
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// credentialOf reads the form.
func credentialOf(m *model, f *form, old *control.SecretInfo) (*control.SecretPut, []string) {
	q := &control.SecretPut{Name: f.value("name"), Kind: f.value("kind"), AllowedHosts: commas(f.value("hosts")), Create: old == nil}
	if old != nil {
		q.Seen = old.Seal
	}
	var problems []string
	if q.Name == "" {
		problems = append(problems, "the name is missing")
	}
	if len(q.AllowedHosts) == 0 {
		problems = append(problems, "name at least one host that may be sent it")
	}
	if q.Kind != "basic" {
		typed, names := commas(f.value("headers")), []string(nil)
		bad := false
		for _, s := range typed {
			h, err := m.o.Header(s)
			name, _, _ := strings.Cut(s, ":")
			names = append(names, name)
			if err != nil {
				bad = true
				problems = append(problems, clean(strings.ReplaceAll(err.Error(), "--header", "header")))
				continue
			}
			q.Headers = append(q.Headers, h)
		}
		if bad { // it may be a value, which does not stay on the screen
			f.field("headers").in.set(strings.Join(names, ", "))
		}
		if len(q.Headers) == 0 && len(problems) == 0 {
			problems = append(problems, "name at least one header, as Authorization:Bearer")
		}
	}
	if q.Kind == "oauth2" {
		q.OAuth = &control.SecretOAuth{TokenURL: f.value("tokenUrl"), ClientID: f.value("clientId"), Scope: f.value("scope"), Audience: f.value("audience"), AuthStyle: f.value("authStyle")}
		if q.OAuth.TokenURL == "" || q.OAuth.ClientID == "" {
			problems = append(problems, "the token URL and the client id are needed")
		}
	}
	return q, problems
}

func commas(s string) []string {
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}

// rotate asks for a new value and changes nothing else.
func (t *credentialsTab) rotate(m *model, old *control.SecretInfo) tea.Cmd {
	q, places, problem := rotation(old)
	if problem != "" {
		m.warn("%s", problem)
		return nil
	}
	s := &saving{
		tab: t, q: q, places: places,
		told:   func(*model, *control.SecretInfo) {},
		failed: func(m *model, problems []string) { m.warn("%s", strings.Join(problems, "; ")) },
	}
	return s.check(m)
}

// rotation is the call that replaces the values of a credential alone, and the
// values to ask for; or why there is none.
func rotation(old *control.SecretInfo) (q *control.SecretPut, places []control.ValuePlace, problem string) {
	if old.Problem != "" {
		return nil, nil, clean("the record of " + old.Name + " cannot be read; store it again with `hbrestd secret set`")
	}
	q = &control.SecretPut{Name: old.Name, Kind: old.Kind, Headers: old.Headers, AllowedHosts: old.AllowedHosts, OAuth: old.OAuth, Seen: old.Seal}
	places = q.Places(old)
	for i := range places {
		places[i].Keep = len(places) > 1 // of several, not each has to be new
	}
	return q, places, ""
}

// A saving is the way of a credential into the vault: looked at without its
// values, asked about, its values asked for, sent, and the values wiped.
type saving struct {
	tab    *credentialsTab
	q      *control.SecretPut
	places []control.ValuePlace // the values to ask for; none: the saved ones stay
	told   func(m *model, s *control.SecretInfo)
	failed func(m *model, problems []string)
}

// check has everything but the values looked at before one is entered.
func (s *saving) check(m *model) tea.Cmd {
	return m.do("checking "+s.q.Name, func(ctx context.Context) then {
		st, err := m.o.Backend.SecretState(ctx)
		var r *control.SecretResult
		if err == nil && (usable(st) || st.State == "not asked") {
			r, err = m.o.Backend.CheckSecret(ctx, s.q)
		}
		return func(m *model) tea.Cmd {
			switch {
			case err != nil:
				s.failed(m, shortProblems(err))
				return nil
			case r == nil:
				s.failed(m, []string{clean("credentials cannot be used: " + stateWords(st.State) + "; " + st.Reason), clean(st.Fix)})
				return nil
			case r.Confirm != "" && !slices.Contains(s.q.Confirm, r.Confirm):
				return s.confirm(m, r, s.check)
			}
			if len(s.places) == 0 {
				return s.put(m)
			}
			return s.ask(m, r)
		}
	})
}

func (s *saving) confirm(m *model, r *control.SecretResult, again func(m *model) tea.Cmd) tea.Cmd {
	lines := []string{clean(r.Message)}
	if s.q.OAuth != nil {
		lines = append(lines, "", clean("token URL  "+s.q.OAuth.TokenURL), clean("hosts      "+strings.Join(s.q.AllowedHosts, ", ")))
	}
	m.ask(func(m *model) tea.Cmd {
		s.q.Confirm = append(s.q.Confirm, r.Confirm)
		return again(m)
	}, append(lines, "", "Send the client secret there?")...)
	return nil
}

// ask leaves the screen to whoever asks for the values.
func (s *saving) ask(m *model, r *control.SecretResult) tea.Cmd {
	a := &asking{ask: m.o.Ask, prompts: s.prompts(r.Secret)}
	return m.exec(a, func(m *model, err error) tea.Cmd {
		if err == nil {
			err = s.take(a.values)
		}
		if err != nil {
			a.wipe()
			s.failed(m, []string{clean(err.Error())})
			return nil
		}
		return s.put(m)
	})
}

func (s *saving) prompts(shown *control.SecretInfo) []string {
	name, hosts := s.q.Name, s.q.AllowedHosts
	if shown != nil { // as it would be saved: two names that look alike differ there
		name, hosts = shown.Name, shown.AllowedHosts
	}
	var out []string
	for i, p := range s.places {
		text := fmt.Sprintf("The credential %s will be sent to %s.", clean(name), clean(strings.Join(hosts, ", ")))
		if i > 0 {
			text = fmt.Sprintf("The credential %s:", clean(name))
		} else if s.q.OAuth != nil {
			text += "\nIts client secret will be sent to " + clean(s.q.OAuth.TokenURL) + "."
		}
		switch {
		case p.Keep:
			text += "\nAn empty entry keeps the saved one."
		case p.Empty:
			text += "\nIt may be empty when the user name is a key."
		}
		out = append(out, text+"\n"+clean(p.Prompt))
	}
	return out
}

// take puts the values into the call.
func (s *saving) take(values [][]byte) error {
	s.q.Values = values
	for i, p := range s.places {
		switch {
		case len(values[i]) > 0:
		case p.Empty:
			values[i] = []byte{}
		case p.Keep:
			values[i] = nil
		default:
			return fmt.Errorf("no %s was given; nothing was changed", p.What())
		}
	}
	return nil
}

func (s *saving) put(m *model) tea.Cmd {
	return m.do("saving "+s.q.Name, func(ctx context.Context) then {
		defer wipe(s.q.Values)
		r, err := m.o.Backend.PutSecret(ctx, s.q)
		return func(m *model) tea.Cmd {
			switch {
			case err != nil:
				s.failed(m, shortProblems(err))
				return nil
			case r.Confirm != "": // checked before: something changed since
				s.failed(m, []string{clean(r.Message), "Nothing was saved; save again."})
				return nil
			}
			saved := r.Secret
			if saved == nil {
				saved = &control.SecretInfo{Name: s.q.Name, AllowedHosts: s.q.AllowedHosts}
			}
			m.good("saved %s, for %s", saved.Name, strings.Join(saved.AllowedHosts, ", "))
			s.told(m, saved)
			s.tab.list.choose(saved.Name)
			return s.tab.load(m)
		}
	})
}

func wipe(values [][]byte) {
	for _, v := range values {
		clear(v[:cap(v)])
	}
}

// An asking has the terminal while values are asked for.
type asking struct {
	ask     func(prompt string) ([]byte, error)
	prompts []string
	values  [][]byte
}

// Run asks for one value after the other.
func (a *asking) Run() error {
	for _, p := range a.prompts {
		v, err := a.ask(p)
		if err != nil {
			a.wipe()
			return err
		}
		a.values = append(a.values, bytes.Clone(v))
		clear(v)
	}
	return nil
}

func (a *asking) wipe() { wipe(a.values) }

// SetStdin does nothing: whoever asks has the terminal by its own name.
func (a *asking) SetStdin(io.Reader) {}

// SetStdout does nothing.
func (a *asking) SetStdout(io.Writer) {}

// SetStderr does nothing.
func (a *asking) SetStderr(io.Writer) {}
