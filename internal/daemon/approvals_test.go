package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A gate is a daemon that asks before writes, an API behind it, and a person
// beside it. A call waits only for a moment.
type gate struct {
	*safe
	up *party
}

func newGate(t *testing.T, policy string) *gate {
	t.Helper()
	g := &gate{safe: &safe{}, up: newParty(t, nil)}
	g.world = newWorld(t, map[string]string{"HB_WRAP_ALLOW_PRIVATE": "1", "HB_WRAP_APPROVAL": policy}, outbound.Options{
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if strings.HasSuffix(host, ".test") {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	})
	g.options.Key = func(context.Context, bool) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }
	g.wait(50 * time.Millisecond)
	return g
}

// wait starts the daemon anew, with calls that wait so long for an answer.
func (g *gate) wait(d time.Duration) {
	g.options.ApprovalWait = d
	g.restart()
}

// order is the document of a wrapper that creates an order; more members of the
// document or of the request can be given.
func (g *gate) order(id, request, more string) string {
	return fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":"Create order","request":{"method":"POST","url":"%s/orders","body":{"customer":"{{c}}"}%s},
	 "inputSchema":{"type":"object","properties":{"c":{"type":"string","minLength":2}},"required":["c"]}%s}`, id, g.up.at("a.test"), request, more)
}

// plain is the document of a wrapper without arguments.
func (g *gate) plain(id, request, more string) string {
	return fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"url":"%s/x",%s}%s}`, id, id, g.up.at("a.test"), request, more)
}

var questionID = regexp.MustCompile("`hbrestd approval show ([0-9a-f]{32})`")

// waits is the id of the question of a call that was not allowed. Nothing has
// reached the API.
func (g *gate) waits(a *answer) string {
	g.t.Helper()
	m := questionID.FindStringSubmatch(a.Hint)
	if a.HTTP != 200 || a.OK || a.Code != "APPROVAL_REQUIRED" || !a.Retryable || m == nil {
		g.t.Fatalf("want a question, got %s", a.Raw)
	}
	if hits := g.up.take(); len(hits) > 0 {
		g.t.Fatalf("%d requests were sent for a question", len(hits))
	}
	return m[1]
}

// sent wants a call that worked, by this many requests.
func (g *gate) sent(a *answer, requests int) {
	g.t.Helper()
	if hits := g.up.take(); !a.OK || len(hits) != requests {
		g.t.Fatalf("%d requests, want %d: %s", len(hits), requests, a.Raw)
	}
}

func (g *gate) answer(id, word string) *control.Approval {
	g.t.Helper()
	q, err := g.person.Answer(context.Background(), &control.ApprovalAnswer{ID: id, Answer: word})
	if err != nil {
		g.t.Fatalf("%s %s: %v", word, id, err)
	}
	return q
}

func (g *gate) test(doc, args string) *answer {
	g.t.Helper()
	return g.post("/wrap/test", `{"wrapper":`+doc+`,"args":`+args+`,"dryRun":false}`)
}

func (g *gate) remove(id string) {
	g.t.Helper()
	if a := g.post("/wrap/wrappers", `{"action":"delete","id":"`+id+`"}`); !a.OK {
		g.t.Fatal(a.Raw)
	}
}

func (g *gate) update(doc string) {
	g.t.Helper()
	if a := g.change("update", doc); !a.OK {
		g.t.Fatal(a.Raw)
	}
}

