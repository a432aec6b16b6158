package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func written(dir string) *control.BackupResult {
	return &control.BackupResult{OK: true, Dir: dir, Backup: control.Backup{
		Format: 1, Version: "1.2.3", Time: "2026-12-01T08:00:00Z", Revision: 40, Wrappers: 12, Credentials: 2, Key: "keyring", AuditRows: 345, AuditHead: "345:ab12",
		Files: []control.BackupFile{{Name: "audit.db", Bytes: 262144}, {Name: "store.db", Bytes: 1000000}},
	}}
}

func TestBackupCommand(t *testing.T) {
	f := &fake{}
	w := newWorld(t, f)
	w.file("b/manifest.json", "{}") // what the daemon would have written
	f.backup = written(filepath.Join(w.home, "b"))
	got := w.hb("backup", filepath.Join(w.home, "x", "..", "b"))
	if got.Exit != 0 || got.Out != "HOME/b\t12\t2\t345\t345:ab12\n" || !strings.Contains(got.ErrOut, "the key of the credentials is not in it: it is master-") {
		t.Errorf("%+v", got)
	}
	if asked := f.asked(); len(asked) != 1 || asked[0] != `backup {"dir":"`+w.home+`/b"}` {
		t.Errorf("%q", asked)
	}
	w.width = 120
	f.backup.Key, f.backup.AuditProblem = "file", "row 7 was changed"
	got = w.hb("backup", filepath.Join(w.home, "b"))
	want := `backup       HOME/b
of           2026-12-01T08:00:00Z, by hbrestd 1.2.3
wrappers     12, revision 40
credentials  2
audit trail  345 rows, head 345:ab12
size         1.3 MB in 2 files
`
	if got.Exit != 0 || got.Out != want || !strings.Contains(got.ErrOut, "its passphrase is not") || !strings.Contains(got.ErrOut, "row 7 was changed") {
		t.Errorf("%+v", got)
	}
	if got := w.hb("backup", filepath.Join(w.home, "b"), "--json"); got.Exit != 0 || !strings.Contains(got.Out, `"auditHead": "345:ab12"`) || !strings.Contains(got.Out, `"sha256"`) {
		t.Errorf("%+v", got)
	}
}

func TestBackupCommandRefuses(t *testing.T) {
	f := &fake{}
	w := newWorld(t, f)
	dir := filepath.Join(w.home, "b")
	w.env["CLAUDECODE"] = "1"
	if got := w.hb("backup", dir); got.Exit != 4 || !strings.Contains(got.ErrOut, "CLAUDECODE is set") || len(f.asked()) != 0 {
		t.Errorf("an agent: %+v, asked %q", got, f.asked())
	}
	delete(w.env, "CLAUDECODE")
	f.backup = written(dir)
	if got := w.hb("backup", dir); got.Exit != 1 || !strings.Contains(got.ErrOut, "not the one that this command sees") {
		t.Errorf("another /tmp: %+v", got)
	}
	f.fail = fault.New("BAD_REQUEST", "%s is not empty: it has mine", dir)
	if got := w.hb("backup", dir); got.Exit != 6 || !strings.Contains(got.ErrOut, "HOME/b is not empty") {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"backup"}, {"backup", ""}, {"backup", "a", "b"}} {
		if got := w.hb(args...); got.Exit != 2 {
			t.Errorf("%q: %+v", args, got)
		}
	}
	// Neither a daemon nor anything that it would have.
	w = newWorld(t, nil)
	if got := w.hb("backup", filepath.Join(w.home, "b")); got.Exit != 3 || !strings.Contains(got.ErrOut, "no daemon") {
		t.Errorf("%+v", got)
	}
}
