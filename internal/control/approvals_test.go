//go:build unix

package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// The wire of the questions, character by character. A list has no bodies.
func TestApprovalProtocol(t *testing.T) {
	s := serve(t, &fake{})
	const (
		head  = `{"id":"0123456789abcdef0123456789abcdef","state":"pending","policy":"always","wrapper":"orders","name":"Orders","version":"saved","document":"ab12","method":"POST","url":"https://api.example.com/orders?a=<b>",`
		whole = `"headers":["Accept: application/json"],"body":"{\"n\":12345678901234567890}",`
		tail  = `"bodyType":"text","credential":"orders-key","pages":1,"asked":"2026-12-01T08:00:00Z","expires":"2026-12-01T08:10:00Z","waiting":1}`
		set   = `{"policy":"first","origin":"stored","variable":"HB_WRAP_APPROVAL","wrappers":[{"wrapper":"orders","policy":"always","holds":"always","trusted":true}]}`
	)
	for _, tc := range []struct{ method, target, body, want string }{
		{"GET", "/control/approvals", "", `{"revision":3,"approvals":[` + head + tail + `]}`},
		{"GET", "/control/approvals?after=2", "", `{"revision":3,"approvals":[` + head + tail + `]}`},
		{"GET", "/control/approval?id=x", "", head + whole + tail},
		{"POST", "/control/approval/answer", `{"id":"x","answer":"trust"}`, strings.Replace(head, "pending", "allowed", 1) + whole + tail},
		{"GET", "/control/approval/policies", "", `{"policy":"off","origin":"default","variable":"HB_WRAP_APPROVAL","wrappers":[]}`},
		{"POST", "/control/approval/policy", `{"policy":"default"}`, set},
		{"POST", "/control/approval/policy", `{"wrapper":"orders","policy":"always"}`, set},
	} {
		resp, body := s.raw(t, message(tc.method, tc.target, tc.body))
		if resp.StatusCode != 200 || body != tc.want+"\n" {
			t.Errorf("%s %s: %d\n got %s\nwant %s", tc.method, tc.target, resp.StatusCode, body, tc.want)
		}
	}
}

// A question is answered by a POST with both members, and by nothing else.
func TestApprovalRefusals(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	for _, tc := range []struct {
		method, target, body string
		status               int
		field                string
	}{
		{"GET", "/control/approval", "", 400, "query.id"},
		{"GET", "/control/approvals?after=x", "", 400, "query.after"},
		{"GET", "/control/approval/answer?id=x&answer=allow", "", 405, ""},
		{"GET", "/control/approval/policy?policy=off", "", 405, ""},
		{"POST", "/control/approvals", `{}`, 405, ""},
		{"POST", "/control/approval?id=x", `{"answer":"allow"}`, 405, ""},
		{"POST", "/control/approval/policies", `{}`, 405, ""},
		{"POST", "/control/approval/answer", `{"answer":"allow"}`, 400, "body.id"},
		{"POST", "/control/approval/answer", `{"id":"x"}`, 400, "body.answer"},
		{"POST", "/control/approval/answer", `{"id":"x","answer":"Allow"}`, 400, "body.answer"},
		{"POST", "/control/approval/answer", `{"id":"x","answer":"allow","trust":true}`, 400, "body.trust"},
		{"POST", "/control/approval/policy", `{"wrapper":"x"}`, 400, "body.policy"},
		{"POST", "/control/approval/policy", `{"policy":"sometimes"}`, 400, "body.policy"},
	} {
		resp, body := s.raw(t, message(tc.method, tc.target, tc.body))
		if resp.StatusCode != tc.status || !strings.Contains(body, `"field":"`+tc.field+`"`) && tc.field != "" {
			t.Errorf("%s %s %s: %d %s", tc.method, tc.target, tc.body, resp.StatusCode, body)
		}
	}
	if asked := f.asked(); len(asked) > 0 {
		t.Errorf("the backend heard %q", asked)
	}
}

// The client brings all of it there and back.
func TestApprovalCallsArrive(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	ctx := context.Background()
	list, err := c.Approvals(ctx, 18446744073709551615)
	if err != nil {
		t.Fatal(err)
	}
	inList := theApproval()
	inList.Headers, inList.Body = nil, ""
	if d := cmp.Diff(&control.ApprovalList{Revision: 3, Approvals: []control.Approval{inList}}, list); d != "" {
		t.Error(d)
	}
	want := theApproval()
	if got, err := c.Approval(ctx, "a b&c"); err != nil || cmp.Diff(&want, got) != "" {
		t.Errorf("%v %s", err, cmp.Diff(&want, got))
	}
	want.State = "allowed"
	if got, err := c.Answer(ctx, &control.ApprovalAnswer{ID: "x", Answer: control.AnswerDeny}); err != nil || cmp.Diff(&want, got) != "" {
		t.Errorf("%v %s", err, cmp.Diff(&want, got))
	}
	if got, err := c.ApprovalPolicies(ctx); err != nil || got.Wrappers == nil {
		t.Errorf("%v %+v", err, got)
	}
	if got, err := c.SetApprovalPolicy(ctx, &control.ApprovalPolicyChange{Wrapper: "orders", Policy: "off"}); err != nil || len(got.Wrappers) != 1 {
		t.Errorf("%v %+v", err, got)
	}
	asked := []string{
		`Approvals 18446744073709551615`, `Approval "a b\u0026c"`, `Answer {"id":"x","answer":"deny"}`, `ApprovalPolicies null`,
		`SetApprovalPolicy {"wrapper":"orders","policy":"off"}`,
	}
	if d := cmp.Diff(asked, f.asked()); d != "" {
		t.Error(d)
	}
}
