package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// maxFile is the largest file that is read. Claude Code keeps its history in
// its file, which grows to megabytes; the rest have kilobytes.
const maxFile = 32 << 20

// maxYAML is the largest YAML file that is read: its parser takes four times as
// long for twice as many members of one map, some seconds here.
const maxYAML = 128 << 10

// A State is what a client's file says about us.
type State struct {
	Path     string // "" if the client has no such scope
	Detected bool   // the client seems to be in use
	Exists   bool   // its file is there
	Entry    *Entry // the one under our name, if it starts a program; nil: there is none
	Present  bool   // something is under our name
	Ours     bool   // and it starts hb-rest
	Off      bool   // and the client was told not to start it
	Old      []string
	current  any
}

// Inspect reads the client's file. A file that is not there is no error; one
// that cannot be read or understood is, with the code CLIENT_FILE_REFUSED or
// CLIENT_FILE_INVALID, and the State then says as much as is known.
func (c Client) Inspect(env Env, scope Scope) (State, error) {
	st := State{Path: c.Path(env, scope), Detected: c.Detected(env, scope)}
	if st.Path == "" {
		return st, c.noPlace(scope)
	}
	f, err := readFile(st.Path)
	if err != nil {
		return st, err
	}
	st.Exists = f.exists
	doc, err := c.decode(f.text)
	if err != nil {
		return st, c.invalid(st.Path, f.text, err)
	}
	return c.state(st, doc), nil
}

// state fills in what a decoded document says.
func (c Client) state(st State, doc map[string]any) State {
	entries := c.entries(doc)
	if v, ok := entries[Name]; ok {
		st.Present, st.current = true, v
		if e, ok := c.shape.read(v); ok {
			st.Entry = &e
		}
		st.Ours, st.Off = c.shape.ours(v), off(v)
	}
	for _, name := range sortedKeys(entries) {
		if c.shape.old(name, entries[name]) {
			st.Old = append(st.Old, name)
		}
	}
	return st
}

// entries are the servers of a decoded document, by name.
func (c Client) entries(doc map[string]any) map[string]any {
	if !c.shape.named {
		m, _ := doc[c.list].(map[string]any)
		return m
	}
	m := map[string]any{}
	list, _ := doc[c.list].([]any)
	for _, v := range list {
		e, _ := v.(map[string]any)
		if name, _ := e["name"].(string); name != "" {
			m[name] = e
		}
	}
	return m
}

func (c Client) noPlace(scope Scope) error {
	if scope == Project && c.project == nil {
		return refused("%s has no configuration in a project's folder", c.Title).With(fault.Hint("Leave out --scope, or use --scope user."))
	}
	return refused("the home folder is not known, so the file of %s is not either", c.Title).With(fault.Hint("Set HOME (on Windows USERPROFILE)."))
}

// decode gives a document's values. An empty document is an empty map.
func (c Client) decode(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	switch c.format {
	case formatTOML:
		return decodeTOML(text)
	case formatYAML:
		return decodeYAML(text)
	}
	if _, err := parseJSON(text); err != nil {
		return nil, err
	}
	return decodeJSON(text)
}

// decodeYAML is for reading only.
func decodeYAML(text []byte) (m map[string]any, err error) {
	if len(text) > maxYAML {
		return nil, &syntaxError{message: fmt.Sprintf("it is larger than %d bytes", maxYAML)}
	}
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, &syntaxError{message: "the YAML parser gave up"}
		}
	}()
	if err := yaml.Unmarshal(text, &m); err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			p := at.GetToken().Position
			return nil, &syntaxError{offset: offsetOf(text, p.Line, p.Column), message: at.GetMessage()}
		}
		return nil, &syntaxError{message: err.Error()}
	}
	return m, nil
}

// A syntaxError is a place in a text without its byte order mark, and what is
// wrong there.
type syntaxError struct {
	offset  int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// offsetOf is the offset of a line and a column, both from 1.
func offsetOf(text []byte, line, column int) int {
	at := 0
	for ; line > 1 && at < len(text); line-- {
		at = lineEnd(text, at)
	}
	return min(at+max(column-1, 0), len(text))
}

// invalid names the place of a syntaxError in a file.
func (c Client) invalid(path string, text []byte, err error) error {
	var s *syntaxError
	if !errors.As(err, &s) {
		return err
	}
	start := lineStart(text, s.offset)
	line := bytes.Count(text[:start], []byte("\n")) + 1
	column := utf8.RuneCount(text[start:s.offset]) + 1
	return fault.New("CLIENT_FILE_INVALID", "%s:%d:%d: %s", path, line, column, s.message).With(fault.Field(path))
}

func refused(format string, args ...any) *fault.Error {
	return fault.New("CLIENT_FILE_REFUSED", format, args...)
}

// A file is what was read of a client's file.
type file struct {
	path   string // as the client has it
	target string // where links lead
	exists bool
	bom    bool
	text   []byte // without the byte order mark
	raw    []byte
	info   fs.FileInfo
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// readFile reads a file and follows links. One that is not there is an empty
// file that does not exist.
func readFile(path string) (file, error) {
	f := file{path: path, target: path}
	link, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, refused("reading %s: %v", path, plain(err)).With(fault.Cause(err))
	}
	if link.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return f, refused("%s is a symbolic link that leads nowhere: %v", path, plain(err)).With(fault.Cause(err), fault.Hint("Make the file that it leads to, or remove the link."))
		}
		f.target = target
	}
	info, err := os.Stat(f.target)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait
		return f, refused("%s is not a regular file", path)
	}
	if err == nil && info.Size() > maxFile {
		return f, refused("%s has %d bytes, and at most %d are read", path, info.Size(), maxFile)
	}
	if err == nil {
		f.raw, err = readAll(f.target)
	}
	if err != nil {
		return f, refused("reading %s: %v", path, plain(err)).With(fault.Cause(err))
	}
	f.exists, f.info = true, info
	return f, f.split()
}

// split takes the byte order mark off the text.
func (f *file) split() error {
	f.text, f.bom = bytes.CutPrefix(f.raw, byteOrderMark)
	f.text = slices.Clip(f.text)
	if !utf8.Valid(f.text) || bytes.IndexByte(f.text, 0) >= 0 {
		return fault.New("CLIENT_FILE_INVALID", "%s is not UTF-8 text", f.path).With(fault.Field(f.path))
	}
	return nil
}

func readAll(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return data, err
}

// plain leaves out the path that a message names already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Matches reports whether the entry that st found is the wanted one. What a
// person has added to it does not matter.
func (c Client) Matches(st State, w Wanted) bool {
	current, ok := st.current.(map[string]any)
	return ok && st.Ours && len(c.updates(current, w)) == 0
}
