package executor_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/approval"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// gated makes an executor whose person is allow, and whose API answers with
// these statuses in turn.
func gated(allow func(context.Context, approval.Ask) error, statuses ...int) (*executor.Executor, *int) {
	sent := 0
	return executor.New(executor.Config{
		Send: func(_ context.Context, r *outbound.Request) (*outbound.Response, error) {
			status := statuses[min(sent, len(statuses)-1)]
			sent++
			return &outbound.Response{Status: status, Header: http.Header{}, Body: []byte(`{"id":1}`), URL: r.URL}, nil
		},
		Check: func(u *url.URL) error {
			if u.Hostname() == "refused.example.com" {
				return fault.New("POLICY_URL", "refused")
			}
			return nil
		},
		Now: time.Now, Allow: allow,
	}), &sent
}

// What a person is asked is the exact request, once for a call however often it
// is tried; a read, a dry run and a call that is refused anyway ask nobody.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []approval.Ask
		e, sent := gated(func(_ context.Context, a approval.Ask) error { asked = append(asked, a); return nil }, 503, 200)
		w := parse(t, `{"schemaVersion":1,"id":"n.put","name":"Note","request":{"method":"PUT","url":"https://api.example.com/n/{{id}}?v={{id}}","headers":{"X-Trace":"t"},"bodyType":"text","body":"note {{id}}"},
		 "inputSchema":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}`)
		out, err := e.Run(t.Context(), w, executor.Options{Args: []byte(`{"id":7}`)})
		if err != nil || out.Retries != 1 || *sent != 2 {
			t.Fatalf("%v, %d sent", err, *sent)
		}
		call, _ := w.Build([]byte(`{"id":7}`))
		want := []approval.Ask{{
			Wrapper: "n.put", Name: "Note", Doc: w.Digest(), Call: call.Digest(), Pages: 1,
			Method: "PUT", URL: "https://api.example.com/n/7?v=7", Host: "api.example.com",
			Headers: []string{"X-Trace: t", "Accept: application/json", "Content-Type: text/plain; charset=utf-8"}, Body: "note 7", BodyType: "text",
		}}
		if d := cmp.Diff(want, asked); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		for name, doc := range map[string]string{"a read": doc("GET"), "refused": `{"schemaVersion":1,"id":"r","request":{"method":"POST","url":"https://refused.example.com/"}}`} {
			_, _ = e.Run(t.Context(), parse(t, doc), executor.Options{})
			if _, err := e.Preview(parse(t, doc), nil, 0); err != nil {
				t.Error(err)
			}
			if len(asked) != 1 {
				t.Errorf("%s asked", name)
			}
		}
	})
}

// A person's no, a person who does not answer, and a caller who leaves before
// they do: nothing is sent, and nobody is told that something may have been.
func TestNotAllowed(t *testing.T) {
	required := fault.New("APPROVAL_REQUIRED", "ask")
	for _, c := range []struct {
		name  string
		allow func(ctx context.Context, cancel func()) error
		want  *fault.Error
	}{
		{"required", func(context.Context, func()) error { return required }, required},
		{"required, at the end of the deadline", func(ctx context.Context, _ func()) error { time.Sleep(time.Minute); return required }, required},
		{"gone", func(ctx context.Context, cancel func()) error { cancel(); return ctx.Err() }, fault.From(context.Canceled)},
		{"over", func(ctx context.Context, _ func()) error { <-ctx.Done(); return ctx.Err() }, fault.From(context.DeadlineExceeded)},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
			defer cancel()
			e, sent := gated(func(ctx context.Context, _ approval.Ask) error { return c.allow(ctx, cancel) }, 200)
			_, err := e.Run(ctx, parse(t, doc("POST")), executor.Options{})
			var f *fault.Error
			if !errors.As(err, &f) || *sent != 0 || f.Code != c.want.Code || f.Hint != c.want.Hint || f.Retryable != c.want.Retryable {
				t.Errorf("%s: %d sent, %+v", c.name, *sent, f)
			}
		})
	}
}
