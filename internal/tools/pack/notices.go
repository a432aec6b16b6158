package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A module is one that is linked into a program.
type module struct {
	path, version string
	dir           string
	linked        map[string]bool // programs
	texts         map[string]bool // files with licences and notices
}

// listed is what `go list -deps -json` says of a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path string }
	}
}

// licenceFile matches the names under which a module keeps its terms.
var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying|copyright|notice|patents|third[-_]party)([-_.].*)?$`)

// notices is the text with the terms of every module that is linked into the
// programs of a target, the standard library first. A module without terms is an
// error: nobody may pass it on.
func notices(root string, t target) ([]byte, error) {
	modules := map[string]*module{}
	for _, program := range programs {
		if err := linked(root, t, program, modules); err != nil {
			return nil, err
		}
	}
	goroot, err := goCommand(root, t, "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	words := strings.Split(strings.TrimSpace(string(goroot)), "\n")
	if len(words) != 2 {
		return nil, fmt.Errorf("go env says %q", goroot)
	}
	std := &module{path: "the Go standard library", version: words[1], dir: words[0], linked: map[string]bool{}, texts: map[string]bool{}}
	for _, program := range programs {
		std.linked[program] = true
	}
	if err := std.search(std.dir); err != nil {
		return nil, err
	}
	list := []*module{std}
	for _, m := range modules {
		list = append(list, m)
	}
	slices.SortFunc(list[1:], func(a, b *module) int { return strings.Compare(a.path, b.path) })
	return render(t, list)
}

// linked adds the modules of a program.
func linked(root string, t target, program string, modules map[string]*module) error {
	cmd := goCommand(root, t, "list", "-deps", "-json=Dir,Standard,Module", "./cmd/"+program)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w\n%s", err, complaint.Bytes())
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("go list: %w", err)
		case p.Standard || p.Module == nil || p.Module.Main:
			continue
		}
		m := modules[p.Module.Path]
		if m == nil {
			m = &module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir, linked: map[string]bool{}, texts: map[string]bool{}}
			modules[m.path] = m
		}
		m.linked[program] = true
		// A package within a module may have terms of its own, such as code that came from elsewhere.
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			if err := m.search(dir); err != nil {
				return err
			}
			if dir == m.dir || len(dir) <= len(m.dir) {
				break
			}
		}
	}
}

// search notes the files with terms in one folder.
func (m *module) search(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && licenceFile.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
			m.texts[filepath.Join(dir, e.Name())] = true
		}
	}
	return nil
}

// render writes the list of modules and then each different text once.
func render(t target, list []*module) ([]byte, error) {
	type text struct {
		body []byte
		of   []string
	}
	var texts []*text
	byDigest := map[[32]byte]*text{}
	var b bytes.Buffer
	fmt.Fprintf(&b, "What is linked into the programs of hb-rest for %s, and under which terms.\n\n", t)
	for _, m := range list {
		if len(m.texts) == 0 {
			return nil, fmt.Errorf("%s %s has no file with its terms", m.path, m.version)
		}
		var in []string
		for _, p := range programs {
			if m.linked[p] {
				in = append(in, p)
			}
		}
		fmt.Fprintf(&b, "%s %s (%s)\n", m.path, m.version, strings.Join(in, ", "))
		for _, path := range sortedKeys(m.texts) {
			body, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			body = append(bytes.Trim(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), "\n"), '\n')
			rel, err := filepath.Rel(m.dir, path)
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256(body)
			if byDigest[sum] == nil {
				byDigest[sum] = &text{body: body}
				texts = append(texts, byDigest[sum])
			}
			byDigest[sum].of = append(byDigest[sum].of, m.path+", "+filepath.ToSlash(rel))
		}
	}
	for _, x := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s", strings.Repeat("-", 78), strings.Join(x.of, "\n"), x.body)
	}
	return b.Bytes(), nil
}

func sortedKeys(m map[string]bool) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
