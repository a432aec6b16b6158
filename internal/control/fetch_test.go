//go:build unix

package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// The wire of what an import needs, character by character.
func TestImportProtocol(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	check := func(method, target, body, want string) {
		t.Helper()
		resp, got := s.raw(t, message(method, target, body))
		if resp.StatusCode != 200 || got != want+"\n" {
			t.Errorf("%s %s: %d\n got %s\nwant %s", method, target, resp.StatusCode, got, want)
		}
	}
	check("POST", "/control/fetch", `{"url":"https://a.example/x"}`, `{"ok":true,"body":"b3BlbmFwaTogMy4wLjAK"}`)
	check("GET", "/control/origins", "", `{"origins":[{"id":"a","kind":"openapi","source":"/home/ada/shop.yaml","title":"Shop","operation":"GET /a","sha256":"ab","edited":true}]}`)
	f.empty = true
	check("GET", "/control/origins", "", `{"origins":[]}`)
	if diff := cmp.Diff([]string{`Fetch {"url":"https://a.example/x"}`, `Origins null`, `Origins null`}, f.asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	if r, err := c.Fetch(t.Context(), &control.FetchRequest{URL: "https://a.example/"}); err != nil || string(r.Body) != "openapi: 3.0.0\n" {
		t.Errorf("%v %v", r, err)
	}
}

func TestImportRefusals(t *testing.T) {
	s := serve(t, &fake{})
	for _, tc := range []struct{ target, body, field string }{
		{"/control/fetch", `{}`, "body.url"},
		{"/control/apply", `{"documents":[{"source":"-","wrapper":{},"origin":{"operation":"GET /"}}]}`, "body.documents[0].origin"},
		{"/control/apply", `{"documents":[{"source":"-","wrapper":{},"origin":{"kind":"har"}}]}`, "body.documents[0].origin"},
		{"/control/apply", `{"documents":[{"source":"-","wrapper":{},"origin":{"kind":"har","operation":"GET /"}},{"source":"-","wrapper":{}}]}`, "body.documents[1].origin"},
		{"/control/apply", `{"documents":[{"source":"-","wrapper":{}},{"source":"-","wrapper":{},"origin":{"kind":"har","operation":"GET /"}}]}`, "body.documents[1].origin"},
		{"/control/apply", `{"documents":[{"source":"-","wrapper":{},"seen":"` + strings.Repeat("a", 64) + `","origin":{"kind":"har","operation":"GET /"}}]}`, "body.documents[0].origin"},
	} {
		resp, got := s.raw(t, message("POST", tc.target, tc.body))
		if resp.StatusCode == 200 || !strings.Contains(got, `"field":"`+tc.field+`"`) {
			t.Errorf("%s %s: %d %s", tc.target, tc.body, resp.StatusCode, got)
		}
	}
}
