//go:build unix

package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// The wire of a backup, character by character; a path that is not absolute, or
// anything else, asks nobody.
func TestBackupProtocol(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	resp, got := s.raw(t, message("POST", "/control/backup", `{"dir":"/mnt/b"}`))
	want := `{"ok":true,"dir":"/mnt/b","format":1,"version":"1.2.3","time":"2026-12-01T08:00:00Z","revision":7,"wrappers":2,"credentials":1,"key":"keyring","auditRows":3,"auditHead":"3:ab12","files":[]}` + "\n"
	if resp.StatusCode != 200 || got != want {
		t.Errorf("%d\n got %s\nwant %s", resp.StatusCode, got, want)
	}
	for body, field := range map[string]string{`{}`: "body.dir", `{"dir":"b"}`: "body.dir", `{"dir":"/b","files":[]}`: "body.files"} {
		resp, got := s.raw(t, message("POST", "/control/backup", body))
		if resp.StatusCode != 400 || !strings.Contains(got, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, got)
		}
	}
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	r, err := c.Backup(t.Context(), &control.BackupRequest{Dir: "/mnt/c"})
	if err != nil || r.Dir != "/mnt/c" || r.AuditHead != "3:ab12" || r.Revision != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff([]string{`Backup {"dir":"/mnt/b"}`, `Backup {"dir":"/mnt/c"}`}, f.asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
