package clientconfig_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// A machine is a home folder on disk, seen as a Linux one.
type machine struct {
	home string
	vars map[string]string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	return &machine{home: t.TempDir(), vars: map[string]string{}}
}

func (m *machine) env() clientconfig.Env {
	return clientconfig.Env{
		OS: "linux",
		Getenv: func(name string) (string, bool) {
			if name == "HOME" {
				return m.home, true
			}
			v, ok := m.vars[name]
			return v, ok
		},
		Dir:    filepath.Join(m.home, "project"),
		Exists: func(p string) bool { _, err := os.Stat(p); return err == nil },
		Glob:   func(string) []string { return nil },
	}
}

func write(t *testing.T, path string, data []byte, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// settings reads the lines "key: value" of a case's config section.
func settings(t *testing.T, c *golden.Case) map[string]string {
	t.Helper()
	m := map[string]string{}
	for line := range strings.Lines(string(c.Input("config"))) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("config line %q", line)
		}
		m[key] = value
	}
	return m
}

// wantedOf is the entry that a case asks for.
func wantedOf(s map[string]string) *clientconfig.Wanted {
	if s["do"] == "uninstall" {
		return nil
	}
	w := &clientconfig.Wanted{Idle: map[string]string{"HB_WRAP_HOME": "/state", "HB_WRAP_TOKEN_FILE": "/state/wrap/token"}}
	w.Command = "/usr/bin/hb-rest"
	if s["command"] != "" {
		w.Command = s["command"]
	}
	if name, value, ok := strings.Cut(s["env"], "="); ok {
		w.Env = map[string]string{name: value}
	}
	return w
}

const bom = "\xef\xbb\xbf"

// encode makes the bytes of a file from a section.
func encode(s map[string]string, text []byte) []byte {
	if s["newline"] == "none" {
		text = bytes.TrimRight(text, "\n")
	} else if len(text) > 0 {
		text = append(text, '\n')
	}
	if s["newline"] == "crlf" {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if s["bom"] == "yes" {
		text = append([]byte(bom), text...)
	}
	return text
}

// The cases are testdata/golden; its README says what the sections mean. What
// must hold in every case is checked here and not in the files.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/golden/*.txtar", []string{"config", "before"}, []string{"after", "report"}, func(t *testing.T, c *golden.Case) {
		s := settings(t, c)
		client, ok := clientconfig.Find(s["client"])
		if !ok {
			t.Fatalf("no client %q", s["client"])
		}
		m := newMachine(t)
		r := clientconfig.Request{
			Scope: clientconfig.User, Wanted: wantedOf(s),
			ReplaceOld: s["replace-old"] == "yes", Force: s["force"] == "yes",
		}
		path := client.Path(m.env(), r.Scope)
		mode := fs.FileMode(0o640)
		if s["mode"] != "" {
			n, err := strconv.ParseUint(s["mode"], 8, 32)
			if err != nil {
				t.Fatal(err)
			}
			mode = fs.FileMode(n)
		}
		var before []byte
		if c.Has("before") {
			before = encode(s, c.Input("before"))
			at := path
			if s["link"] == "yes" {
				at = filepath.Join(m.home, "dotfiles", "settings")
			}
			write(t, at, before, mode)
			if s["link"] == "yes" {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(at, path); err != nil {
					t.Fatal(err)
				}
			}
		}
		if s["backup"] == "yes" {
			write(t, clientconfig.BackupPath(path), []byte("older"), 0o600)
		}
		report, after := goldenCase(t, m, client, r, s, before, c.Has("before"))
		if after != nil {
			c.Want("after", checkText(t, s, after))
		}
		c.Want("report", strings.ReplaceAll(report, m.home, "HOME"))
	})
}

