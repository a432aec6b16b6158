package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// arguments are the members of one tool call, each still the bytes that came
// over the wire: a number that a decoder rounded is an id of something else.
type arguments struct {
	tool    *metaTool
	members map[string]json.RawMessage
}

// parseArguments reads the arguments object of a call. Absent and null read as
// {}. It refuses names that the tool does not have, with the ones it has.
func parseArguments(tool *metaTool, raw json.RawMessage) (*arguments, error) {
	a := &arguments{tool: tool, members: map[string]json.RawMessage{}}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return a, nil
	}
	if raw[0] != '{' {
		return nil, badArgument("arguments", "arguments of %s must be an object, not %s", tool.name, kindOf(raw)).
			With(fault.Hint("Send one JSON object. %s", tool.known()))
	}
	if err := a.read(raw); err != nil {
		return nil, err
	}
	return a, a.canonical()
}

// read splits an object into its members. One that is given twice is refused:
// the last of them may not be the one that was meant.
func (a *arguments) read(raw json.RawMessage) error {
	if err := checkText("arguments", raw); err != nil {
		return err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		key := name.String() // before the next read, which reuses its bytes
		var value jsontext.Value
		if value, err = dec.ReadValue(); err != nil {
			break
		}
		if _, twice := a.members[key]; twice {
			return badArgument(fault.Shorten(key, 60), "%s is given twice to %s", fault.Shorten(key, 60), a.tool.name).
				With(fault.Hint("Send each argument once. %s", a.tool.known()))
		}
		a.members[key] = json.RawMessage(bytes.Clone(value))
	}
	if err != nil {
		return badArgument("arguments", "arguments of %s are not JSON", a.tool.name).With(fault.Cause(err))
	}
	return nil
}

// canonical renames the other spellings and refuses unknown names. An explicit
// null is the same as leaving the argument out, which is what clients that
// fill in every optional argument mean by it.
func (a *arguments) canonical() error {
	var unknown []string
	for name, value := range a.members {
		if string(value) == "null" {
			delete(a.members, name)
		}
		if !slices.Contains(a.tool.args, name) && otherSpelling[name] == "" {
			unknown = append(unknown, name)
		}
	}
	for name, value := range a.members {
		other := otherSpelling[name]
		if slices.Contains(a.tool.args, name) || other == "" {
			continue
		}
		if !slices.Contains(a.tool.args, other) {
			unknown = append(unknown, name)
			continue
		}
		if _, twice := a.members[other]; twice {
			return badArgument(name, "%s and %s are the same argument; send one of them", name, other)
		}
		delete(a.members, name)
		a.members[other] = value
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return a.unknown(unknown)
}

// unknown refuses names that the tool does not have and says what was meant,
// as far as that can be told.
func (a *arguments) unknown(names []string) error {
	err := badArgument(fault.Shorten(names[0], 60), "%s has no argument %s", a.tool.name, strings.Join(quoted(names), ", ")).
		With(fault.Hint("%s", a.tool.known()))
	has := func(name string) bool { return slices.Contains(a.tool.args, name) && a.members[name] == nil }
	switch {
	case has("wrapper") && (slices.ContainsFunc(names, isDocumentMember) || !slices.Contains(a.tool.args, "args")):
		return err.With(fault.Hint(`Put the whole document inside wrapper: {"wrapper":{"schemaVersion":1,...}}.`))
	case has("id"):
		if i := slices.IndexFunc(names, isCalledID); i >= 0 {
			return badArgument(names[i], "%s needs id (not %s)", a.tool.name, names[i]).
				With(fault.Hint("%s wrap_list shows the ids.", a.tool.known()))
		}
	}
	if slices.Contains(a.tool.args, "args") {
		// The usual slip: the wrapper's own arguments beside id.
		err.With(fault.Hint("The wrapper's own arguments go inside args: {\"id\":\"...\",\"args\":{%q:...}}. %s", fault.Shorten(names[0], 60), a.tool.known()))
	}
	return err
}

// isDocumentMember reports whether name is one that only a wrapper document
// has: name and description may be arguments of any wrapper.
func isDocumentMember(name string) bool {
	return slices.Contains([]string{"schemaVersion", "request", "inputSchema", "response", "exposeAsTool"}, name)
}

// isCalledID reports whether name is what a caller may take for id.
func isCalledID(name string) bool {
	return slices.Contains([]string{"name", "wrapper", "wrapper_id", "wrapperId", "wrapper_name", "wrapperName", "tool", "tool_name", "toolName"}, name)
}

// otherSpelling maps the spellings that the bridge's routes use to those of
// the tools and back; either is accepted.
var otherSpelling = map[string]string{
	"maxPages":  "max_pages",
	"max_pages": "maxPages",
	"maxItems":  "max_items",
	"max_items": "maxItems",
	"maxFields": "max_fields",
	"dry_run":   "dryRun",
}

// text returns a string member; empty when it is absent.
func (a *arguments) text(name string) (string, error) {
	raw, ok := a.members[name]
	if !ok {
		return "", nil
	}
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", a.wrongType(name, "a string")
	}
	return s, nil
}

// required returns a string member that must be there and not be empty.
func (a *arguments) required(name string) (string, error) {
	s, err := a.text(name)
	if err == nil && s == "" {
		err = badArgument(name, "%s needs %s", a.tool.name, name).With(fault.Hint("%s", a.tool.known()))
	}
	return s, err
}

