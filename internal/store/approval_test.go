package store_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// What a person says about approvals outlives the daemon and the wrapper; a
// policy takes trust back, and only that of its wrapper.
func TestApproval(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := mustOpen(t, path)
	one, two, three := [32]byte{1}, [32]byte{2}, [32]byte{3}
	if s.Trusts(one) {
		t.Error("a new store trusts")
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(s.Trust(store.Trusted{Wrapper: "Orders", Doc: one}))
	check(s.Trust(store.Trusted{Wrapper: "orders", Doc: two}))
	check(s.Trust(store.Trusted{Wrapper: "other", Doc: three}))
	check(s.SetApproval(store.ApprovalPolicy{Wrapper: "Other", Policy: "first", Doc: three}))
	check(s.Trust(store.Trusted{Wrapper: "other", Doc: three}))
	check(s.SetApproval(store.ApprovalPolicy{Wrapper: "gone", Policy: "always"}))
	check(s.SetApproval(store.ApprovalPolicy{Wrapper: "GONE"}))
	check(s.SetApproval(store.ApprovalPolicy{Wrapper: "never"}))
	must(t)(s.By(store.Human).Create(parse("other", "x")))
	must(t)(s.By(store.Human).Delete("other"))
	for range 2 {
		if got, ok := s.ApprovalPolicyOf("OTHER"); !ok || got != (store.ApprovalPolicy{Wrapper: "other", Policy: "first", Doc: three}) {
			t.Errorf("%v %+v", ok, got)
		}
		if got := s.ApprovalPolicies(); len(got) != 1 {
			t.Errorf("%+v", got)
		}
		want := []store.Trusted{{"Orders", one}, {"orders", two}, {"other", three}}
		if d := cmp.Diff(want, s.Trusted()); d != "" || !s.Trusts(one) || s.Trusts([32]byte{4}) {
			t.Error(d)
		}
		mustClose(t, s)
		s = mustOpen(t, path)
	}
	check(s.SetApproval(store.ApprovalPolicy{Wrapper: "ORDERS", Policy: "always"}))
	mustClose(t, s)
	s = mustOpen(t, path)
	if d := cmp.Diff([]store.Trusted{{"other", three}}, s.Trusted()); d != "" || s.Trusts(one) {
		t.Errorf("after a policy: %s", d)
	}
	for _, id := range []string{"", "a b", "../x", strings.Repeat("x", 101)} {
		if err := s.Trust(store.Trusted{Wrapper: id, Doc: one}); !fault.Is(err, "BAD_REQUEST") {
			t.Errorf("trust %q: %v", id, err)
		}
		if err := s.SetApproval(store.ApprovalPolicy{Wrapper: id, Policy: "first"}); !fault.Is(err, "BAD_REQUEST") {
			t.Errorf("policy of %q: %v", id, err)
		}
	}
}

// Damage never makes anything less careful: a policy stays one, trust is gone,
// and of a setting it is known that there was one. So it is too when the whole
// file had to be rescued.
func TestDamagedApproval(t *testing.T) {
	t.Parallel()
	for _, rescued := range []bool{false, true} {
		t.Run(fmt.Sprintf("rescued=%t", rescued), func(t *testing.T) {
			path := newPath(t)
			docs := map[string]string{}
			if rescued {
				docs = fill(t, path, 300)
			}
			s := mustOpen(t, path)
			doc := [32]byte{31: 9}
			for _, err := range []error{
				s.SetSetting("approval", "always"), s.SetSetting("other", "value"),
				s.SetApproval(store.ApprovalPolicy{Wrapper: "orders", Policy: "policy-of-orders", Doc: doc}),
				s.Trust(store.Trusted{Wrapper: "trusted-one", Doc: doc}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			mustClose(t, s)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, what := range []string{"always", "policy-of-orders", "trusted-one"} {
				for from := 0; ; from++ {
					i := bytes.Index(data[from:], []byte(what))
					if i < 0 {
						break
					}
					from += i
					data[from+2] ^= 1
				}
			}
			if rescued {
				size := os.Getpagesize()
				at := stored(t, data, "wrapper.200", docs["wrapper.200"]) / size * size
				clear(data[at : at+size])
			}
			overwrite(t, path, data)
			for range 2 {
				s = mustOpen(t, path)
				if got, ok := s.ApprovalPolicyOf("orders"); !ok || got != (store.ApprovalPolicy{Wrapper: "orders", Damaged: true}) {
					t.Errorf("%v %+v", ok, got)
				}
				if s.Trusts(doc) || !s.SettingDamaged("approval") || s.SettingDamaged("other") || s.SettingDamaged("approva") {
					t.Errorf("trust %v, settings %v %v", s.Trusts(doc), s.SettingDamaged("approval"), s.SettingDamaged("other"))
				}
				mustClose(t, s)
			}
			s = mustOpen(t, path)
			if err := s.SetApproval(store.ApprovalPolicy{Wrapper: "orders"}); err != nil {
				t.Fatal(err)
			}
			if err := s.SetSetting("approval", "off"); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.ApprovalPolicyOf("orders"); ok || s.SettingDamaged("approval") {
				t.Error("still damaged")
			}
		})
	}
}

func TestApprovalLimits(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	for i := range store.MaxTrusted {
		if err := s.Trust(store.Trusted{Wrapper: "w", Doc: [32]byte{byte(i), byte(i >> 8)}}); err != nil {
			t.Fatal(err)
		}
		if err := s.SetApproval(store.ApprovalPolicy{Wrapper: fmt.Sprint("w", i), Policy: "first"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Trust(store.Trusted{Wrapper: "w", Doc: [32]byte{31: 1}}); !fault.Is(err, "BAD_REQUEST") {
		t.Errorf("one over: %v", err)
	}
	if err := s.SetApproval(store.ApprovalPolicy{Wrapper: "x", Policy: "first"}); !fault.Is(err, "BAD_REQUEST") {
		t.Errorf("one over: %v", err)
	}
	if err := s.SetApproval(store.ApprovalPolicy{Wrapper: "w7", Policy: "always"}); err != nil {
		t.Errorf("one that is there: %v", err)
	}
}
