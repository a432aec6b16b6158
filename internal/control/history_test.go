//go:build unix

package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// The wire of versions and of lint, character by character; lists are never null.
func TestHistoryProtocol(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	check := func(method, target, body, want string) {
		t.Helper()
		resp, got := s.raw(t, message(method, target, body))
		if resp.StatusCode != 200 || got != want+"\n" {
			t.Errorf("%s %s: %d\n got %s\nwant %s", method, target, resp.StatusCode, got, want)
		}
	}
	check("GET", "/control/wrapper/history?id=a", "", `{"id":"a","saved":false,"until":"2026-12-31T08:00:00Z","versions":[`+
		`{"version":3,"time":"2026-12-01T08:00:00Z","author":"agent","action":"saved","current":false,"bytes":120,"sha256":"ab12"},`+
		`{"version":4,"action":"damaged","current":false,"bytes":0,"problem":"its checksum does not match"}]}`)
	check("GET", "/control/wrapper/removed", "", `{"removed":[{"id":"old","time":"2026-12-01T08:00:00Z","until":"2026-12-31T08:00:00Z"}]}`)
	check("GET", "/control/wrapper/version?id=a&version=18446744073709551615", "",
		`{"version":18446744073709551615,"author":"human","action":"saved","current":true,"bytes":2,"wrapper":`+theDocument+`}`)
	check("POST", "/control/wrapper/rollback", `{"id":"a","version":3,"dryRun":true}`,
		`{"ok":true,"dryRun":true,"id":"a","version":3,"action":"created","after":`+theDocument+`,"exposed":true,"tool":"orders","revision":8}`)
	check("GET", "/control/wrapper/lint?id=a", "", `{"wrappers":[{"id":"a","problem":"its record is damaged","warnings":[]},`+
		`{"id":"b","warnings":[{"field":"wrapper.description","code":"NO_DESCRIPTION","message":"m","hint":"h"}]}]}`)
	f.empty = true
	check("GET", "/control/wrapper/history?id=a", "", `{"id":"a","saved":false,"versions":[]}`)
	check("GET", "/control/wrapper/removed", "", `{"removed":[]}`)
	check("GET", "/control/wrapper/lint", "", `{"wrappers":[]}`)
	want := []string{
		`History "a"`, `Removed null`, `Version ["a",18446744073709551615]`, `Rollback {"id":"a","version":3,"dryRun":true}`, `Lint "a"`,
		`History "a"`, `Removed null`, `Lint ""`,
	}
	if diff := cmp.Diff(want, f.asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHistoryRefusals(t *testing.T) {
	s := serve(t, &fake{})
	digest := strings.Repeat("a", 64)
	for _, tc := range []struct{ method, target, body, field string }{
		{"GET", "/control/wrapper/history", "", "query.id"},
		{"GET", "/control/wrapper/version?version=1", "", "query.id"},
		{"GET", "/control/wrapper/version?id=a&version=-1", "", "query.version"},
		{"POST", "/control/wrapper/rollback", `{"version":1}`, "body.id"},
		{"POST", "/control/wrapper/rollback", `{"id":"a"}`, "body.version"},
		{"POST", "/control/wrapper/rollback", `{"id":"a","version":1.5}`, "body.version"},
		{"POST", "/control/apply", `{"documents":[{"source":"-","wrapper":{},"seen":"` + digest + `a"}]}`, "body.documents[0].seen"},
		{"POST", "/control/apply", `{"documents":[{"source":"-","wrapper":{},"seen":"` + digest[2:] + `"}]}`, "body.documents[0].seen"},
		{"POST", "/control/apply", `{"documents":[{"source":"-","wrapper":{},"seen":"x` + digest[1:] + `"}]}`, "body.documents[0].seen"},
	} {
		resp, body := s.raw(t, message(tc.method, tc.target, tc.body))
		if resp.StatusCode != 400 || !strings.Contains(body, `"`+tc.field+`"`) {
			t.Errorf("%s %s %s: %d %s", tc.method, tc.target, tc.body, resp.StatusCode, body)
		}
	}
	if resp, body := s.raw(t, message("POST", "/control/apply", `{"documents":[{"source":"-","wrapper":{},"seen":"`+digest+`"}]}`)); resp.StatusCode != 200 {
		t.Errorf("a digest: %d %s", resp.StatusCode, body)
	}
	if got := control.Digest([32]byte{0xab}); got != "ab"+strings.Repeat("0", 62) {
		t.Errorf("Digest: %s", got)
	}
}

// The client asks for what the server gives.
func TestHistoryClient(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	ctx := t.Context()
	h, err := c.History(ctx, "a b&c")
	if err != nil || len(h.Versions) != 2 || h.ID != "a b&c" {
		t.Errorf("%v, %v", h, err)
	}
	if r, err := c.Removed(ctx); err != nil || len(r.Removed) != 1 {
		t.Errorf("%v, %v", r, err)
	}
	if v, err := c.Version(ctx, "a", 7); err != nil || v.Version != 7 || string(v.Wrapper) != theDocument {
		t.Errorf("%v, %v", v, err)
	}
	if r, err := c.Rollback(ctx, &control.RollbackRequest{ID: "a", Version: 7}); err != nil || r.Version != 7 || r.DryRun {
		t.Errorf("%v, %v", r, err)
	}
	for _, id := range []string{"", "a"} {
		if r, err := c.Lint(ctx, id); err != nil || len(r.Wrappers) != 2 {
			t.Errorf("%v, %v", r, err)
		}
	}
}
