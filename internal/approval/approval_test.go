package approval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/approval"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A bench is a desk whose surroundings a test sets.
type bench struct {
	*approval.Desk

	mu      sync.Mutex
	policy  approval.Policy
	trusted map[[32]byte]bool
	ids     int
	events  []string
	noTrust error
	skew    time.Duration // of the wall clock
}

func newBench(t *testing.T, p approval.Policy) *bench {
	b := &bench{policy: p, trusted: map[[32]byte]bool{}}
	b.Desk = approval.New(approval.Options{
		Policy:  func(string, [32]byte) approval.Policy { b.mu.Lock(); defer b.mu.Unlock(); return b.policy },
		Trusted: func(_ string, doc [32]byte) bool { b.mu.Lock(); defer b.mu.Unlock(); return b.trusted[doc] },
		Trust: func(_ string, doc [32]byte) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.trusted[doc] = b.noTrust == nil
			return b.noTrust
		},
		Record: func(e approval.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			word := map[approval.EventKind]string{
				approval.EventAsked: "asked", approval.EventAllowed: "allowed", approval.EventTrusted: "trusted",
				approval.EventDenied: "denied", approval.EventExpired: "expired",
			}[e.Kind]
			b.events = append(b.events, word+" "+e.ID)
		},
		NewID: func() string { b.mu.Lock(); defer b.mu.Unlock(); b.ids++; return fmt.Sprintf("q%d", b.ids) },
		Now:   func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return time.Now().Add(b.skew) },
	})
	t.Cleanup(b.Close)
	return b
}

func (b *bench) set(f func()) { b.mu.Lock(); defer b.mu.Unlock(); f() }

func (b *bench) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.events...)
}

// call is the request number n of version doc of a wrapper.
func call(id string, doc, n byte) approval.Ask {
	return approval.Ask{
		Wrapper: id, Name: "Orders", Doc: [32]byte{doc}, Call: [32]byte{n}, Pages: 1,
		Method: "POST", URL: "https://api.example.com/orders", Host: "api.example.com",
		Headers: []string{"Content-Type: application/json"}, Body: fmt.Sprintf(`{"n":%d}`, n),
	}
}

// code is the code of an error; "" for none.
func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

func (b *bench) ask(t *testing.T, a approval.Ask) fault.Code {
	t.Helper()
	return code(b.Allow(t.Context(), a))
}

func (b *bench) decide(t *testing.T, id string, v approval.Verdict) fault.Code {
	t.Helper()
	_, err := b.Decide(id, v)
	return code(err)
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// Nobody answers: the call comes back after the wait with the id, asking again
// joins the question, and after its life the question is over.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		start := time.Now()
		err := b.Allow(t.Context(), call("orders", 1, 1))
		f := fault.From(err)
		if f.Code != "APPROVAL_REQUIRED" || !f.Retryable || !strings.Contains(f.Hint, "`hbrestd approval show q1`") || time.Since(start) != 15*time.Second {
			t.Errorf("%+v after %v", f, time.Since(start))
		}
		if got := b.ask(t, call("orders", 1, 1)); got != "APPROVAL_REQUIRED" {
			t.Error(got)
		}
		equal(t, "joined", b.told(), []string{"asked q1"})
		time.Sleep(10*time.Minute - 30*time.Second - time.Nanosecond)
		if q, err := b.Find("q1"); err != nil || q.State != approval.Pending {
			t.Errorf("just before the end: %v %v", q.State, err)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		equal(t, "over", b.told(), []string{"asked q1", "expired q1"})
		if got := b.decide(t, "q1", approval.Allow); got != "APPROVAL_EXPIRED" {
			t.Errorf("allowed after the end: %s", got)
		}
		if got := b.ask(t, call("orders", 1, 1)); got != "APPROVAL_REQUIRED" {
			t.Error(got)
		}
		equal(t, "asked anew", b.told(), []string{"asked q1", "expired q1", "asked q2"})
	})
}

// always: one answer lets exactly that request out, once, in its time.
func TestAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		b.ask(t, call("orders", 1, 1))
		if got := b.decide(t, "q1", approval.Allow); got != "" {
			t.Fatal(got)
		}
		paged := call("orders", 1, 1)
		paged.Pages = 25
		for what, a := range map[string]approval.Ask{
			"another request": call("orders", 1, 2), "another version": call("orders", 2, 1), "more pages": paged,
		} {
			if got := b.ask(t, a); got != "APPROVAL_REQUIRED" {
				t.Errorf("%s: %q", what, got)
			}
		}
		if got := b.ask(t, call("orders", 1, 1)); got != "" {
			t.Errorf("the allowed request: %s", got)
		}
		if got := b.ask(t, call("orders", 1, 1)); got != "APPROVAL_REQUIRED" {
			t.Errorf("the same once more: %q", got)
		}
		if got := b.decide(t, "q1", approval.Allow); got != "APPROVAL_EXPIRED" {
			t.Errorf("allowed once more: %q", got)
		}
		if got := b.decide(t, "q1", approval.Deny); got != "APPROVAL_EXPIRED" {
			t.Errorf("denied when it was out: %q", got)
		}
	})
}