// What an agent may try so that a write leaves without a person's word, or with
// one that was given for something else. Each is refused: the call comes back
// as a question (or worse), and nothing has reached the API.
func TestApprovalAttacks(t *testing.T) {
	t.Parallel()
	const one, other = `{"c":"c1"}`, `{"c":"c2"}`
	for _, c := range []struct {
		name, policy string
		attack       func(g *gate)
	}{
		{"confirm: true as an argument", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			for _, args := range []string{`{"c":"c1","confirm":true}`, `{"c":"c1","approved":true,"approval":"allow","confirmed":"yes"}`} {
				g.waits(g.run("o", args))
			}
		}},
		{"confirm: true beside the arguments", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			for _, member := range []string{`"confirm":true`, `"approve":true`, `"approval":"x"`, `"policy":"off"`, `"trust":true`, `"mutating":false`} {
				if a := g.post("/wrap/run", `{"id":"o","args":`+one+`,`+member+`}`); a.Code != "BAD_REQUEST" || len(g.up.take()) > 0 {
					g.t.Errorf("%s: %s", member, a.Raw)
				}
			}
		}},
		{"an approval inside the document", "always", func(g *gate) {
			for _, more := range []string{`,"approval":"off"`, `,"trusted":true`, `,"confirm":true`} {
				if a := g.change("create", g.order("o", "", more)); a.OK { // a member that nobody knows is dropped or refused
					g.waits(g.run("o", one))
					g.remove("o")
				}
			}
		}},
		{"a guessed id", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			id := g.waits(g.run("o", one))
			for _, guess := range []string{id[:31], id + "0", strings.ToUpper(id) + " ", strings.Repeat("0", 32), "", "*", "%", id[:31] + string('0'+(id[31]+1)%10)} {
				if guess == id {
					continue
				}
				_, err := g.person.Answer(context.Background(), &control.ApprovalAnswer{ID: guess, Answer: "allow"})
				if !fault.Is(err, "APPROVAL_NOT_FOUND") && !fault.Is(err, "BAD_REQUEST") {
					g.t.Errorf("%q: %v", guess, err)
				}
			}
			if again := g.waits(g.run("o", one)); again != id {
				g.t.Errorf("the question has another id now")
			}
		}},
		{"a call replayed", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.answer(g.waits(g.run("o", one)), "allow")
			g.sent(g.run("o", one), 1)
			g.waits(g.run("o", one))
			g.waits(g.test(g.order("o", "", ""), one))
		}},
		{"one argument changed", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.answer(g.waits(g.run("o", one)), "allow")
			for _, args := range []string{other, `{"c":"c1 "}`, `{"c":"C1"}`} {
				g.waits(g.run("o", args))
			}
			g.sent(g.run("o", one), 1)
		}},
		{"the wrapper edited after the answer, to make the same request", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.answer(g.waits(g.run("o", one)), "allow")
			g.update(g.order("o", "", `,"description":"harmless"`))
			g.waits(g.run("o", one))
		}},
		{"the wrapper edited after the answer for the whole of it", "first", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.answer(g.waits(g.run("o", one)), "allow")
			g.sent(g.run("o", other), 1)
			g.update(strings.Replace(g.order("o", "", ""), "/orders", "/admins", 1))
			g.waits(g.run("o", one))
		}},
		{"the wrapper edited while the person looks", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			id := g.waits(g.run("o", one))
			g.update(g.order("o", `,"headers":{"X-More":"1"}`, ""))
			if q := g.answer(id, "allow"); q.Version != "other" {
				g.t.Errorf("the person is told %q", q.Version)
			}
			g.waits(g.run("o", one))
		}},
		{"the wrapper edited while the person looks, and trusts", "first", func(g *gate) {
			g.create(g.order("o", "", ""))
			id := g.waits(g.run("o", one))
			g.update(g.order("o", `,"headers":{"X-More":"1"}`, ""))
			g.answer(id, "trust")
			g.waits(g.run("o", one))
		}},
		{"the wrapper edited after it was trusted", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.answer(g.waits(g.run("o", one)), "trust")
			g.sent(g.run("o", other), 1)
			g.update(g.order("o", "", `,"mutating":false`))
			g.waits(g.run("o", one))
		}},
		{"another wrapper that makes the allowed request", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.create(g.order("p", "", ""))
			g.answer(g.waits(g.run("o", one)), "allow")
			g.waits(g.run("p", one))
		}},
		{"two calls racing one answer", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.answer(g.waits(g.run("o", one)), "allow")
			var group sync.WaitGroup
			var mu sync.Mutex
			codes := map[string]int{}
			for range 8 {
				group.Go(func() {
					a, err := g.send("/wrap/run", `{"id":"o","args":`+one+`}`)
					if err != nil {
						a = &answer{Code: err.Error()}
					}
					mu.Lock()
					defer mu.Unlock()
					codes[a.Code]++
				})
			}
			group.Wait()
			if d := cmp.Diff(map[string]int{"": 1, "APPROVAL_REQUIRED": 7}, codes); d != "" || len(g.up.take()) != 1 {
				g.t.Errorf("codes (-want +got):\n%s", d)
			}
		}},
		{"two calls waiting for one answer", "always", func(g *gate) {
			g.wait(2 * time.Second)
			g.create(g.order("o", "", ""))
			got := make(chan *answer, 2)
			for range 2 {
				go func() {
					a, err := g.send("/wrap/run", `{"id":"o","args":`+one+`}`)
					if err != nil {
						a = &answer{Code: err.Error()}
					}
					got <- a
				}()
			}
			g.answer(g.questions(1, 2)[0].ID, "allow")
			codes := []string{(<-got).Code, (<-got).Code}
			slices.Sort(codes)
			if d := cmp.Diff([]string{"", "APPROVAL_REQUIRED"}, codes); d != "" || len(g.up.take()) != 1 {
				g.t.Errorf("codes (-want +got):\n%s", d)
			}
		}},
		{"after the question's end", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			later := g.slowClock()
			id := g.waits(g.run("o", one))
			later(10 * time.Minute)
			_, err := g.person.Answer(context.Background(), &control.ApprovalAnswer{ID: id, Answer: "allow"})
			if !fault.Is(err, "APPROVAL_EXPIRED") {
				g.t.Errorf("%v", err)
			}
			g.waits(g.run("o", one))
		}},
		{"after the answer's end", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			later := g.slowClock()
			g.answer(g.waits(g.run("o", one)), "allow")
			later(10 * time.Minute)
			g.waits(g.run("o", one))
		}},
		{"after the daemon was started again", "first", func(g *gate) {
			g.create(g.order("o", "", ""))
			id := g.waits(g.run("o", one))
			g.answer(id, "allow")
			g.restart()
			if _, err := g.person.Answer(context.Background(), &control.ApprovalAnswer{ID: id, Answer: "allow"}); !fault.Is(err, "APPROVAL_NOT_FOUND") {
				g.t.Errorf("%v", err)
			}
			g.waits(g.run("o", one))
		}},
		{"a wrapper that is only tried", "always", func(g *gate) {
			g.waits(g.test(g.order("o", "", ""), one))
			g.waits(g.test(g.order("o", "", `,"mutating":false`), one))
			g.create(g.order("o", "", ""))
			g.waits(g.post("/wrap/test", `{"id":"o","args":`+one+`,"dryRun":false}`))
		}},
		{"a tried wrapper with the id of a trusted one", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.answer(g.waits(g.run("o", one)), "trust")
			g.sent(g.run("o", one), 1)
			g.waits(g.test(strings.Replace(g.order("o", "", ""), "/orders", "/admins", 1), one))
		}},
		{"a POST saved as harmless", "always", func(g *gate) {
			g.create(g.order("o", "", `,"mutating":false`))
			g.waits(g.run("o", one))
		}},
		{"a GET that overrides its method", "always", func(g *gate) {
			for i, h := range []string{"X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X_HTTP_METHOD_OVERRIDE"} {
				id := fmt.Sprint("o", i)
				g.create(g.plain(id, `"method":"GET","headers":{"`+h+`":"DELETE"}`, `,"mutating":false`))
				g.waits(g.run(id, `{}`))
			}
		}},
		{"a GET whose next page overrides its method", "always", func(g *gate) {
			a := g.change("create", g.plain("o", `"method":"GET"`,
				`,"response":{"schemaVersion":1,"fields":{"A":"a"},"pagination":{"type":"cursor","next":"next","cursorParam":"X-HTTP-Method-Override","in":"header"}}`))
			if a.Code != "WRAPPER_INVALID" {
				g.t.Error(a.Raw)
			}
		}},
		{"a GET that says it writes", "always", func(g *gate) {
			g.create(g.plain("o", `"method":"GET"`, `,"mutating":true`))
			g.waits(g.run("o", `{}`))
		}},
		{"a HEAD that says it writes", "first", func(g *gate) {
			g.create(g.plain("o", `"method":"HEAD"`, `,"mutating":true`))
			g.waits(g.run("o", `{}`))
		}},
		{"the writing method of several", "always", func(g *gate) {
			g.create(g.plain("o", `"method":["GET","PUT","PATCH","DELETE"]`, ""))
			g.sent(g.run("o", `{}`), 1)
			for _, m := range []string{"PUT", "PATCH", "DELETE"} {
				g.waits(g.run("o", `{"method":"`+m+`"}`))
			}
		}},
		{"more pages than were allowed", "always", func(g *gate) {
			g.create(g.plain("o", `"method":"POST","body":{}`,
				`,"response":{"schemaVersion":1,"select":"$.items","fields":{"A":"a"},"pagination":{"type":"cursor","next":"next","cursorParam":"c","in":"body"}}`))
			run := func(n string) *answer { return g.post("/wrap/run", `{"id":"o","args":{},"max_pages":`+n+`}`) }
			g.answer(g.waits(run("1")), "allow")
			g.waits(run("25"))
		}},
		{"many questions to hide one among them", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			var group sync.WaitGroup
			codes := make(chan string, 20)
			for i := range 20 {
				group.Go(func() {
					a, err := g.send("/wrap/run", fmt.Sprintf(`{"id":"o","args":{"c":"number %d"}}`, i))
					if err != nil {
						codes <- err.Error()
						return
					}
					codes <- a.Code
				})
			}
			group.Wait()
			close(codes)
			got := map[string]int{}
			for c := range codes {
				got[c]++
			}
			if d := cmp.Diff(map[string]int{"APPROVAL_REQUIRED": 10, "BUSY": 10}, got); d != "" || len(g.up.take()) > 0 {
				g.t.Errorf("codes (-want +got):\n%s", d)
			}
		}},
		{"a wrapper's own policy, taken along by an edit", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.policy("o", "off")
			g.sent(g.run("o", one), 1)
			g.waits(g.test(strings.Replace(g.order("o", "", ""), "/orders", "/admins", 1), one))
			g.update(strings.Replace(g.order("o", "", ""), "/orders", "/admins", 1))
			g.waits(g.run("o", one))
			g.remove("o")
			g.create(g.order("o", "", `,"description":"new"`))
			g.waits(g.run("o", one))
		}},
		{"a wrapper's own policy, shaken off", "off", func(g *gate) {
			g.create(g.order("o", "", ""))
			g.policy("o", "always")
			g.waits(g.run("o", one))
			g.update(g.order("o", "", `,"description":"new"`))
			g.waits(g.run("o", one))
			g.remove("o")
			g.create(g.order("O", "", ""))
			g.waits(g.run("O", one))
			g.waits(g.test(g.order("o", "", ""), one))
		}},
		{"the agent's own commands over the person's socket", "always", func(g *gate) {
			g.create(g.order("o", "", ""))
			ctx := context.Background()
			for name, run := range map[string]func() error{
				"run": func() error { _, err := g.person.Run(ctx, runRequest("o", one)); return err },
				"test": func() error {
					_, err := g.person.Test(ctx, testRequest(g.order("p", "", ""), one))
					return err
				},
			} {
				if err := run(); !fault.Is(err, "APPROVAL_REQUIRED") || len(g.up.take()) > 0 {
					g.t.Errorf("%s: %v", name, err)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, c.policy)
			c.attack(g)
		})
	}
}

