package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// maxInput bounds one file, or stdin: more than the daemon takes in one call is
// not read on.
const maxInput = control.MaxApply

// readInput reads a file, or stdin for "-".
func (a *app) readInput(name string) ([]byte, error) {
	r := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	} else {
		name = "stdin"
	}
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(data) > maxInput {
		return nil, fault.New("BODY_TOO_LARGE", "%s is over %d MiB", name, maxInput>>20).With(fault.Hint("Give fewer documents at once."))
	}
	return data, nil
}

// stdins counts the names that are stdin.
func stdins(names ...string) int {
	n := 0
	for _, name := range names {
		if name == "-" {
			n++
		}
	}
	return n
}

// expand turns folders into their *.json files, by name; folders inside and
// hidden files are left alone.
func expand(names []string) ([]string, error) {
	var files []string
	for _, name := range names {
		if name == "-" {
			if slices.Contains(files, "-") {
				return nil, usage("stdin (-) is given twice")
			}
			files = append(files, name)
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, name)
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, err
		}
		before := len(files)
		for _, e := range entries {
			if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && strings.EqualFold(filepath.Ext(e.Name()), ".json") {
				files = append(files, filepath.Join(name, e.Name()))
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("no .json file in the folder %s", name)
		}
	}
	return files, nil
}

// readDocuments reads every document of the named files, folders and stdin. A
// text that is not JSON is a problem with its line and column, and does not
// keep the others from being read.
func (a *app) readDocuments(names []string) ([]control.ApplyDocument, []fault.Detail, error) {
	files, err := expand(names)
	if err != nil {
		return nil, nil, err
	}
	var docs []control.ApplyDocument
	var problems []fault.Detail
	total := 0
	for _, name := range files {
		data, err := a.readInput(name)
		if err != nil {
			return nil, nil, err
		}
		if total += len(data); total > 2*maxInput { // indentation does not count against the daemon's limit
			return nil, nil, fault.New("BODY_TOO_LARGE", "the files together are over %d MiB", 2*maxInput>>20).With(fault.Hint("Give fewer documents at once."))
		}
		found, problem := split(name, data)
		if docs = append(docs, found...); len(docs) > control.MaxDocuments {
			return nil, nil, fault.New("BODY_TOO_LARGE", "more than %d documents, which is the most of one call", control.MaxDocuments).
				With(fault.Hint("Give fewer documents at once."))
		}
		if problem != nil {
			problems = append(problems, *problem)
		}
	}
	return docs, problems, nil
}

// split takes a text apart: one document, an array of them, or several one
// after another. It stops soon after there are too many.
func split(name string, data []byte) ([]control.ApplyDocument, *fault.Detail) {
	var values []json.RawMessage
	skipped := len(data) - len(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	text := data[skipped:]
	several := false
	for rest := text; len(values) <= control.MaxDocuments; {
		if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) == 0 {
			break
		}
		var v json.RawMessage
		d := json.NewDecoder(bytes.NewReader(rest))
		if err := d.Decode(&v); err != nil || !utf8.Valid(v) {
			return nil, badText(name, data, rest)
		}
		rest = rest[d.InputOffset():]
		if v[0] != '[' {
			values = append(values, v)
			continue
		}
		several = true
		var elements []json.RawMessage
		if err := json.Unmarshal(v, &elements); err != nil {
			return nil, badText(name, data, rest)
		}
		values = append(values, elements...)
	}
	if len(values) == 0 {
		return nil, &fault.Detail{Field: name, Code: "BAD_JSON", Message: "there is no document in it"}
	}
	docs := make([]control.ApplyDocument, 0, len(values))
	for i, v := range values {
		source := name
		if several || len(values) > 1 {
			source = fmt.Sprintf("%s[%d]", name, i)
		}
		docs = append(docs, control.ApplyDocument{Source: source, Wrapper: v})
	}
	return docs, nil
}

// badText says where and why the rest of a text is not JSON.
func badText(name string, data, rest []byte) *fault.Detail {
	start := len(data) - len(rest)
	offset, message := len(data), "it ends in the middle of a document"
	_, err := recipe.Decode(rest, recipe.DecodeLimits{})
	var bad *recipe.DecodeError
	if errors.As(err, &bad) {
		offset, message = start+int(bad.Offset), bad.Message
	}
	return &fault.Detail{Field: at(name, data, offset), Code: "BAD_JSON", Message: message}
}

// at is NAME:LINE:COLUMN of a byte, as editors and compilers write it. Both
// count from one, columns in characters.
func at(name string, data []byte, offset int) string {
	before := data[:min(max(offset, 0), len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	start := bytes.LastIndexByte(before, '\n') + 1
	if start == 0 {
		before = bytes.TrimPrefix(before, []byte("\xef\xbb\xbf"))
	}
	return fmt.Sprintf("%s:%d:%d", name, line, utf8.RuneCount(before[start:])+1)
}

// decodeText reads one JSON value of any kind, or says where it is broken.
func decodeText(name string, data []byte) (recipe.Value, error) {
	v, err := recipe.Decode(data, recipe.DecodeLimits{})
	if err == nil {
		return v, nil
	}
	var bad *recipe.DecodeError
	if !errors.As(err, &bad) {
		return nil, err
	}
	place := at(name, data, int(bad.Offset))
	return nil, fault.New("BAD_JSON", "%s: %s", place, bad.Message).
		With(fault.Field(place), fault.Hint("Give one JSON value."))
}
