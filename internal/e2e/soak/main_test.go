package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What go test -json prints, as its documentation describes it (go doc test2json).
func TestRead(t *testing.T) {
	for name, at := range map[string]struct{ in, verdict, measured string }{
		"pass":    {`{"Action":"output","Test":"TestX","Output":"    x_test.go:1: measured: 3 rounds\n"}` + "\n" + `{"Action":"pass","Test":"TestX"}` + "\n" + `{"Action":"pass"}`, "pass", "3 rounds"},
		"fail":    {`{"Action":"fail","Test":"TestX"}`, "fail", ""},
		"one of":  {`{"Action":"pass","Test":"TestX"}` + "\n" + `{"Action":"fail","Test":"TestY"}`, "fail", ""},
		"skip":    {`{"Action":"skip","Test":"TestX"}`, "skipped", ""},
		"sub":     {`{"Action":"pass","Test":"TestX/a"}`, "did not run", ""},
		"none":    {`{"Action":"pass"}`, "did not run", ""},
		"timeout": {`{"Action":"output","Output":"panic: test timed out after 1s\n"}` + "\n" + `{"Action":"fail","Test":"TestX"}`, "too long", ""},
		"build":   {"x.go:1: not Go\n" + `{"Action":"fail"}`, "did not run", ""},
	} {
		got := read(strings.NewReader(at.in))
		if got.verdict != at.verdict || strings.Join(got.measured, "|") != at.measured {
			t.Errorf("%s: %q, %q", name, got.verdict, got.measured)
		}
	}
}

// Each run names tests that exist: a renamed one would not be missed otherwise.
func TestRunsExist(t *testing.T) {
	for _, r := range all() {
		text := new(strings.Builder)
		dir := "../../../" + r.pack
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), "_test.go") {
				b, err := os.ReadFile(dir + "/" + e.Name())
				if err != nil {
					t.Fatal(err)
				}
				text.Write(b)
			}
		}
		for _, name := range strings.Split(r.test, "|") {
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(text.String()) {
				t.Errorf("%s: there is no %s in %s", r.name, name, r.pack)
			}
		}
		if r.limit <= 0 {
			t.Errorf("%s has no limit", r.name)
		}
	}
}