// Every door that an agent has, by every verb: there is none to an answer or a
// policy, and a question stays as it is.
func TestAgentsCannotApprove(t *testing.T) {
	t.Parallel()
	g := newGate(t, "always")
	g.create(g.order("o", "", ""))
	id := g.waits(g.run("o", `{"c":"c1"}`))
	bodies := []string{
		``, `{}`, `{"id":"` + id + `"}`, `{"id":"` + id + `","answer":"allow"}`, `{"id":"` + id + `","answer":"trust"}`,
		`{"policy":"off"}`, `{"wrapper":"o","policy":"off"}`, `{"name":"approval","value":"off"}`, `{"action":"allow","id":"` + id + `"}`,
	}
	tried := 0
	for _, door := range []string{
		"/wrap/approval", "/wrap/approvals", "/wrap/approve", "/wrap/approval/allow", "/wrap/approval/answer", "/wrap/approval/policy", "/wrap/settings", "/wrap/config", "/wrap/trust",
		"/control/approvals", "/control/approval", "/control/approval/answer", "/control/approval/policy", "/control/approval/policies", "/control/settings",
		"/wrap/run", "/wrap/test", "/wrap/wrappers", "/wrap/status", "/wrap/audit", "/hello",
	} {
		for _, path := range []string{door, door + "/" + id, door + "?id=" + id + "&answer=allow", "/wrap/.." + door} {
			for _, verb := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "LINK"} {
				for _, body := range bodies {
					req, err := http.NewRequest(verb, "http://"+g.d.Addr(), strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					req.URL.Opaque = "//" + g.d.Addr() + path
					req.Header.Set("Authorization", "Bearer "+g.tok)
					req.Header.Set("Content-Type", "application/json")
					resp, err := g.http.Do(req)
					if err != nil {
						t.Fatalf("%s %s: %v", verb, path, err)
					}
					text, _ := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					tried++
					known := strings.HasPrefix(door, "/wrap/run") || strings.HasPrefix(door, "/wrap/test") || strings.HasPrefix(door, "/wrap/wrappers") ||
						strings.HasPrefix(door, "/wrap/status") || strings.HasPrefix(door, "/wrap/audit") || door == "/hello"
					if !known && (resp.StatusCode < 400 || resp.StatusCode > 499) {
						t.Errorf("%s %s %s: %d %s", verb, path, body, resp.StatusCode, text)
					}
				}
			}
		}
	}
	agent := g.agent(g.d.Addr())
	for _, tool := range []string{
		"wrap_list", "wrap_get", "wrap_secret_list", "wrap_derive", "wrap_create", "wrap_update", "wrap_delete", "wrap_test", "wrap_reload",
		"wrap_approve", "wrap_approval", "wrap_approval_allow", "wrap_allow", "wrap_confirm", "wrap_trust", "wrap_policy", "wrap_config",
	} {
		for _, a := range bodies[1:] {
			_, _, _ = agent.call(tool, a) // a tool that is not there is an error
			tried++
		}
	}
	if text, failed, err := agent.call("wrap_run", `{"id":"o","args":{"c":"c1"}}`); err != nil || !failed || !strings.HasPrefix(text, "APPROVAL_REQUIRED: ") ||
		!strings.Contains(text, "`hbrestd approval show "+id+"`") || !strings.Contains(text, "\nRetryable: yes") {
		t.Errorf("%v %v %s", failed, err, text)
	}
	if hits := g.up.take(); len(hits) > 0 {
		t.Errorf("%d requests were sent", len(hits))
	}
	if q, err := g.person.Approval(context.Background(), id); err != nil || q.State != "pending" {
		t.Errorf("%v %+v", err, q)
	}
	if p, err := g.person.ApprovalPolicies(context.Background()); err != nil || p.Policy != "always" || len(p.Wrappers) > 0 {
		t.Errorf("%v %+v", err, p)
	}
	t.Logf("%d ways tried", tried)
}

