package tui

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// newCredential is the choice of a credential that does not exist yet. No
// credential can have this name.
const newCredential = "\x00new"

// A wrapperForm changes a few members of a document and leaves the others as
// they are.
type wrapperForm struct {
	form  *form
	id    string          // of the saved wrapper; "": a new one
	saved json.RawMessage // the document as it was when it was opened
	base  members
	was   map[string]string // what the fields said then
	ids   bool              // the person has typed an id
}

func (m *model) newWrapper() tea.Cmd {
	return m.openWrapper("", json.RawMessage(`{"schemaVersion":1}`), true)
}

func (m *model) editWrapper(id string) tea.Cmd {
	return m.do("reading "+id, func(ctx context.Context) then {
		doc, err := m.o.Backend.Wrapper(ctx, id)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			return m.openWrapper(id, doc, false)
		}
	})
}

// openWrapper shows the form, once the names of the credentials are known.
func (m *model) openWrapper(id string, doc json.RawMessage, fresh bool) tea.Cmd {
	base, err := parseMembers(doc)
	if err != nil {
		m.fail(err)
		return nil
	}
	return m.do("reading the credentials", func(ctx context.Context) then {
		l, err := m.o.Backend.Secrets(ctx)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			w := &wrapperForm{id: id, saved: doc, base: base}
			if fresh {
				w.saved = nil
			}
			w.build(l)
			m.push(w.form)
			return nil
		}
	})
}

func (w *wrapperForm) build(l *api.SecretList) {
	req := w.base.object("request")
	credentials := []choice{{"", "none"}}
	for _, s := range l.Secrets {
		credentials = append(credentials, choice{s.Name, clean(s.Name + " (" + strings.Join(s.AllowedHosts, ", ") + ")")})
	}
	auth := req.text("auth")
	if auth != "" && !slices.ContainsFunc(l.Secrets, func(s api.Secret) bool { return s.Name == auth }) {
		credentials = append(credentials, choice{auth, clean(auth + " (not stored)")})
	}
	credentials = append(credentials, choice{newCredential, "new credential ..."})
	name := "New wrapper"
	if w.id != "" {
		name = "Edit " + w.id
	}
	w.form = &form{name: name, save: w.save}
	id := text("id", "Id", w.id, "Letters, digits, dots, dashes; unique. Agents call the wrapper by it.")
	id.touched = func(*form) { w.ids = true }
	if w.id != "" {
		id.fixed = true
	}
	title := text("name", "Name", w.base.text("name"), "One line that people read.")
	if w.id == "" {
		title.touched = func(f *form) {
			if !w.ids {
				f.field("id").in.set(suggestID(f.value("name")))
			}
		}
	}
	credential := pick("auth", "Credential", auth, "Sent only to the hosts it is bound to. Enter on \"new credential ...\" stores one.", credentials...)
	credential.enter = func(m *model, f *form) (tea.Cmd, bool) {
		if f.value("auth") != newCredential {
			return nil, false
		}
		return w.newCredential(m, f), true
	}
	w.form.fields = []*field{
		title, id,
		text("description", "Description", w.base.text("description"), "What it is for. Agents choose by it."),
		pick("method", "Method", defaultMethod(req), "The request's method; of several the first.", methodChoices(req)...),
		text("url", "URL", req.text("url"), "https://host/path/{{argument}}; the host is literal."),
		credential,
		pick("mutating", "Writes", boolText(w.base, "mutating"), "Whether a call changes something there. By method: all but GET and HEAD.",
			choice{"", "by method"}, choice{"true", "yes"}, choice{"false", "no"}),
		pick("expose", "Own tool", boolText(w.base, "exposeAsTool"), "Whether MCP clients see it as a tool of its own; wrap_run reaches it anyway.",
			choice{"", "no"}, choice{"true", "yes"}),
		action("Advanced: the whole document as JSON, in the editor", "Arguments, query, headers, body and the recipe for the answer.", w.editJSON),
		action("Dry run", "Shows the exact request of this form. Nothing is saved or sent.", w.dryRun),
		action("Render a sample", "Shows how an answer of the API would look. Nothing is saved or sent.", w.sample),
		action("Save", "Checks the document and saves it.", w.save),
	}
	w.was = w.values()
}

func (w *wrapperForm) values() map[string]string {
	v := map[string]string{}
	for _, d := range w.form.fields {
		if d.name != "" {
			v[d.name] = w.form.value(d.name)
		}
	}
	return v
}

// boolText is a member that is a boolean: "true", or "false" when that is not
// the same as its absence.
func boolText(ms members, key string) string {
	switch s := string(ms.get(key)); {
	case s == "true", s == "false" && key == "mutating":
		return s
	}
	return ""
}

func defaultMethod(req members) string {
	if s := req.text("method"); s != "" {
		return s
	}
	var list []string
	if json.Unmarshal(req.get("method"), &list) == nil && len(list) > 0 {
		return list[0]
	}
	return "GET"
}