// An answer that is not used in ten minutes is over.
func TestAnswerExpires(t *testing.T) {
	for _, c := range []struct {
		name  string
		sleep time.Duration // of both clocks
		skew  time.Duration // of the wall clock alone: a machine that slept
		want  fault.Code
	}{
		{"in time", 10*time.Minute - time.Nanosecond, 0, ""},
		{"over", 10 * time.Minute, 0, "APPROVAL_REQUIRED"},
		{"slept, in time", 0, 10*time.Minute - time.Nanosecond, ""},
		{"slept, over", 0, 10 * time.Minute, "APPROVAL_REQUIRED"},
		{"clock set back, over", 10 * time.Minute, -time.Hour, "APPROVAL_REQUIRED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, approval.Always)
				b.ask(t, call("orders", 1, 1))
				time.Sleep(9 * time.Minute) // the question's own life does not count any more
				b.decide(t, "q1", approval.Allow)
				b.set(func() { b.skew = c.skew })
				time.Sleep(c.sleep)
				synctest.Wait()
				if got := b.ask(t, call("orders", 1, 1)); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				want := []string{"asked q1", "allowed q1"}
				if c.want != "" {
					want = append(want, "expired q1", "asked q2")
				}
				equal(t, "events", b.told(), want)
			})
		})
	}
}

// first: one answer covers the version of the wrapper, with any arguments.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.First)
		b.ask(t, call("orders", 1, 1))
		b.ask(t, call("orders", 1, 2))
		b.ask(t, call("orders", 2, 1))
		b.decide(t, "q1", approval.Allow)
		time.Sleep(24 * time.Hour)
		for n := range byte(5) {
			if got := b.ask(t, call("orders", 1, n)); got != "" {
				t.Errorf("request %d: %s", n, got)
			}
		}
		if got := b.ask(t, call("orders", 2, 1)); got != "APPROVAL_REQUIRED" {
			t.Errorf("another version: %q", got)
		}
		equal(t, "events", b.told(), []string{"asked q1", "asked q2", "asked q3", "allowed q1", "expired q3", "asked q4"})

		// Under always the answer counts for nothing; back under first it does.
		b.set(func() { b.policy = approval.Always })
		if got := b.ask(t, call("orders", 1, 1)); got != "APPROVAL_REQUIRED" {
			t.Errorf("under always: %q", got)
		}
		b.set(func() { b.policy = approval.First })
		if got := b.ask(t, call("orders", 1, 1)); got != "" {
			t.Errorf("under first again: %q", got)
		}
		// It can be taken back: by its question, or for the wrapper.
		if got := b.decide(t, "q1", approval.Deny); got != "" {
			t.Errorf("taken back: %s", got)
		}
		if got := b.ask(t, call("orders", 1, 3)); got != "APPROVAL_REQUIRED" {
			t.Errorf("after it was taken back: %q", got)
		}
		b.decide(t, "q6", approval.Allow)
		if got := b.ask(t, call("orders", 1, 3)); got != "" {
			t.Errorf("allowed again: %s", got)
		}
		b.Forget("ORDERS")
		if got := b.ask(t, call("orders", 1, 3)); got != "APPROVAL_REQUIRED" {
			t.Errorf("after Forget: %q", got)
		}
	})
}

// A refusal stands for its ten minutes, also against an answer for the whole
// version, and a person may think better of it.
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.First)
		b.ask(t, call("orders", 1, 1))
		b.decide(t, "q1", approval.Deny)
		b.ask(t, call("orders", 1, 2))
		b.decide(t, "q2", approval.Allow)
		b.decide(t, "q1", approval.Deny) // once more: nothing new
		err := b.Allow(t.Context(), call("orders", 1, 1))
		if f := fault.From(err); code(err) != "APPROVAL_DENIED" || f.Retryable {
			t.Errorf("%v", err)
		}
		if got := b.ask(t, call("orders", 1, 3)); got != "" {
			t.Errorf("the others: %s", got)
		}
		b.decide(t, "q1", approval.Allow)
		if got := b.ask(t, call("orders", 1, 1)); got != "" {
			t.Errorf("allowed after all: %s", got)
		}
		equal(t, "events", b.told(), []string{"asked q1", "denied q1", "asked q2", "allowed q2", "allowed q1"})

		b.set(func() { b.policy = approval.Always })
		b.ask(t, call("orders", 1, 9))
		b.decide(t, "q3", approval.Allow)
		b.decide(t, "q3", approval.Deny)
		if got := b.ask(t, call("orders", 1, 9)); got != "APPROVAL_DENIED" {
			t.Errorf("an answer that was taken back: %q", got)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := b.ask(t, call("orders", 1, 9)); got != "APPROVAL_REQUIRED" {
			t.Errorf("ten minutes later: %q", got)
		}
	})
}