// S-13: nobody is asked about a call that would be refused anyway, nor about a
// dry run, a rendered sample or a read.
func TestChecksComeBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	g := newGate(t, "always")
	g.put(bearer("key", value, "b.test"))
	g.create(g.order("o", "", ""))
	g.create(g.order("unbound", `,"auth":"key"`, ""))
	g.create(g.order("unknown", `,"auth":"nobody"`, ""))
	g.create(strings.Replace(g.order("never", "", ""), g.up.at("a.test"), "http://169.254.169.254", 1))
	g.create(g.plain("read", `"method":"GET"`, `,"mutating":false`))
	for _, c := range []struct{ name, route, body, code string }{
		{"arguments that do not fit", "/wrap/run", `{"id":"o","args":{"c":"x"}}`, "ARGS_INVALID"},
		{"an argument missing", "/wrap/run", `{"id":"o"}`, "ARGS_INVALID"},
		{"fields that are not there", "/wrap/run", `{"id":"o","args":{"c":"c1"},"fields":["a b("]}`, "ARGS_INVALID"},
		{"a wrapper that is not there", "/wrap/run", `{"id":"p","args":{"c":"c1"}}`, "WRAPPER_NOT_FOUND"},
		{"an address that is never called", "/wrap/run", `{"id":"never","args":{"c":"c1"}}`, "POLICY_PRIVATE_ADDRESS"},
		{"a credential for another host", "/wrap/run", `{"id":"unbound","args":{"c":"c1"}}`, "SECRET_HOST_NOT_ALLOWED"},
		{"no such credential", "/wrap/run", `{"id":"unknown","args":{"c":"c1"}}`, "SECRET_NOT_FOUND"},
		{"a dry run", "/wrap/test", `{"id":"o","args":{"c":"c1"}}`, ""},
		{"a sample", "/wrap/test", `{"id":"o","sample":{"a":1}}`, ""},
		{"a read", "/wrap/run", `{"id":"read"}`, ""},
		{"a draft of a recipe", "/wrap/derive", `{"url":"` + g.up.at("a.test") + `/x"}`, "DERIVE_NOTHING"}, // the answer was read
	} {
		if a := g.post(c.route, c.body); a.Code != c.code {
			t.Errorf("%s: want %q, got %s", c.name, c.code, a.Raw)
		}
	}
	if l, err := g.person.Approvals(context.Background(), 0); err != nil || len(l.Approvals) > 0 {
		t.Errorf("%v: asked about %+v", err, l)
	}
	if got := g.trail(); len(got) > 0 {
		t.Errorf("the trail has %q", got)
	}
}

