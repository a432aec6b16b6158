package main

import (
	"bytes"
	"debug/buildinfo"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// The order of packages is that of Go's versions: what comes before a release
// sorts before it, which "~" means to dpkg and rpm.
func TestPackageVersion(t *testing.T) {
	for in, want := range map[string]string{
		"v1.2.3":                             "1.2.3",
		"v1.2.3+dirty":                       "1.2.3+dirty",
		"v1.2.3-rc.1":                        "1.2.3~rc.1",
		"v0.0.0-20261201015036-2985e2614df8": "0.0.0~20261201015036.2985e2614df8",
		"v1.2.4-0.20261201015036-2985e2614df8+dirty": "1.2.4~0.20261201015036.2985e2614df8+dirty",
		"v1.2.4-rc.1.0.20261201015036-2985e2614df8":  "1.2.4~rc.1.0.20261201015036.2985e2614df8",
		"(devel)": "0.0.0~devel",
		"":        "0.0.0~devel",
	} {
		if got := packageVersion(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestStamp(t *testing.T) {
	info := &buildinfo.BuildInfo{Main: debug.Module{Version: "v1.0.0"}, Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-12-01T02:03:04+01:00"}}}
	got, err := stampOf(info)
	if want := (stamp{"1.0.0", time.Date(2026, 12, 1, 1, 3, 4, 0, time.UTC)}); err != nil || got != want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	info.Settings[0].Value = "yesterday"
	if _, err := stampOf(info); err == nil {
		t.Error("a time that is none passes")
	}
	got, err = stampOf(&buildinfo.BuildInfo{})
	if want := (stamp{"0.0.0~devel", time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}); err != nil || got != want {
		t.Errorf("without a repository: %v, %v, want %v", got, err, want)
	}
}

func TestTargets(t *testing.T) {
	got, err := parseTargets("linux/arm64,windows/amd64")
	if err != nil || len(got) != 2 || got[0] != (target{"linux", "arm64"}) || got[1] != (target{"windows", "amd64"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "linux", "linux/386", "plan9/amd64", "linux/amd64,"} {
		if _, err := parseTargets(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

// Archives depend on nothing but what goes in, and keep the right to run.
func TestArchives(t *testing.T) {
	at := time.Date(2026, 12, 1, 1, 3, 4, 0, time.UTC)
	files := []file{{"a/b.txt", []byte("text\n"), 0o644}, {"hbrestd", []byte("program"), 0o755}}
	for _, to := range []target{{"linux", "amd64"}, {"windows", "amd64"}} {
		var last []byte
		for range 2 {
			out := t.TempDir()
			name, err := writeArchive(out, to, stamp{"1.0.0~rc.1", at}, files)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"linux": "hb-rest-1.0.0-rc.1-linux-amd64.tar.gz", "windows": "hb-rest-1.0.0-rc.1-windows-amd64.zip"}[to.os]
			if name != want {
				t.Errorf("name %q, want %q", name, want)
			}
			data, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			if last != nil && !bytes.Equal(data, last) {
				t.Errorf("%s: other bytes the second time", name)
			}
			last = data
		}
	}
}

func TestLicenceFile(t *testing.T) {
	for name, want := range map[string]bool{
		"LICENSE": true, "LICENCE.md": true, "LICENSE-SQLITE.md": true, "license.txt": true, "COPYING": true, "NOTICE": true, "PATENTS": true, "UNLICENSE": true, "THIRD_PARTY_NOTICES.md": true,
		"licenses.go": false, "README.md": false, "copyrighted": false, "relicense": false, "noticeboard.txt": false,
	} {
		if got := licenceFile.MatchString(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Every module that is linked comes with its terms; each text once.
func TestNotices(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := &module{path: "example.org/a", version: "v1.0.0", dir: filepath.Join(dir, "a"), linked: map[string]bool{"hbrestd": true}, texts: map[string]bool{write("a/LICENSE", "  Same\r\nterms\n"): true}}
	b := &module{path: "example.org/b", version: "v2.0.0", dir: filepath.Join(dir, "b"), linked: map[string]bool{"hb-rest": true, "hbrestd": true}, texts: map[string]bool{
		write("b/LICENSE", "  Same\nterms\n\n"): true, write("b/inner/NOTICE", "Other"): true,
	}}
	got, err := render(target{"linux", "amd64"}, []*module{a, b})
	line := strings.Repeat("-", 78)
	want := "What is linked into the programs of hb-rest for linux/amd64, and under which terms.\n\nexample.org/a v1.0.0 (hbrestd)\nexample.org/b v2.0.0 (hbrestd, hb-rest)\n" +
		"\n" + line + "\nexample.org/a, LICENSE\nexample.org/b, LICENSE\n\n  Same\nterms\n" +
		"\n" + line + "\nexample.org/b, inner/NOTICE\n\nOther\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	b.texts = nil
	if _, err := render(target{"linux", "amd64"}, []*module{a, b}); err == nil || !strings.Contains(err.Error(), "example.org/b v2.0.0 has no file with its terms") {
		t.Errorf("without terms: %v", err)
	}
}

// What nfpm.yaml names is what is laid out, and the maintainer is one and the same.
func TestConfig(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	config, err := os.ReadFile(filepath.Join(root, "packaging", "nfpm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(config), "\nmaintainer: "+maintainer+"\n") {
		t.Error("another maintainer")
	}
	stage := t.TempDir()
	if err := layOut(root, stage, stamp{"1.0.0", time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}, []byte("terms")); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(config)) {
		_, rest, ok := strings.Cut(line, "{ src: ")
		if !ok {
			continue
		}
		src, _, _ := strings.Cut(rest, ",")
		if src == "hbrestd" || src == "hb-rest" || src == "hbrestd-keyring" {
			continue // the compiler puts them there
		}
		if found, err := filepath.Glob(filepath.Join(stage, filepath.FromSlash(src))); err != nil || len(found) == 0 {
			t.Errorf("%s is not laid out: %v", src, err)
		}
	}
	err = filepath.WalkDir(stage, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(stage, path)
		if name := filepath.ToSlash(rel); err == nil && name != "completions/hbrestd.ps1" && !strings.Contains(string(config), "src: "+name+",") && !strings.Contains(string(config), "src: "+filepath.ToSlash(filepath.Dir(rel))+"/*") {
			t.Errorf("%s is not packed", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