func methodChoices(req members) []choice {
	var out []choice
	for _, s := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"} {
		out = append(out, choice{s, s})
	}
	if is := defaultMethod(req); !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"}, is) {
		out = append(out, choice{is, clean(is)})
	}
	return out
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

// suggestID makes an id of a name.
func suggestID(name string) string {
	id := strings.Trim(notInID.ReplaceAllString(strings.ToLower(name), "."), ".")
	return strings.Trim(id[:min(len(id), 100)], ".")
}

var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

// document is the opened document with what the person has changed.
func (w *wrapperForm) document() json.RawMessage {
	now := w.values()
	doc := slices.Clone(w.base)
	req := slices.Clone(doc.object("request"))
	changed := func(name string) bool { return now[name] != w.was[name] }
	if w.id == "" {
		doc.set("id", now["id"])
	}
	for _, key := range []string{"name", "description"} {
		switch {
		case !changed(key):
		case now[key] == "":
			doc.drop(key)
		default:
			doc.set(key, now[key])
		}
	}
	if changed("method") || w.saved == nil {
		req.set("method", now["method"])
	}
	if changed("url") || w.saved == nil {
		req.set("url", now["url"])
	}
	switch {
	case !changed("auth"), now["auth"] == newCredential:
	case now["auth"] == "":
		req.drop("auth")
	default:
		req.set("auth", now["auth"])
	}
	doc.set("request", req.bytes())
	if names := placeholders(now["url"]); w.saved == nil && len(names) > 0 && doc.get("inputSchema") == nil {
		doc.set("inputSchema", argumentsOf(names))
	}
	for field, key := range map[string]string{"expose": "exposeAsTool", "mutating": "mutating"} {
		switch {
		case !changed(field):
		case now[field] == "":
			doc.drop(key)
		default:
			doc.set(key, json.RawMessage(now[field]))
		}
	}
	return doc.bytes()
}