// What a person reads is the whole request, redacted, and what they say is in
// the trail before it has an effect.
func TestApprovalFromQuestionToAnswer(t *testing.T) {
	t.Parallel()
	g := newGate(t, "always")
	g.wait(20 * time.Second)
	g.put(bearer("key", value, "a.test"))
	g.create(strings.Replace(g.order("o", `,"auth":"key","headers":{"X-Trace":"t-1"},"query":{"dry":"{{c}}"}`, ""), `"name":"Create order"`, `"name":"Create\u202eorder"`, 1))
	got := make(chan *answer, 1)
	go func() {
		a, err := g.send("/wrap/run", `{"id":"o","args":{"c":"c1"}}`)
		if err != nil {
			a = &answer{Code: err.Error()}
		}
		got <- a
	}()
	listed := g.questions(1, 1)[0]
	if listed.Body != "" || listed.Headers != nil {
		t.Errorf("a list holds the whole request: %+v", listed)
	}
	q, err := g.person.Approval(context.Background(), listed.ID)
	if err != nil {
		t.Fatal(err)
	}
	asked, _ := time.Parse(time.RFC3339, q.Asked)
	expires, _ := time.Parse(time.RFC3339, q.Expires)
	if expires.Sub(asked) != 10*time.Minute || len(q.Document) != 64 {
		t.Errorf("%+v", q)
	}
	want := control.Approval{
		ID: q.ID, State: "pending", Policy: "always", Wrapper: "o", Name: q.Name, Version: "saved", Document: q.Document,
		Method: "POST", URL: g.up.at("a.test") + "/orders?dry=c1", Credential: "key", Pages: 1,
		Headers: []string{"X-Trace: t-1", "Accept: application/json", "Content-Type: application/json"},
		Body:    `{"customer":"c1"}`, Asked: q.Asked, Expires: q.Expires, Waiting: 1,
	}
	if d := cmp.Diff(want, *q); d != "" {
		t.Errorf("shown (-want +got):\n%s", d)
	}
	if raw, _ := json.Marshal(q); shows(string(raw), value) != "" {
		t.Error("the credential is shown")
	}
	g.answer(q.ID, "allow")
	if a := <-got; !a.OK {
		t.Errorf("%s", a.Raw)
	}
	if auth := g.up.sent("Authorization"); len(auth) != 1 || auth[0] != "Bearer "+value {
		t.Errorf("sent %q", auth)
	}
	g.wait(50 * time.Millisecond)
	g.answer(g.waits(g.run("o", `{"c":"c2"}`)), "deny")
	if a := g.run("o", `{"c":"c2"}`); a.Code != "APPROVAL_DENIED" || a.Retryable || len(g.up.take()) > 0 {
		t.Errorf("%s", a.Raw)
	}
	g.answer(g.waits(g.run("o", `{"c":"c3"}`)), "trust")
	g.sent(g.run("o", `{"c":"c4"}`), 1)
	g.restart()
	g.sent(g.run("o", `{"c":"c5"}`), 1) // trust outlives the daemon
	g.policy("o", "default")            // and ends by a policy
	g.waits(g.run("o", `{"c":"c5"}`))
	want2 := []string{
		"approval asked for  POST a.test", "approval given human POST a.test",
		"approval asked for  POST a.test", "approval denied human POST a.test",
		"approval asked for  POST a.test", "approval given for good human POST a.test",
		"approval policy changed human  ", "approval asked for  POST a.test",
	}
	if d := cmp.Diff(want2, g.trail()); d != "" {
		t.Errorf("the trail (-want +got):\n%s", d)
	}
}

