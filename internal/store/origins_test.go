package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// An import updates what nobody has edited, in one step of the revision, and
// overwrites nothing else; what it knows outlasts a restart.
func TestApplyImported(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path)
	by := s.By(store.Human)
	from := func(ids ...string) map[string]store.Origin {
		m := map[string]store.Origin{}
		for _, id := range ids {
			m[id] = store.Origin{Kind: "openapi", Source: "/shop.yaml", Title: "Shop", Operation: "GET /" + id}
		}
		return m
	}
	apply := func(dry bool, ws ...*wrapper.Wrapper) ([]string, error) {
		t.Helper()
		changes, _, err := by.ApplyImported(ws, from("a", "b", "c", "own"), dry)
		var actions []string
		for _, c := range changes {
			actions = append(actions, c.ID+" "+c.Action)
		}
		return actions, err
	}
	check := func(when string, got []string, err error, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", when, err, diff)
		}
	}
	must(t)(by.Create(parse("own", "by hand")))
	rev := s.Revision()

	got, err := apply(true, parse("a", "1"))
	check("dry", got, err, "a created")
	if list, _ := s.Origins(); list != nil || s.Revision() != rev {
		t.Errorf("a dry run wrote: %v", list)
	}
	got, err = apply(false, parse("a", "1", exposed), parse("b", "1"), parse("c", "1"))
	check("first", got, err, "a created", "b created", "c created")
	if w, err := s.Get("a"); err != nil || w.ExposeAsTool || s.Revision() != rev+1 {
		t.Errorf("a new one is a tool, or more than one step: %v, revision %d after %d", err, s.Revision(), rev)
	}

	// Exposing is no edit, and an update keeps it. Hiding again is none either.
	must(t)(by.SetExposure("a", true, nil))
	must(t)(by.SetExposure("b", true, nil))
	must(t)(by.SetExposure("b", false, nil))
	must(t)(by.Update(parse("c", "edited")))
	mustClose(t, s)
	s = mustOpen(t, path)
	by = s.By(store.Human)
	list, err := s.Origins()
	want := []store.Imported{
		{ID: "a", Origin: from("a")["a"]}, {ID: "b", Origin: from("b")["b"]}, {ID: "c", Origin: from("c")["c"], Edited: true},
	}
	for i, id := range []string{"a", "b", "c"} {
		want[i].Doc = parse(id, "1").Digest()
	}
	if diff := cmp.Diff(want, list); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	got, err = apply(false, parse("a", "1"), parse("b", "1"))
	check("again", got, err, "a unchanged", "b unchanged")
	got, err = apply(false, parse("a", "2"), parse("b", "2"))
	check("the source has changed", got, err, "a updated", "b updated")
	if w, err := s.Get("a"); err != nil || !w.ExposeAsTool || w.Name != "2" {
		t.Errorf("the update: %v", err)
	}
	got, err = apply(false, parse("b", "3"))
	check("and again", got, err, "b updated")

	// Refusals, each for all documents of the step.
	for _, tc := range []struct {
		w    *wrapper.Wrapper
		code fault.Code
	}{
		{parse("c", "2"), "WRAPPER_CHANGED"}, {parse("own", "2"), "WRAPPER_EXISTS"}, {parse("OWN", "2"), "WRAPPER_EXISTS"},
	} {
		if _, err := apply(false, parse("b", "4"), tc.w); !fault.Is(err, tc.code) {
			t.Errorf("%s: %v, want %s", tc.w.ID, err, tc.code)
		}
	}
	if w, err := s.Get("b"); err != nil || w.Name != "3" {
		t.Errorf("a refused step has written: %v", err)
	}
	// What is removed is forgotten; made anew by hand it is nobody's to overwrite.
	must(t)(by.Delete("b"))
	must(t)(by.Create(parse("b", "by hand")))
	if _, err := apply(false, parse("b", "5")); !fault.Is(err, "WRAPPER_EXISTS") {
		t.Errorf("removed and made by hand: %v", err)
	}
}

func TestApplyImportedLimit(t *testing.T) {
	s := mustOpen(t, newPath(t))
	if _, _, err := s.By(store.Human).ApplyImported(make([]*wrapper.Wrapper, store.MaxApply+1), nil, true); !fault.Is(err, "BAD_REQUEST") {
		t.Errorf("one over: %v", err)
	}
}