// Trust is for a version of a wrapper, whatever the policy, and is kept by
// others; the desk has no say when it cannot be kept.
func TestTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		b.ask(t, call("orders", 1, 1))
		b.set(func() { b.noTrust = fault.New("STORE_FAILED", "full") })
		if got := b.decide(t, "q1", approval.Trust); got != "STORE_FAILED" {
			t.Errorf("%q", got)
		}
		if got := b.ask(t, call("orders", 1, 1)); got != "APPROVAL_REQUIRED" {
			t.Errorf("not trusted: %q", got)
		}
		b.set(func() { b.noTrust = nil })
		b.decide(t, "q1", approval.Trust)
		for n := range byte(3) {
			if got := b.ask(t, call("orders", 1, n)); got != "" {
				t.Errorf("trusted: %s", got)
			}
		}
		if got := b.ask(t, call("orders", 2, 1)); got != "APPROVAL_REQUIRED" {
			t.Errorf("edited: %q", got)
		}
		if got := b.decide(t, "q1", approval.Deny); got != "APPROVAL_EXPIRED" {
			t.Errorf("denied when trusted: %q", got)
		}
		equal(t, "events", b.told(), []string{"asked q1", "trusted q1", "asked q2"})
	})
}

// Waiting calls: an answer ends the wait, one answer lets one of two out, a
// caller who leaves is told so, and a policy that asks nothing any more lets go.
func TestWaiting(t *testing.T) {
	type outcome struct {
		Code  fault.Code
		After time.Duration
	}
	wait := func(b *bench, ctx context.Context, a approval.Ask) <-chan outcome {
		out := make(chan outcome, 1)
		start := time.Now()
		go func() { err := b.Allow(ctx, a); out <- outcome{code(err), time.Since(start)} }()
		synctest.Wait()
		return out
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		one, two := wait(b, t.Context(), call("orders", 1, 1)), wait(b, t.Context(), call("orders", 1, 1))
		if q, _ := b.Find("q1"); q.Waiting != 2 {
			t.Errorf("%d wait", q.Waiting)
		}
		time.Sleep(5 * time.Second)
		b.decide(t, "q1", approval.Allow)
		got := map[outcome]int{<-one: 1}
		got[<-two]++
		equal(t, "two calls, one answer", got, map[outcome]int{{"", 5 * time.Second}: 1, {"APPROVAL_REQUIRED", 15 * time.Second}: 1})
		equal(t, "events", b.told(), []string{"asked q1", "allowed q1", "asked q2"})

		denied := wait(b, t.Context(), call("orders", 1, 2))
		b.decide(t, "q3", approval.Deny)
		equal(t, "denied", <-denied, outcome{"APPROVAL_DENIED", 0})

		ctx, cancel := context.WithCancel(t.Context())
		gone := wait(b, ctx, call("orders", 1, 3))
		cancel()
		equal(t, "gone", <-gone, outcome{"CALL_CANCELLED", 0})
		if q, _ := b.Find("q4"); q.Waiting != 0 || q.State != approval.Pending {
			t.Errorf("after its caller left: %+v", q)
		}

		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		equal(t, "half of the deadline", <-wait(b, ctx, call("orders", 1, 4)), outcome{"APPROVAL_REQUIRED", 5 * time.Second})

		off := wait(b, t.Context(), call("orders", 1, 5))
		b.set(func() { b.policy = approval.Off })
		b.Reconsider()
		equal(t, "off", <-off, outcome{"", 0})
	})
}

