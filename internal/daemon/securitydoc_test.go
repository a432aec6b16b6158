package daemon_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/security.md names is there, in the package it names.
func TestSecurityPageNamesTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		pkg := strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "hbrestd-")
		for _, m := range function.FindAllSubmatch(text, -1) {
			there[pkg+"."+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9]+\\.Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 80 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("there is no test %s", m[1])
		}
	}
}

// Every promise of its tables is held by a test.
func TestSecurityPagePromises(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	test := regexp.MustCompile("`[a-z0-9]+\\.Test\\w+`[^|]*\\|$")
	held, promises := false, 0
	for line := range strings.Lines(string(page)) {
		switch line = strings.TrimSpace(line); {
		case !strings.HasPrefix(line, "|"):
			held = false
		case strings.HasSuffix(line, "| Held by |"):
			held = true
		case held && !strings.HasPrefix(line, "| ---"):
			if promises++; !test.MatchString(line) {
				t.Errorf("no test holds %s", line)
			}
		}
	}
	if promises < 60 {
		t.Errorf("%d promises were found", promises)
	}
}

// Its links within the page lead somewhere.
func TestSecurityPageLinks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllSubmatch(page, -1) {
		titles[strings.ReplaceAll(strings.ToLower(string(m[1])), " ", "-")] = true
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllSubmatch(page, -1) {
		if !titles[string(m[1])] {
			t.Errorf("no heading #%s", m[1])
		}
	}
}
