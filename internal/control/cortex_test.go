//go:build unix

package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// The wire of the index, character by character; lists are never null.
func TestCortexProtocol(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	check := func(method, target, body, want string) {
		t.Helper()
		resp, got := s.raw(t, message(method, target, body))
		if resp.StatusCode != 200 || got != want+"\n" {
			t.Errorf("%s %s: %d\n got %s\nwant %s", method, target, resp.StatusCode, got, want)
		}
	}
	check("POST", "/control/cortex/search", `{"query":"wind","wrapper":"city.weather","since":"7d","limit":50}`,
		`{"ok":true,"documents":[{"wrapper":"city.weather","key":"oslo","title":"Oslo & <b>","url":"https://api.example.com/w?a=1&b=2","readAt":"2026-11-30T08:00:00Z","ageSeconds":60,"snippet":"**wind**","score":1.5}]}`)
	check("GET", "/control/cortex/stats", "", `{"path":"/home/ada/cortex.db","documents":2,"chunks":3,"bytes":4096,"maxBytes":200000000,"oldest":"2026-11-29T08:00:00Z","newest":"2026-11-30T08:00:00Z",`+
		`"wrappers":[{"wrapper":"city.weather","documents":2,"newest":"2026-11-30T08:00:00Z","saved":true}],"recovered":"r"}`)
	check("POST", "/control/cortex/forget", `{"wrapper":"a","before":"30d"}`, `{"ok":true,"documents":2}`)
	check("POST", "/control/cortex/rebuild", `{}`, `{"ok":true,"documents":2}`)
	f.empty = true
	check("POST", "/control/cortex/search", `{"query":"wind"}`, `{"ok":true,"documents":[],"note":"the index is empty"}`)
	check("GET", "/control/cortex/stats", "", `{"path":"/home/ada/cortex.db","documents":0,"chunks":0,"bytes":0,"maxBytes":200000000,"wrappers":[]}`)
	want := []string{
		`Recall {"query":"wind","wrapper":"city.weather","since":"7d","limit":50}`, `CortexStats null`, `CortexForget {"wrapper":"a","before":"30d"}`, `CortexRebuild null`,
		`Recall {"query":"wind"}`, `CortexStats null`,
	}
	if diff := cmp.Diff(want, f.asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCortexRefusals(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	for _, tc := range []struct{ target, body, field string }{
		{"/control/cortex/search", `{}`, "body.query"},
		{"/control/cortex/search", `{"query":"a","limit":51}`, "body.limit"},
		{"/control/cortex/search", `{"query":"a","limit":-1}`, "body.limit"},
		{"/control/cortex/search", `{"query":"a","host":"h"}`, "body.host"},
		{"/control/cortex/forget", `{}`, "body"},
		{"/control/cortex/forget", `{"all":true,"wrapper":"a"}`, "body.all"},
		{"/control/cortex/forget", `{"all":true,"before":"1d"}`, "body.all"},
	} {
		resp, body := s.raw(t, message("POST", tc.target, tc.body))
		if resp.StatusCode != 400 || !strings.Contains(body, `"field":"`+tc.field+`"`) {
			t.Errorf("%s %s: %d %s", tc.target, tc.body, resp.StatusCode, body)
		}
	}
	if got := f.asked(); len(got) != 0 {
		t.Errorf("the backend was asked: %v", got)
	}
}

// The client asks for what the server gives.
func TestCortexClient(t *testing.T) {
	s := serve(t, &fake{})
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	ctx := t.Context()
	if r, err := c.Recall(ctx, &api.RecallRequest{Query: "wind"}); err != nil || len(r.Documents) != 1 || r.Documents[0].Title != "Oslo & <b>" {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := c.CortexStats(ctx); err != nil || len(r.Wrappers) != 1 {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := c.CortexForget(ctx, &control.CortexForget{All: true}); err != nil || r.Documents != 2 {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := c.CortexRebuild(ctx); err != nil || r.Documents != 2 {
		t.Errorf("%v, %v", r, err)
	}
}