func placeholders(u string) []string {
	var names []string
	for _, found := range placeholder.FindAllStringSubmatch(u, -1) {
		if !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	return names
}

// argumentsOf is a first schema for the arguments of a URL: each a string, each
// required.
func argumentsOf(names []string) json.RawMessage {
	var properties, schema members
	for _, n := range names {
		properties.set(n, json.RawMessage(`{"type":"string"}`))
	}
	schema.set("type", "object")
	schema.set("properties", properties.bytes())
	schema.set("required", names)
	return schema.bytes()
}

// complete refuses what the daemon could only call a bad document.
func (w *wrapperForm) complete(m *model, f *form) (json.RawMessage, bool) {
	f.problems = nil
	if f.value("auth") == newCredential {
		return nil, false
	}
	if w.id == "" && f.value("id") == "" {
		f.problems = []string{"the id is missing"}
	}
	if f.value("url") == "" {
		f.problems = append(f.problems, "the URL is missing")
	}
	return w.document(), len(f.problems) == 0
}

func (w *wrapperForm) save(m *model, f *form) tea.Cmd {
	if f.value("auth") == newCredential {
		return w.newCredential(m, f)
	}
	doc, ok := w.complete(m, f)
	if !ok {
		return nil
	}
	if w.id == "" {
		return w.send(m, &api.ChangeRequest{Action: "create", Wrapper: doc})
	}
	return m.saveOver(w.id, w.saved, func(m *model) tea.Cmd {
		return w.send(m, &api.ChangeRequest{Action: "update", ID: w.id, Wrapper: doc})
	})
}

// saveOver asks first when the saved document is not the one that was opened:
// an agent may have changed it meanwhile.
func (m *model) saveOver(id string, opened json.RawMessage, save func(m *model) tea.Cmd) tea.Cmd {
	return m.do("saving", func(ctx context.Context) then {
		now, err := m.o.Backend.Wrapper(ctx, id)
		return func(m *model) tea.Cmd {
			switch {
			case err != nil:
				m.fail(err)
				return nil
			case !sameJSON(now, opened):
				m.ask(save, clean("The wrapper "+id+" has been changed while you had it open."), "Save yours over that change?")
				return nil
			}
			return save(m)
		}
	})
}

func (w *wrapperForm) send(m *model, q *api.ChangeRequest) tea.Cmd {
	return m.do("saving", func(ctx context.Context) then {
		r, err := m.o.Backend.Change(ctx, q)
		return func(m *model) tea.Cmd {
			if err != nil {
				w.form.problems = shortProblems(err)
				return nil
			}
			m.stack = nil
			m.savedWrapper(r)
			return nil
		}
	})
}

func (m *model) savedWrapper(r *api.ChangeResult) {
	m.wrappers.filter.in.set("")
	m.wrappers.refresh(m)
	m.wrappers.list.choose(r.ID)
	if len(r.Warnings) > 0 {
		m.push(newPager("Saved "+r.ID+", with warnings", warningLines(r.Warnings)[1:]))
		m.warn("saved %s, with %s", r.ID, plural(len(r.Warnings), "warning", "warnings"))
		return
	}
	m.good("saved %s", r.ID)
}

func (w *wrapperForm) dryRun(m *model, f *form) tea.Cmd {
	doc, ok := w.complete(m, f)
	if !ok {
		return w.orCredential(m, f)
	}
	return m.try(subject{id: f.value("id"), doc: doc}, doc)
}

func (w *wrapperForm) sample(m *model, f *form) tea.Cmd {
	doc, ok := w.complete(m, f)
	if !ok {
		return w.orCredential(m, f)
	}
	return m.sample(subject{id: f.value("id"), doc: doc})
}

func (w *wrapperForm) orCredential(m *model, f *form) tea.Cmd {
	if f.value("auth") == newCredential {
		return w.newCredential(m, f)
	}
	return nil
}

// newCredential stores a credential for the host of the form, and chooses it.
func (w *wrapperForm) newCredential(m *model, f *form) tea.Cmd {
	host := ""
	if u, err := url.Parse(placeholder.ReplaceAllString(f.value("url"), "x")); err == nil {
		host = u.Host
	}
	return m.credentials.open(m, nil, host, func(m *model, s *control.SecretInfo) {
		d := f.field("auth")
		last := len(d.choices) - 1
		d.choices = slices.Insert(d.choices, last, choice{s.Name, clean(s.Name + " (" + strings.Join(s.AllowedHosts, ", ") + ")")})
		d.chosen, f.changed = last, true
	})
}

// editJSON opens the whole document, as the form has it, in the editor.
func (w *wrapperForm) editJSON(m *model, f *form) tea.Cmd {
	if f.value("auth") == newCredential {
		return w.newCredential(m, f)
	}
	before := w.document()
	return m.edit("wrapper.json", []byte(pretty(before)+"\n"), func(m *model, data []byte) tea.Cmd {
		base, err := parseMembers(data)
		if err != nil {
			f.problems = []string{clean("what you edited is not used: " + err.Error())}
			return nil
		}
		f.problems = nil
		if sameJSON(before, data) {
			m.say("nothing was changed in the editor")
			return nil
		}
		w.base = base
		req := base.object("request")
		if w.id == "" {
			f.field("id").in.set(base.text("id"))
			w.ids = true
		}
		f.field("name").in.set(base.text("name"))
		f.field("description").in.set(base.text("description"))
		f.field("method").choices = methodChoices(req)
		f.field("method").choose(defaultMethod(req))
		f.field("url").in.set(req.text("url"))
		w.chooseAuth(f.field("auth"), req.text("auth"))
		f.field("mutating").choose(boolText(base, "mutating"))
		f.field("expose").choose(boolText(base, "exposeAsTool"))
		w.was, f.changed = w.values(), true
		m.say("the form has the edited document; ctrl+s saves it")
		return nil
	})
}

func (w *wrapperForm) chooseAuth(d *field, auth string) {
	if !slices.ContainsFunc(d.choices, func(c choice) bool { return c.value == auth }) {
		d.choices = slices.Insert(d.choices, len(d.choices)-1, choice{auth, clean(auth + " (not stored)")})
	}
	d.choose(auth)
}

// editDocument opens a saved document in the editor, and again for as long as
// the daemon refuses what comes out and the person wants to go on.
func (m *model) editDocument(id string) tea.Cmd {
	return m.do("reading "+id, func(ctx context.Context) then {
		doc, err := m.o.Backend.Wrapper(ctx, id)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			return m.editText(id, doc, []byte(pretty(doc)+"\n"))
		}
	})
}

func (m *model) editText(id string, opened json.RawMessage, text []byte) tea.Cmd {
	return m.edit(id+".json", text, func(m *model, data []byte) tea.Cmd {
		if sameJSON(opened, data) || len(data) == 0 {
			m.say("nothing was changed")
			return nil
		}
		return m.saveOver(id, opened, func(m *model) tea.Cmd {
			return m.do("saving "+id, func(ctx context.Context) then {
				if err := checkJSON(data); err != nil { // as a call it would not be one
					return func(m *model) tea.Cmd { m.again(id, opened, data, err); return nil }
				}
				r, err := m.o.Backend.Change(ctx, &api.ChangeRequest{Action: "update", ID: id, Wrapper: data})
				return func(m *model) tea.Cmd {
					if err != nil {
						m.again(id, opened, data, err)
						return nil
					}
					m.stack = nil
					m.savedWrapper(r)
					return nil
				}
			})
		})
	})
}

// again shows what is wrong with an edited document, which is not lost.
func (m *model) again(id string, opened json.RawMessage, data []byte, err error) {
	p := newPager("Not saved: "+id, append(shortProblems(err), "", "Your text is kept as long as this screen is open."))
	p.doKeys = "e edit again"
	p.does = map[string]func(m *model) tea.Cmd{"e": func(m *model) tea.Cmd {
		m.close(p)
		return m.editText(id, opened, append(slices.Clone(data), '\n'))
	}}
	m.push(p)
}
