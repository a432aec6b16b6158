package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// An Action is what a change does to our entry.
type Action string

// The actions.
const (
	Nothing Action = "nothing" // it is as it should be
	Add     Action = "add"
	Update  Action = "update" // in place: what is not ours in the entry stays
	Remove  Action = "remove"
)

// A Request says what the file should say about us.
type Request struct {
	Scope  Scope
	Wanted *Wanted // nil: no entry
	// ReplaceOld also takes the entries of the predecessor out.
	ReplaceOld bool
	// Force replaces, or removes, an entry under our name that starts another
	// program.
	Force bool
}

// A Change is an edit of one file that was worked out and not yet written.
type Change struct {
	Client  Client
	Path    string // as the client has it
	Target  string // the file that is written: where symbolic links lead
	Action  Action
	Replace []string // entries of the predecessor that are taken out
	Old     []string // those that stay
	Notes   []string // what a person should know, one sentence each
	Loose   bool     // the file has a comment or a trailing comma, and the client takes neither
	Before  []byte   // of the file; nil if it is not there
	After   []byte   // nil if it is removed, because nothing else was in it
	old     file
	scope   Scope
}

// Changes reports whether applying it would change anything.
func (c Change) Changes() bool { return !bytes.Equal(c.Before, c.After) }

// Plan works out the edit. It writes nothing. It refuses a file that it cannot
// understand (CLIENT_FILE_INVALID), one that may not be written or that it would
// not be sure to edit well (CLIENT_FILE_REFUSED), and an entry under our name
// that is not ours (CLIENT_ENTRY_FOREIGN).
func (c Client) Plan(env Env, r Request) (Change, error) {
	path := c.Path(env, r.Scope)
	if !c.Editable {
		return Change{}, refused("the file of %s is not edited by this version", c.Title).With(fault.Hint("`hbrestd client print %s` prints what to put into it.", c.Name))
	}
	if path == "" {
		return Change{}, c.noPlace(r.Scope)
	}
	f, err := readFile(path)
	if err != nil {
		return Change{}, err
	}
	ch, err := c.plan(f, r)
	if err != nil || !ch.Changes() {
		return ch, err
	}
	if r.Wanted == nil && c.emptied(ch.After) && f.target == f.path && !env.Exists(BackupPath(f.target)) {
		ch.After = nil // it was made by us: there is no backup of an earlier one
	}
	return ch, mayWrite(f)
}

// plan works the edit out on what was read.
func (c Client) plan(f file, r Request) (Change, error) {
	ch := Change{Client: c, Path: f.path, Target: f.target, Action: Nothing, Before: f.raw, After: f.raw, old: f, scope: r.Scope}
	doc, err := c.decode(f.text)
	if err != nil {
		return ch, c.invalid(f.path, f.text, err)
	}
	st := c.state(State{Path: f.path, Exists: f.exists}, doc)
	if st.Present && !st.Ours && !r.Force {
		return ch, c.foreign(st)
	}
	ch.Old = st.Old
	if r.ReplaceOld {
		ch.Replace, ch.Old = st.Old, nil
	}
	edits := c.edits(&ch, st, r)
	if len(edits) == 0 {
		return ch, nil
	}
	text, err := c.edit(f.text, edits)
	if err == nil {
		err = c.prove(f.text, text, edits, r)
	}
	if err != nil {
		return ch, c.notEdited(f.path, f.text, err)
	}
	if ch.After = text; f.bom {
		ch.After = append(slices.Clone(byteOrderMark), text...)
	}
	c.note(&ch, st, r)
	return ch, nil
}

func (c Client) foreign(st State) error {
	what := "does not start a program"
	if st.Entry != nil {
		what = "starts " + st.Entry.Command
	}
	return fault.New("CLIENT_ENTRY_FOREIGN", "%s has an entry %q that is not ours: it %s", st.Path, Name, what).With(fault.Field(st.Path))
}

func (c Client) notEdited(path string, text []byte, err error) error {
	message := path + ": " + err.Error()
	var at *fault.Error
	if errors.As(c.invalid(path, text, err), &at) {
		message = at.Message
	}
	return refused("%s; the file was left alone", message).With(fault.Cause(err), fault.Hint("`hbrestd client print %s` prints what to put into it by hand.", c.Name))
}

