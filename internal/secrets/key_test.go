package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

func TestKeyLife(t *testing.T) {
	f := open(t)
	if s := f.vault.State(); s.Status != secrets.NotAsked || f.ring.asked != 0 {
		t.Error(s)
	}
	f.put(bearer("k", "a.example"), "sk_live_0123456789")
	f.put(bearer("l", "a.example"), "sk_live_0123456789")
	for range 5 {
		f.want("k", "a.example", map[string]string{"Authorization": "Bearer sk_live_0123456789"})
	}
	if f.ring.made != 1 || f.ring.asked != 1 {
		t.Errorf("made %d, asked %d", f.ring.made, f.ring.asked)
	}
	if s := f.vault.State(); s != (secrets.State{Status: secrets.Ready}) {
		t.Error(s)
	}
	f.vault.Close()
	if !bytes.Equal(f.ring.last, make([]byte, secrets.KeySize)) {
		t.Error("the key was not wiped")
	}
	f.refused("k", "a.example", "SHUTTING_DOWN")
}

// With sealed records there is never a new key: it would strand them.
func TestKeyMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		f.put(bearer("k", "a.example"), "sk_live_0123456789")
		before := bytes.Clone(f.store.m["k"])
		kept := f.ring.key
		f.ring.key = nil // somebody deleted the item
		f.reopen()
		f.refused("k", "a.example", "SECRET_LOCKED")
		if s := f.vault.State(); s.Status != secrets.KeyMissing || s.Reason == "" || s.Fix == "" {
			t.Error(s)
		}
		if err := f.try(bearer("new", "a.example"), "sk_live_0123456789"); !fault.Is(err, "SECRET_LOCKED") {
			t.Error(err)
		}
		if f.ring.made != 1 || !bytes.Equal(f.store.m["k"], before) || len(f.store.m) != 1 {
			t.Error("a key was made or a record changed")
		}
		f.ring.key = bytes.Repeat([]byte{9}, secrets.KeySize) // another key
		time.Sleep(5 * time.Second)
		f.refused("k", "a.example", "SECRET_LOCKED")
		if s := f.vault.State(); s.Status != secrets.KeyMissing {
			t.Error(s)
		}
		f.ring.key = kept // restored
		time.Sleep(5 * time.Second)
		f.want("k", "a.example", map[string]string{"Authorization": "Bearer sk_live_0123456789"})

		// The way out when it is gone for good: remove, then set again.
		f.ring.key = nil
		f.reopen()
		f.refused("k", "a.example", "SECRET_LOCKED")
		if err := f.vault.Delete("k"); err != nil {
			t.Fatal(err)
		}
		f.put(bearer("k", "a.example"), "sk_live_0123456789")
		if f.ring.made != 2 {
			t.Error("made", f.ring.made)
		}
	})
}

func TestKeyringStates(t *testing.T) {
	for want, err := range map[secrets.Status]error{
		secrets.Locked: &secrets.KeyError{State: secrets.State{Status: secrets.Locked, Reason: "the keyring is locked", Fix: "Unlock it."}},
		secrets.None:   errors.New("something the keyring said"),
	} {
		synctest.Test(t, func(t *testing.T) {
			f := open(t)
			f.put(bearer("k", "a.example"), "sk_live_0123456789")
			f.reopen()
			f.ring.err, f.ring.asked = err, 0
			for range 20 {
				f.refused("k", "a.example", "SECRET_LOCKED")
			}
			if s := f.vault.State(); s.Status != want || s.Reason == "" || s.Fix == "" {
				t.Error(s)
			}
			if f.ring.asked != 1 {
				t.Errorf("asked %d times in a burst", f.ring.asked)
			}
			if _, err := f.sent("k", "a.example"); bytes.Contains([]byte(err.Error()), []byte("something")) {
				t.Error("the keyring's own text is shown:", err)
			}
			f.ring.err = nil
			time.Sleep(time.Second - time.Millisecond)
			f.refused("k", "a.example", "SECRET_LOCKED")
			time.Sleep(time.Millisecond)
			f.want("k", "a.example", map[string]string{"Authorization": "Bearer sk_live_0123456789"})
		})
	}
}

// A keyring that never answers costs a call five seconds and nothing else anything.
func TestKeyringHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		f.put(bearer("k", "a.example"), "sk_live_0123456789")
		asked := 0
		f.reopen(func(o *secrets.Options) {
			o.Key = func(ctx context.Context, _ bool) ([]byte, error) {
				asked++
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		start := time.Now()
		var group sync.WaitGroup
		for i := range 200 {
			group.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				f.refused("k", "a.example", "SECRET_LOCKED")
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("call %d ended after %v", i, d)
				}
			})
		}
		time.Sleep(time.Second)
		at := time.Now()
		if _, err := f.vault.List(); err != nil {
			t.Error(err)
		}
		if s := f.vault.State(); s.Status != secrets.NotAsked {
			t.Error(s)
		}
		if _, err := f.vault.Grant("k", "a.example"); err != nil {
			t.Error(err)
		}
		if time.Since(at) != 0 {
			t.Error("waited for the keyring")
		}
		// A caller that gives up does not wait.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g, _ := f.vault.Grant("k", "a.example")
		if err := g.Apply(ctx, func(string, string) {}); !fault.Is(err, "CALL_DEADLINE") {
			t.Error(err)
		}
		group.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		// What took five seconds answers for five.
		time.Sleep(5*time.Second - time.Millisecond)
		if f.refused("k", "a.example", "SECRET_LOCKED"); asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		time.Sleep(time.Millisecond)
		if f.refused("k", "a.example", "SECRET_LOCKED"); asked != 2 {
			t.Errorf("asked %d times", asked)
		}
		if s := f.vault.State(); s.Status != secrets.None {
			t.Error(s)
		}
		f.vault.Close()
	})
}

func TestCheck(t *testing.T) {
	f := open(t)
	probed := 0
	probe := func(context.Context) error { probed++; return nil }
	if s := f.vault.Check(t.Context(), probe); s.Status != secrets.Ready || probed != 1 || f.ring.made != 0 {
		t.Error(s, probed, f.ring.made)
	}
	bad := &secrets.KeyError{State: secrets.State{Status: secrets.Locked, Reason: "r", Fix: "f"}}
	if s := f.vault.Check(t.Context(), func(context.Context) error { return bad }); s != bad.State {
		t.Error(s)
	}
	f.put(bearer("k", "a.example"), "sk_live_0123456789")
	if s := f.vault.Check(t.Context(), nil); s.Status != secrets.Ready {
		t.Error(s)
	}
	f.reopen()
	f.ring.err = bad
	if s := f.vault.Check(t.Context(), probe); s != bad.State {
		t.Error(s)
	}
	f.ring.err = nil // a person looks again at once
	if s := f.vault.Check(t.Context(), probe); s.Status != secrets.Ready {
		t.Error(s)
	}
}

func TestWrongKeySize(t *testing.T) {
	f := open(t, func(o *secrets.Options) {
		o.Key = func(context.Context, bool) ([]byte, error) { return make([]byte, 31), nil }
	})
	if err := f.try(bearer("k", "a.example"), "sk_live_0123456789"); !fault.Is(err, "SECRET_LOCKED") {
		t.Error(err)
	}
}
