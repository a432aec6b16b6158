// Package golden reads and checks golden files: txtar archives in a package's
// testdata, one case in each file. It is for tests only. Start with [Run].
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite golden files with what the code says now")

// A Case is one archive: the comment says what it shows, the sections hold
// inputs and expected outputs.
type Case struct {
	Name    string
	Comment string
	path    string
	archive *txtar.Archive
	changed bool
	t       *testing.T
	checked map[string]bool
}

// Run calls check for every file that matches pattern, each in a subtest named
// like the file without its ending. No match is a failure. A section in
// outputs that exists in the file and is not checked with Want fails the case;
// so does a section that is neither in inputs nor in outputs.
func Run(t *testing.T, pattern string, inputs, outputs []string, check func(t *testing.T, c *Case)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no golden file matches %s", pattern)
	}
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), filepath.Ext(p))
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(data)
			c := &Case{Name: name, Comment: string(a.Comment), path: p, archive: a, t: t, checked: map[string]bool{}}
			known := map[string]bool{}
			for _, s := range append(append([]string{}, inputs...), outputs...) {
				known[s] = true
			}
			for _, f := range a.Files {
				if !known[f.Name] {
					t.Errorf("%s: unknown section %q", p, f.Name)
				}
			}
			check(t, c)
			for _, s := range outputs {
				if c.Has(s) && !c.checked[s] {
					t.Errorf("%s: section %q was not checked", p, s)
				}
			}
			if c.changed && !t.Failed() {
				if err := os.WriteFile(p, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Has reports whether the case has a section.
func (c *Case) Has(section string) bool {
	for _, f := range c.archive.Files {
		if f.Name == section {
			return true
		}
	}
	return false
}

// Input returns a section without its final newline; a missing one is empty.
func (c *Case) Input(section string) []byte {
	for _, f := range c.archive.Files {
		if f.Name == section {
			return bytes.TrimSuffix(f.Data, []byte("\n"))
		}
	}
	return nil
}

// Want compares got with a section, final newlines aside. With -update it
// rewrites the section instead, adding it when it is missing. Without -update
// a missing section is an error, so that no output goes unchecked.
func (c *Case) Want(section, got string) {
	c.t.Helper()
	c.checked[section] = true
	got = strings.TrimSuffix(got, "\n") + "\n"
	for i, f := range c.archive.Files {
		if f.Name != section {
			continue
		}
		if string(f.Data) == got {
			return
		}
		if *update {
			c.archive.Files[i].Data = []byte(got)
			c.changed = true
			return
		}
		c.t.Errorf("%s: section %s differs (-want +got):\n%s", c.path, section, cmp.Diff(string(f.Data), got))
		return
	}
	if *update {
		c.archive.Files = append(c.archive.Files, txtar.File{Name: section, Data: []byte(got)})
		c.changed = true
		return
	}
	c.t.Errorf("%s: no section %s; got:\n%s", c.path, section, got)
}

// File compares got with a whole generated file, or rewrites it with -update.
func File(t *testing.T, path, got string) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err == nil && string(want) == got {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s is out of date; run the test with -update (-want +got):\n%s", path, cmp.Diff(string(want), got))
}
