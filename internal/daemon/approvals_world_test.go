package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// questions waits until there are n questions with this many calls in all.
func (g *gate) questions(n, calls int) []control.Approval {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for after := uint64(0); ; {
		l, err := g.person.Approvals(ctx, after)
		if err != nil {
			g.t.Fatalf("%d questions of %d calls did not come up: %v", n, calls, err)
		}
		waiting := 0
		for _, q := range l.Approvals {
			waiting += q.Waiting
		}
		if len(l.Approvals) == n && waiting == calls {
			return l.Approvals
		}
		after = l.Revision
	}
}

// policy sets a policy, of a wrapper or of the daemon.
func (g *gate) policy(wrapper, policy string) *control.ApprovalPolicies {
	g.t.Helper()
	p, err := g.person.SetApprovalPolicy(context.Background(), &control.ApprovalPolicyChange{Wrapper: wrapper, Policy: policy})
	if err != nil {
		g.t.Fatalf("policy %s of %q: %v", policy, wrapper, err)
	}
	return p
}

// trail is what the audit trail says of approvals.
func (g *gate) trail() []string {
	g.t.Helper()
	page, err := g.person.Audit(context.Background(), 1000)
	if err != nil {
		g.t.Fatal(err)
	}
	var out []string
	for _, r := range page.Rows {
		if strings.HasPrefix(r.Action, "approval") {
			host, _, _ := strings.Cut(r.Host, ":")
			out = append(out, fmt.Sprintf("%s %s %s %s", r.Action, r.Author, r.Method, host))
		}
	}
	return out
}

// slowClock starts the daemon anew with a clock that a test moves.
func (g *gate) slowClock() (later func(time.Duration)) {
	var ahead atomic.Int64
	g.options.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	g.restart()
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

func runRequest(id, args string) *api.RunRequest {
	return &api.RunRequest{ID: id, Args: json.RawMessage(args)}
}

func testRequest(doc, args string) *api.TestRequest {
	return &api.TestRequest{Wrapper: json.RawMessage(doc), Args: json.RawMessage(args), DryRun: new(bool)}
}

// flipByte damages every copy of a text in a file.
func flipByte(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for from := 0; ; from++ {
		i := bytes.Index(data[from:], []byte(text))
		if i < 0 {
			break
		}
		from += i
		data[from+1] ^= 1
		found = true
	}
	if !found {
		t.Fatalf("no %q in the file", text)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