// An edit sets the value at a path, or removes what is there.
type edit struct {
	path   []string
	value  any  // nil: remove
	unlist bool // remove the list too if that leaves it empty
}

// edits are what has to be done; old entries go last, because the list that they
// are in shows how entries are written here.
func (c Client) edits(ch *Change, st State, r Request) []edit {
	var out []edit
	entry := []string{c.list, Name}
	switch {
	case r.Wanted == nil:
		if st.Present {
			ch.Action = Remove
			out = append(out, edit{path: entry, unlist: true})
		}
	case !st.Present:
		ch.Action = Add
		out = append(out, edit{path: entry, value: c.shape.members(r.Wanted.Entry)})
	case !st.Ours:
		ch.Action = Update
		if c.format == formatTOML { // a table cannot be replaced where it stands
			out = append(out, edit{path: entry})
		}
		out = append(out, edit{path: entry, value: c.shape.members(r.Wanted.Entry)})
	default:
		if more := c.updates(st.current.(map[string]any), *r.Wanted); len(more) > 0 {
			ch.Action = Update
			out = append(out, more...)
		}
	}
	for _, name := range ch.Replace {
		out = append(out, edit{path: []string{c.list, name}, unlist: r.Wanted == nil})
	}
	return out
}

// updates change an entry of ours into the wanted one. What a person has added
// to it stays.
func (c Client) updates(current map[string]any, w Wanted) []edit {
	at := func(more ...string) []string { return append([]string{c.list, Name}, more...) }
	var out []edit
	env, hasEnv := current[c.shape.env].(map[string]any)
	for _, m := range c.shape.members(w.Entry) {
		have, ok := current[m.key]
		switch {
		case m.key == c.shape.env:
			if !hasEnv {
				out = append(out, edit{path: at(m.key), value: m.value})
				continue
			}
			for _, v := range m.value.([]member) {
				if env[v.key] != v.value {
					out = append(out, edit{path: at(m.key, v.key), value: v.value})
				}
			}
		case m.key == c.shape.kind[0] && !ok, isExtra(c.shape, m.key):
		case m.key == "args" && !ok && len(w.Args) == 0:
		case !same(have, m.value):
			out = append(out, edit{path: at(m.key), value: m.value})
		}
	}
	for _, name := range sortedKeys(w.Idle) {
		if _, wanted := w.Env[name]; wanted {
			continue
		}
		if have, ok := env[name]; ok && have != w.Idle[name] {
			out = append(out, edit{path: at(c.shape.env, name)})
		}
	}
	return out
}

func isExtra(s shape, key string) bool {
	return slices.ContainsFunc(s.extra, func(m member) bool { return m.key == key })
}

// same compares a decoded value with one of ours.
func same(have, want any) bool {
	if list, ok := want.([]string); ok {
		got, isList := have.([]any)
		return isList && len(got) == len(list) && slices.Equal(texts(have), list)
	}
	return have == want
}