// One answer covers all pages of a call, and all tries of a request.
func TestOneAnswerForPagesAndTries(t *testing.T) {
	t.Parallel()
	g := newGate(t, "always")
	n := 0
	var mu sync.Mutex
	g.up.handle = func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		n++
		switch {
		case r.Method == "PUT" && n == 1:
			w.WriteHeader(503)
		case r.Method == "POST" && n < 3:
			_, _ = fmt.Fprintf(w, `{"items":[{"a":%d}],"next":"c%d"}`, n, n)
		default:
			_, _ = io.WriteString(w, `{"items":[{"a":9}]}`)
		}
	}
	g.create(g.plain("search", `"method":"POST","body":{"q":1}`,
		`,"response":{"schemaVersion":1,"select":"$.items","fields":{"A":"a"},"pagination":{"type":"cursor","next":"next","cursorParam":"cursor","in":"body","maxPages":5}}`))
	id := g.waits(g.run("search", `{}`))
	if q, err := g.person.Approval(context.Background(), id); err != nil || q.Pages != 5 || q.Body != `{"q":1}` {
		t.Errorf("%v %+v", err, q)
	}
	g.answer(id, "allow")
	g.sent(g.run("search", `{}`), 3)
	n = 0
	g.create(g.plain("put", `"method":"PUT"`, ""))
	g.answer(g.waits(g.run("put", `{}`)), "allow")
	g.sent(g.run("put", `{}`), 2)
}

