package api_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// The duration stands beside a request, also as 0, and nowhere else; the
// characters of a text stay as they are.
func TestErrorJSON(t *testing.T) {
	req := &api.Request{Method: "GET", URL: "https://h.test/?a=1&b=2", Headers: json.RawMessage(`{}`)}
	for want, e := range map[string]api.Error{
		`{"ok":false,"code":"A","status":null,"field":null,"retryable":false,"hint":"","message":"<b> & c","details":[]}`:                                                                                   {Code: "A", Message: "<b> & c", Details: []api.Detail{}},
		`{"ok":false,"code":"A","status":null,"field":null,"retryable":false,"hint":"","message":"","details":[],"request":{"method":"GET","url":"https://h.test/?a=1&b=2","headers":{}},"durationMs":0}`:   {Code: "A", Details: []api.Detail{}, Request: req},
		`{"ok":false,"code":"A","status":null,"field":null,"retryable":false,"hint":"","message":"","details":[],"request":{"method":"GET","url":"https://h.test/?a=1&b=2","headers":{}},"durationMs":184}`: {Code: "A", Details: []api.Detail{}, Request: req, DurationMs: 184},
		`{"ok":false,"code":"A","status":null,"field":null,"retryable":false,"hint":"","message":"","details":[],"warnings":[{"code":"W","message":"w"}]}`:                                                  {Code: "A", Details: []api.Detail{}, Warnings: []api.Warning{{Code: "W", Message: "w"}}},
	} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil || b.String() != want+"\n" {
			t.Errorf("%v\n got %swant %s", err, b.String(), want)
		}
		var back api.Error
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.DurationMs != e.DurationMs || back.Message != e.Message {
			t.Errorf("%+v %v", back, err)
		}
	}
}