// list returns the elements of an array of strings; nil when it is absent or
// empty, which is how some models leave out an optional list.
func (a *arguments) list(name string) ([]string, error) {
	raw, ok := a.members[name]
	if !ok {
		return nil, nil
	}
	var elements []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &elements) != nil {
		err := a.wrongType(name, "an array of strings")
		if raw[0] == '"' {
			err.With(fault.Hint(`Send %s as a JSON array: ["A","B"].`, name))
		}
		return nil, err
	}
	var out []string
	for i, e := range elements {
		var s string
		if e[0] != '"' || json.Unmarshal(e, &s) != nil {
			return nil, badArgument(name, "%s[%d] must be a string, not %s", name, i, kindOf(e)).With(fault.Hint("%s", a.tool.known()))
		}
		out = append(out, s)
	}
	return out, nil
}

// flag returns a boolean member; nil when it is absent.
func (a *arguments) flag(name string) (*bool, error) {
	switch raw, ok := a.members[name]; {
	case !ok:
		return nil, nil
	case string(raw) == "true", string(raw) == "false":
		b := string(raw) == "true"
		return &b, nil
	}
	return nil, a.wrongType(name, "true or false")
}

// whole returns a whole number; nil when it is absent. 5.0 and 1e1 are whole:
// some languages write numbers no other way. Ranges are judged by the bridge.
func (a *arguments) whole(name string) (*int, error) {
	raw, ok := a.members[name]
	if !ok {
		return nil, nil
	}
	// Long literals are refused unread: 1e999999999 would fill the memory.
	if c := raw[0]; c == '-' || c >= '0' && c <= '9' {
		var n json.Number
		if len(raw) <= 20 && !hugeExponent(string(raw)) && json.Unmarshal(raw, &n) == nil {
			if r, ok := new(big.Rat).SetString(string(raw)); ok && r.IsInt() && r.Num().IsInt64() {
				if i := r.Num().Int64(); i >= -1<<31 && i < 1<<31 {
					n := int(i)
					return &n, nil
				}
			}
		}
	}
	return nil, a.wrongType(name, "a whole number")
}

func hugeExponent(s string) bool {
	_, e, ok := strings.Cut(strings.ToLower(s), "e")
	return ok && len(strings.TrimLeft(e, "+-0")) > 2
}

// object returns a member that must be an object, as it came; nil when it is
// absent. A string that holds an object is refused with a hint: guessing would
// hide the client's mistake until the day it sends a real string.
func (a *arguments) object(name string) (json.RawMessage, error) {
	raw, ok := a.members[name]
	if !ok {
		return nil, nil
	}
	if raw[0] == '{' {
		return raw, nil
	}
	err := a.wrongType(name, "an object")
	if raw[0] == '"' {
		err.With(fault.Hint("Send %s as a JSON object, not as a string that holds one.", name))
	}
	return nil, err
}

func (a *arguments) wrongType(name, want string) *fault.Error {
	e := badArgument(name, "%s must be %s, not %s", name, want, kindOf(a.members[name]))
	return e.With(fault.Hint("%s", a.tool.known()))
}

func badArgument(field, format string, args ...any) *fault.Error {
	return fault.New("BAD_REQUEST", format, args...).With(fault.Field(field), fault.Hint("Fix the named argument."))
}

// kindOf names a JSON value for a message; numbers are shown, because 5.5 and
// 1e400 are both numbers and only one look explains the refusal.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return string(raw)
	case 'n':
		return "null"
	}
	return fault.Shorten(string(raw), 24)
}

func quoted(names []string) []string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", fault.Shorten(n, 60))
	}
	return q
}

// checkText refuses text that no JSON text can hold: half of a surrogate pair,
// or bytes that are not UTF-8. The daemon would see a call that is not JSON,
// and its answer could name no argument. root is where raw is.
func checkText(root string, raw json.RawMessage) error {
	if utf8.Valid(raw) && !bytes.Contains(raw, []byte(`\u`)) {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	var err error
	for err == nil {
		_, err = dec.ReadToken()
	}
	var se *jsontext.SyntacticError
	if !errors.As(err, &se) || !strings.Contains(se.Err.Error(), "surrogate") && !strings.Contains(se.Err.Error(), "UTF-8") {
		return nil
	}
	field := root
	inArgs := root != "arguments"
	for i, name := range slices.Collect(se.JSONPointer.Tokens()) {
		if i == 0 && root == "arguments" {
			field, inArgs = name, name == "args"
			continue
		}
		field += step(name)
	}
	what := "holds half of a surrogate pair, which is no character"
	if strings.Contains(se.Err.Error(), "UTF-8") {
		what = "holds bytes that are not UTF-8"
	}
	code := fault.Code("BAD_REQUEST")
	if inArgs {
		code = "ARGS_INVALID"
	}
	return fault.OneProblem(code, "TYPE", fault.Shorten(field, 200), "%s", what).
		With(fault.Hint(`Send whole characters: as they are, or \uD83D\uDE00 for one beyond U+FFFF.`))
}

// step is a member or an element in the path of a field.
func step(name string) string {
	if strings.Trim(name, "0123456789") == "" && name != "" {
		return "[" + name + "]"
	}
	for _, r := range name {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return "['" + name + "']"
		}
	}
	return "." + name
}