// A stored policy that cannot be read is taken for the most careful one, a
// person's change holds at once, and status tells that somebody waits.
func TestApprovalPolicy(t *testing.T) {
	t.Parallel()
	g := newGate(t, "off")
	home := g.cfg.Home
	g.options.Env = func(name string) (string, bool) {
		v, ok := map[string]string{"HB_WRAP_HOME": home, "HB_WRAP_ADDR": "127.0.0.1:0", "HB_WRAP_ALLOW_PRIVATE": "1"}[name]
		return v, ok
	}
	g.restart()
	g.create(g.order("o", "", ""))
	g.create(g.order("quiet", "", ""))
	g.sent(g.run("o", `{"c":"c1"}`), 1)
	g.policy("", "first")
	got := g.policy("quiet", "off")
	want := &control.ApprovalPolicies{
		Policy: "first", Origin: "stored", Variable: "HB_WRAP_APPROVAL",
		Wrappers: []control.WrapperApproval{{Wrapper: "quiet", Policy: "off", Holds: "off"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("policies (-want +got):\n%s", d)
	}
	g.sent(g.run("quiet", `{"c":"c1"}`), 1)
	id := g.waits(g.run("o", `{"c":"c1"}`))
	if st := g.request("GET", "/wrap/status", ""); !strings.Contains(st.Raw, "1 write waits for a person to allow it: `hbrestd approval list`") {
		t.Errorf("status: %s", st.Raw)
	}
	g.answer(id, "trust")
	g.update(g.order("quiet", "", `,"description":"new"`))
	want.Wrappers = []control.WrapperApproval{{Wrapper: "o", Holds: "first", Trusted: true}, {Wrapper: "quiet", Policy: "off", Holds: "first", Edited: true}}
	if d := cmp.Diff(want, g.policy("", "first")); d != "" {
		t.Errorf("policies (-want +got):\n%s", d)
	}
	g.update(g.order("o", "", `,"description":"new"`))
	want.Wrappers[0] = control.WrapperApproval{Wrapper: "o", Holds: "first", Stale: true}
	if d := cmp.Diff(want, g.policy("", "first")); d != "" {
		t.Errorf("policies (-want +got):\n%s", d)
	}
	for _, bad := range []control.ApprovalPolicyChange{{Wrapper: "nobody", Policy: "always"}, {Wrapper: "O", Policy: "off"}, {Policy: "sometimes"}, {}} {
		if _, err := g.person.SetApprovalPolicy(context.Background(), &bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}

	g.policy("", "always")
	g.policy("", "default")
	g.sent(g.run("o", `{"c":"c9"}`), 1)
	g.policy("", "first")
	g.stop()
	flipByte(t, g.cfg.StorePath, "first")
	g.start()
	g.person = control.NewClient(g.cfg.ControlSocket, control.ClientOptions{})
	g.waits(g.run("o", `{"c":"c1"}`))
	if p, err := g.person.ApprovalPolicies(context.Background()); err != nil || p.Policy != "always" {
		t.Errorf("%v %+v", err, p)
	}
	g.policy("", "off")
	g.sent(g.run("o", `{"c":"c1"}`), 1)
}

// A daemon that stops does not wait for a person, and says so to who waits.
func TestStopWhileAPersonIsAsked(t *testing.T) {
	t.Parallel()
	g := newGate(t, "always")
	g.wait(20 * time.Second)
	g.create(g.order("o", "", ""))
	got := make(chan *answer, 1)
	go func() {
		a, err := g.send("/wrap/run", `{"id":"o","args":{"c":"c1"}}`)
		if err != nil {
			a = &answer{Code: err.Error()}
		}
		got <- a
	}()
	g.questions(1, 1)
	within(t, 5*time.Second, "stopping", g.stop)
	if a := <-got; a.Code != "SHUTTING_DOWN" || len(g.up.take()) > 0 {
		t.Errorf("%s", a.Raw)
	}
}