// Too many questions are refused, in all and of one wrapper, whatever the case
// of its id; an answer makes room.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		quick := func(a approval.Ask) fault.Code { // the question comes up, and nobody waits
			c, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			return code(b.Allow(c, a))
		}
		<-ctx.Done()
		if err := b.Allow(ctx, call("orders", 1, 1)); !errors.Is(err, context.DeadlineExceeded) || len(b.told()) != 0 {
			t.Errorf("a call that is over asked: %v", err)
		}
		for n := range byte(approval.MaxPerWrapper) {
			if got := quick(call("orders", n, n)); got != "APPROVAL_REQUIRED" {
				t.Fatalf("question %d: %q", n, got)
			}
		}
		err := b.Allow(t.Context(), call("ORDERS", 99, 99))
		if f := fault.From(err); f == nil || f.Code != "BUSY" || !strings.Contains(f.Hint, "`hbrestd approval list`") {
			t.Errorf("one over: %v", err)
		}
		if got := quick(call("orders", 0, 0)); got != "APPROVAL_REQUIRED" {
			t.Errorf("a question that is there: %q", got)
		}
		b.decide(t, "q1", approval.Deny)
		if got := quick(call("orders", 99, 99)); got != "APPROVAL_REQUIRED" {
			t.Errorf("after an answer: %q", got)
		}
		for n := approval.MaxPerWrapper; n < approval.MaxPending; n++ {
			if got := quick(call(fmt.Sprintf("other%d", n), 1, byte(n))); got != "APPROVAL_REQUIRED" {
				t.Fatalf("question %d: %q", n, got)
			}
		}
		if got := quick(call("one-more", 200, 1)); got != "BUSY" {
			t.Errorf("one over: %q", got)
		}
		_, list := b.List(t.Context(), 0)
		if len(list) != approval.MaxPending+1 { // and the denied one
			t.Errorf("%d questions", len(list))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		large := call("orders", 1, 1)
		large.Body, large.Headers, large.URL, large.Name = strings.Repeat("x", approval.MaxBytes), nil, "", ""
		larger := large
		larger.Body += "x"
		if got := b.ask(t, larger); got != "BUSY" {
			t.Errorf("one byte over: %q", got)
		}
		if got := b.ask(t, large); got != "APPROVAL_REQUIRED" {
			t.Errorf("at the limit: %q", got)
		}
	})
}

// A list shows the request as a whole, and waits for news.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		rev, list := b.List(t.Context(), 0)
		equal(t, "empty", list, []approval.Question{})
		type news struct {
			rev  uint64
			list []approval.Question
		}
		got := make(chan news, 1)
		go func() { rev, list := b.List(t.Context(), rev); got <- news{rev, list} }()
		synctest.Wait()
		start := time.Now()
		a := call("orders", 1, 1)
		b.ask(t, a)
		n := <-got
		if len(n.list) == 1 {
			n.list[0].Waiting = 0 // or 1: the call may not have begun to wait when the question came up
		}
		equal(t, "news", n.list, []approval.Question{{
			Ask: a, ID: "q1", State: approval.Pending, Policy: approval.Always, Asked: start, Expires: start.Add(10 * time.Minute),
		}})
		if n.rev <= rev {
			t.Errorf("revision %d after %d", n.rev, rev)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n.rev, _ = b.List(ctx, 0) // the end of a wait was news too
		if again, _ := b.List(ctx, n.rev); again != n.rev || time.Since(start) != 15*time.Second+time.Minute {
			t.Errorf("without news: revision %d after %v", again, time.Since(start))
		}
	})
}

// Ids that nobody was given answer nothing.
func TestGuessedIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		b.ask(t, call("orders", 1, 1))
		for _, id := range []string{"", "q", "q2", "Q1", "q1 ", "*", "q1\x00"} {
			for _, v := range []approval.Verdict{approval.Deny, approval.Allow, approval.Trust} {
				if got := b.decide(t, id, v); got != "APPROVAL_NOT_FOUND" {
					t.Errorf("%q: %q", id, got)
				}
			}
		}
		if got := b.ask(t, call("orders", 1, 1)); got != "APPROVAL_REQUIRED" {
			t.Errorf("%q", got)
		}
	})
}

// Under load: as many requests leave as a person has allowed, never more.
func TestOneAnswerOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, approval.Always)
		var sent, failed int
		var mu sync.Mutex
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				err := b.Allow(t.Context(), call("orders", 1, 1))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					sent++
				} else {
					failed++
				}
			})
		}
		synctest.Wait()
		for range 7 { // each time the one question that is open
			_, list := b.List(t.Context(), 0)
			if len(list) != 1 {
				t.Fatalf("%d questions", len(list))
			}
			b.decide(t, list[0].ID, approval.Allow)
			synctest.Wait()
		}
		callers.Wait()
		if sent != 7 || failed != 43 {
			t.Errorf("%d sent, %d failed", sent, failed)
		}
	})
}

func TestStricter(t *testing.T) {
	order := []approval.Policy{approval.Off, approval.First, approval.Always}
	for i, p := range order {
		for j, q := range order {
			if p.Stricter(q) != (i > j) {
				t.Errorf("%s stricter than %s: %v", p, q, p.Stricter(q))
			}
		}
	}
	if approval.Always.Stricter("nonsense") || !approval.Policy("nonsense").Stricter(approval.First) {
		t.Error("an unknown policy must count as always")
	}
}