// checkText checks line ends and the byte order mark, and gives the text.
func checkText(t *testing.T, s map[string]string, data []byte) string {
	t.Helper()
	text, hasBOM := strings.CutPrefix(string(data), bom)
	if hasBOM != (s["bom"] == "yes") {
		t.Errorf("byte order mark: %t", hasBOM)
	}
	if s["newline"] == "crlf" {
		if strings.Count(text, "\n") != strings.Count(text, "\r\n") {
			t.Errorf("a line does not end with CRLF: %q", text)
		}
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	if s["newline"] != "none" && text != "" && !strings.HasSuffix(text, "\n") || s["newline"] == "none" && strings.HasSuffix(text, "\n") {
		t.Errorf("the end of the file changed: %q", text)
	}
	return text
}

func goldenCase(t *testing.T, m *machine, client clientconfig.Client, r clientconfig.Request, s map[string]string, before []byte, existed bool) (report string, after []byte) {
	t.Helper()
	path := client.Path(m.env(), r.Scope)
	ch, err := client.Plan(m.env(), r)
	if err == nil {
		var backup string
		backup, err = ch.Apply()
		checkBackup(t, backup, before, existed && ch.Changes() && ch.After != nil, s)
	}
	if err != nil {
		if data, readErr := os.ReadFile(path); existed && (readErr != nil || !bytes.Equal(data, before)) {
			t.Errorf("the refused file changed: %q, %v", data, readErr)
		}
		if !existed {
			if _, statErr := os.Stat(path); statErr == nil {
				t.Error("a file was made")
			}
		}
		return "error " + err.Error(), nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "action: %s\n", ch.Action)
	for _, n := range ch.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for _, n := range ch.Replace {
		fmt.Fprintf(&b, "replaced: %s\n", n)
	}
	for _, n := range ch.Old {
		fmt.Fprintf(&b, "old: %s\n", n)
	}
	if ch.After == nil {
		if _, err := os.Stat(path); err == nil {
			t.Error("the file is still there")
		}
		if existed {
			b.WriteString("file: removed\n")
		}
		return b.String(), nil
	}
	checkFile(t, path, s, existed)
	checkAgain(t, m, client, r)
	if !bytes.Equal(read(t, path), ch.After) {
		t.Errorf("the file holds %q", read(t, path))
	}
	if r.Wanted == nil || ch.Action != clientconfig.Add || len(ch.Replace) > 0 {
		return b.String(), ch.After
	}
	b.WriteString("and back: " + back(t, m, client, before, existed) + "\n")
	return b.String(), ch.After
}

func checkBackup(t *testing.T, backup string, before []byte, want bool, s map[string]string) {
	t.Helper()
	if (backup != "") != want {
		t.Errorf("the backup is %q, wanted one: %t", backup, want)
		return
	}
	if want && !bytes.Equal(read(t, backup), before) {
		t.Errorf("the backup holds %q", read(t, backup))
	}
	if want && s["link"] == "yes" && filepath.Base(filepath.Dir(backup)) != "dotfiles" {
		t.Errorf("the backup is not beside the file that the link leads to: %s", backup)
	}
}

func checkFile(t *testing.T, path string, s map[string]string, existed bool) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	want := fs.FileMode(0o600)
	if existed {
		want = 0o640
	}
	if info.Mode().Perm() != want {
		t.Errorf("mode %o, want %o", info.Mode().Perm(), want)
	}
	if link, err := os.Lstat(path); err != nil || (link.Mode()&fs.ModeSymlink != 0) != (s["link"] == "yes") {
		t.Errorf("the link: %v %v", link, err)
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(names) > 2 { // the file and its backup
		t.Errorf("files are left behind: %v %v", names, err)
	}
}

// checkAgain: the same request on the result changes nothing.
func checkAgain(t *testing.T, m *machine, client clientconfig.Client, r clientconfig.Request) {
	t.Helper()
	ch, err := client.Plan(m.env(), r)
	if err != nil || ch.Changes() || ch.Action != clientconfig.Nothing {
		t.Errorf("once more: %s %t %v", ch.Action, ch.Changes(), err)
	}
}

// back takes the entry out again and says what is left of the original.
func back(t *testing.T, m *machine, client clientconfig.Client, before []byte, existed bool) string {
	t.Helper()
	ch, err := client.Plan(m.env(), clientconfig.Request{Scope: clientconfig.User})
	if err == nil {
		_, err = ch.Apply()
	}
	if err != nil {
		t.Errorf("and back: %v", err)
		return "failed"
	}
	now, err := os.ReadFile(ch.Path)
	switch {
	case err != nil && existed:
		t.Error(err)
	case err != nil:
		return "no file"
	case bytes.Equal(now, before):
		return "the same bytes"
	}
	return fmt.Sprintf("%q", now)
}