// edit makes the edits one after the other.
func (c Client) edit(text []byte, edits []edit) ([]byte, error) {
	var err error
	for _, e := range edits {
		switch {
		case c.format == formatTOML && e.value != nil:
			text, err = setTOML(text, e.path, e.value)
		case c.format == formatTOML:
			text, err = removeTOML(text, e.path)
		case e.value != nil:
			text, err = setJSON(text, e.path, e.value)
		default:
			text, err = removeJSON(text, e.path, e.unlist)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// prove reads the result and compares it with what was there: the edited places
// must hold what they should, and nothing else may differ.
func (c Client) prove(before, after []byte, edits []edit, r Request) error {
	was, err := c.decode(before)
	if err != nil {
		return err
	}
	is, err := c.decode(after)
	if err != nil {
		return errors.New("the edit would not have left a valid document")
	}
	st := c.state(State{}, is)
	if st.Present != (r.Wanted != nil) {
		return errors.New("the edit would not have had its effect")
	}
	if r.Wanted != nil {
		current, ok := st.current.(map[string]any)
		if !ok || len(c.updates(current, *r.Wanted)) > 0 {
			return errors.New("the edit would not have had its effect")
		}
	}
	for _, e := range edits {
		without(was, e.path)
		without(is, e.path)
	}
	dropEmpty(was, c.list, Name)
	dropEmpty(is, c.list, Name)
	if !equal(was, is) {
		return errors.New("the edit would have changed more than our entry")
	}
	return nil
}

// equal compares decoded values. Unlike reflect.DeepEqual it takes nan, which
// TOML has, for equal to itself.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case float64:
		b, ok := b.(float64)
		return ok && (a == b || a != a && b != b)
	}
	return reflect.DeepEqual(a, b)
}

// without deletes what is at a path.
func without(m map[string]any, path []string) {
	for _, key := range path[:len(path)-1] {
		next, ok := m[key].(map[string]any)
		if !ok {
			return
		}
		m = next
	}
	delete(m, path[len(path)-1])
}

// dropEmpty deletes an entry, and then a list, that holds nothing: making or
// removing such is part of an edit.
func dropEmpty(doc map[string]any, list, name string) {
	m, ok := doc[list].(map[string]any)
	if !ok {
		return
	}
	if e, ok := m[name].(map[string]any); ok {
		for k, v := range e {
			if sub, ok := v.(map[string]any); ok && len(sub) == 0 {
				delete(e, k)
			}
		}
		if len(e) == 0 {
			delete(m, name)
		}
	}
	if len(m) == 0 {
		delete(doc, list)
	}
}

// emptied reports whether a document holds nothing, comments included.
func (c Client) emptied(text []byte) bool {
	rest := bytes.TrimSpace(bytes.TrimPrefix(text, byteOrderMark))
	if c.format == formatTOML {
		return len(rest) == 0
	}
	return len(rest) == 0 || string(rest) == "{}"
}

// note says what a person should know about a change.
func (c Client) note(ch *Change, st State, r Request) {
	if c.strict {
		if at := notStrict(ch.old.text); at >= 0 {
			ch.Loose = true
			line := bytes.Count(ch.old.text[:at], []byte("\n")) + 1
			ch.Notes = append(ch.Notes, fmt.Sprintf("%s reads JSON without comments and trailing commas, and line %d has one: it may refuse its file, or begin a new one", c.Title, line))
		}
	}
	if st.Off && r.Wanted != nil {
		ch.Notes = append(ch.Notes, fmt.Sprintf("the entry is switched off in %s; it stays so", c.Title))
	}
	if r.Wanted != nil && base(r.Wanted.Command) != Name {
		ch.Notes = append(ch.Notes, fmt.Sprintf("%s is not named %s, so the entry will count as another program's: to change or remove it takes --force", r.Wanted.Command, Name))
	}
	if r.Scope == Project && r.Wanted != nil {
		ch.Notes = append(ch.Notes, "people commit this file, and it now holds a path of this machine")
	}
}

// notStrict is where a comment or a trailing comma stands, or -1.
func notStrict(text []byte) int {
	v, err := hujson.Parse(text)
	if err != nil || v.IsStandard() {
		return -1
	}
	plain, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return -1
	}
	for i := range plain {
		if plain[i] != text[i] {
			return i
		}
	}
	return -1
}

// Snippet is what to put into the client's file by hand: the entry within the
// members that lead to it.
func (c Client) Snippet(e Entry) string {
	ms := c.shape.members(e)
	switch c.format {
	case formatTOML:
		return string(tomlTable("\n", []string{c.list, Name}, ms))
	case formatYAML:
		return c.yamlSnippet(ms)
	}
	return string(jsonStyle{newline: "\n", unit: "  "}.value([]member{{c.list, []member{{Name, ms}}}}, "")) + "\n"
}

func (c Client) yamlSnippet(ms []member) string {
	var b strings.Builder
	b.WriteString(c.list + ":\n")
	indent := "    "
	first := "  " + Name + ":\n" + indent + "name: " + Name + "\n"
	if c.shape.named {
		first = "  - name: " + Name + "\n"
	}
	b.WriteString(first)
	for _, m := range ms {
		if table, ok := m.value.([]member); ok {
			b.WriteString(indent + m.key + ":\n")
			for _, v := range table {
				b.WriteString(indent + "  " + v.key + ": " + string(jsonStyle{}.value(v.value, "")) + "\n")
			}
			continue
		}
		b.WriteString(indent + m.key + ": " + string(jsonStyle{}.value(m.value, "")) + "\n")
	}
	return b.String()
}
