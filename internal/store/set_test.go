package store_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := mustOpen(t, path)
	set := func(name, value string) {
		t.Helper()
		if err := s.SetSetting(name, value); err != nil {
			t.Error(err)
		}
	}
	if got := s.Settings(); len(got) != 0 {
		t.Errorf("a new store has settings %v", got)
	}
	set("allow-private", "1")
	set("allow-private", "0")
	set("call-timeout-ms", "20000")
	set("empty", "")
	long := strings.Repeat("v", store.MaxSettingValue)
	name := strings.Repeat("n", store.MaxSettingName)
	set(name, long)
	mustFail(t, s.SetSetting("long", long+"v"), "BAD_REQUEST", "4096", "4097")
	for _, bad := range []string{"", name + "n", "Upper", "a b", "a\x00", "ä"} {
		mustFail(t, s.SetSetting(bad, "x"), "BAD_REQUEST", "name of a setting")
	}
	if err := s.UnsetSetting("never set"); err != nil {
		t.Error(err)
	}
	want := map[string]string{"allow-private": "0", "call-timeout-ms": "20000", "empty": "", name: long}
	check := func() {
		t.Helper()
		if diff := cmp.Diff(want, s.Settings()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check()
	s.Settings()["allow-private"] = "hand-made" // a copy
	must(t)(s.By(store.Human).Create(parse("a", "x")))
	must(t)(s.Reload())
	check()
	mustClose(t, s)
	mustFail(t, s.SetSetting("a", "b"), "STORE_FAILED", "closed")
	mustFail(t, s.UnsetSetting("empty"), "STORE_FAILED", "closed")
	s = mustOpen(t, path)
	check()
	if err := s.UnsetSetting("empty"); err != nil {
		t.Error(err)
	}
	delete(want, "empty")
	check()
	if s.Revision() != 2 {
		t.Errorf("revision %d: settings are not wrappers, want 2", s.Revision())
	}
	for i := len(want); i < store.MaxSettings; i++ {
		set(fmt.Sprint("more-", i), "x")
	}
	mustFail(t, s.SetSetting("one-more", "x"), "BAD_REQUEST", "200")
	set("allow-private", "1") // but a change of one is no more
	mustClose(t, s)
	s = mustOpen(t, path)
	if got := s.Settings(); len(got) != store.MaxSettings || got["allow-private"] != "1" || s.Recovered() != "" {
		t.Errorf("%d settings, %q", len(got), s.Recovered())
	}
	checkFile(t, path)
}

func TestAllowRules(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := mustOpen(t, path)
	allow := func(r store.AllowRule, want bool) {
		t.Helper()
		if added, err := s.Allow(r); added != want || err != nil {
			t.Errorf("Allow(%v): %v, %v, want %v", r, added, err, want)
		}
	}
	disallow := func(r store.AllowRule, want bool) {
		t.Helper()
		if removed, err := s.Disallow(r); removed != want || err != nil {
			t.Errorf("Disallow(%v): %v, %v, want %v", r, removed, err, want)
		}
	}
	longest := strings.Repeat("h", store.MaxAllowHost)
	allow(store.AllowRule{Host: "nas.example", Port: "8443"}, true)
	allow(store.AllowRule{Host: "nas.example", Port: "8443"}, false)
	allow(store.AllowRule{Host: "nas.example"}, true) // another rule
	allow(store.AllowRule{Host: "[fd00::1]", Port: "65535", HTTP: true}, true)
	allow(store.AllowRule{Host: "10.0.0.1", Port: "1"}, true)
	allow(store.AllowRule{Host: "10.0.0.1", Port: "1", HTTP: true}, true) // replaces
	allow(store.AllowRule{Host: longest}, true)
	want := []store.AllowRule{
		{"10.0.0.1", "1", true}, {"[fd00::1]", "65535", true}, {longest, "", false}, {"nas.example", "", false}, {"nas.example", "8443", false},
	}
	check := func() {
		t.Helper()
		if diff := cmp.Diff(want, s.Allowed()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check()
	for _, bad := range []string{"", longest + "h", "a b", "a\n", "ä", "a\x00"} {
		_, err := s.Allow(store.AllowRule{Host: bad})
		mustFail(t, err, "BAD_REQUEST", "cannot be a host")
	}
	for _, bad := range []string{"0", "65536", "08", "-1", "+1", "x", "1 "} {
		_, err := s.Allow(store.AllowRule{Host: "a", Port: bad})
		mustFail(t, err, "BAD_REQUEST", "is not a port")
	}
	must(t)(s.Reload())
	check()
	mustClose(t, s)
	s = mustOpen(t, path)
	check()
	disallow(store.AllowRule{Host: "10.0.0.1", Port: "1"}, true) // whatever it says of http
	disallow(store.AllowRule{Host: "10.0.0.1", Port: "1"}, false)
	disallow(store.AllowRule{Host: "nas.example", Port: "1"}, false)
	want = want[1:]
	check()
	for i := len(want); i < store.MaxAllowRules; i++ {
		allow(store.AllowRule{Host: fmt.Sprintf("h%04d", i)}, true)
	}
	_, err := s.Allow(store.AllowRule{Host: "one-more"})
	mustFail(t, err, "BAD_REQUEST", "1000")
	allow(store.AllowRule{Host: "nas.example", HTTP: true}, true)
	mustClose(t, s)
	_, err = s.Allow(store.AllowRule{Host: "x"})
	mustFail(t, err, "STORE_FAILED", "closed")
	_, err = s.Disallow(store.AllowRule{Host: "nas.example"})
	mustFail(t, err, "STORE_FAILED", "closed")
	if s = mustOpen(t, path); len(s.Allowed()) != store.MaxAllowRules || s.Revision() != 1 {
		t.Errorf("%d rules at revision %d", len(s.Allowed()), s.Revision())
	}
}

// A damaged record of what a person has set is one named fault: it counts as
// not set, the others are as they were, and setting it again mends it.
func TestDamagedSettings(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path)
	for i := range 5 {
		if err := s.SetSetting(fmt.Sprint("setting-", i), fmt.Sprint("value-of-", i)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Allow(store.AllowRule{Host: fmt.Sprint("host-", i), HTTP: true}); err != nil {
			t.Fatal(err)
		}
	}
	must(t)(s.By(store.Human).Create(parse("a", "x")))
	must(t)(s.By(store.Human).SetExposure("a", true, new(7)))
	mustClose(t, s)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(what string, at int) {
		for from := 0; ; from++ { // every copy that bbolt has left behind
			i := bytes.Index(data[from:], []byte(what))
			if i < 0 {
				return
			}
			from += i
			data[from+at] ^= 1
		}
	}
	flip("value-of-3", 4)
	flip("host-2 ", len("host-2 ")+33) // its only byte of payload: http or not
	overwrite(t, path, data)

	s = mustOpen(t, path)
	want := []string{`setting "setting-3": its checksum does not match`, `allow rule "host-2 ": its checksum does not match`}
	if diff := cmp.Diff(want, s.Unreadable()); diff != "" || s.Recovered() != "" {
		t.Errorf("%q (-want +got):\n%s", s.Recovered(), diff)
	}
	if got := s.Settings(); len(got) != 4 || got["setting-4"] != "value-of-4" || got["setting-3"] != "" {
		t.Errorf("settings %v", got)
	}
	if got := s.Allowed(); len(got) != 4 {
		t.Errorf("rules %v", got)
	}
	if err := s.SetSetting("setting-3", "again"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Disallow(store.AllowRule{Host: "host-2"}); err != nil {
		t.Fatal(err)
	}
	if got := s.Unreadable(); len(got) != 0 {
		t.Errorf("still unreadable: %v", got)
	}
	mustClose(t, s)
	s = mustOpen(t, path)
	if len(s.Unreadable()) != 0 || s.Settings()["setting-3"] != "again" || len(s.Allowed()) != 4 || s.List()[0].Priority != 7 {
		t.Errorf("after mending: %v, %v, %v", s.Unreadable(), s.Settings(), s.Allowed())
	}
}

// What a person has set outlives damage to the rest of the file.
func TestSettingsOutliveDamage(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	docs := fill(t, path, 300)
	s := mustOpen(t, path)
	if err := s.SetSetting("allow-private", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Allow(store.AllowRule{Host: "nas.example", Port: "443"}); err != nil {
		t.Fatal(err)
	}
	must(t)(s.By(store.Human).SetExposure("wrapper.001", true, new(900)))
	must(t)(s.By(store.Human).SetExposure("wrapper.123", true, new(800)))
	mustClose(t, s)
	data := inUse(t, path)
	size := os.Getpagesize()
	at := stored(t, data, "wrapper.200", docs["wrapper.200"]) / size * size
	clear(data[at : at+size])
	overwrite(t, path, data)
	s = mustOpen(t, path)
	if s.Recovered() == "" || s.Damaged() == 0 {
		t.Fatal("the damage was not seen")
	}
	for range 2 {
		if diff := cmp.Diff(map[string]string{"allow-private": "1"}, s.Settings()); diff != "" {
			t.Errorf("settings (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]store.AllowRule{{"nas.example", "443", false}}, s.Allowed()); diff != "" {
			t.Errorf("rules (-want +got):\n%s", diff)
		}
		got := map[string]int{}
		for _, e := range s.List() {
			if e.Priority != 0 {
				got[e.ID] = e.Priority
			}
		}
		if diff := cmp.Diff(map[string]int{"wrapper.001": 900, "wrapper.123": 800}, got); diff != "" {
			t.Errorf("priorities (-want +got):\n%s", diff)
		}
		mustClose(t, s)
		s = mustOpen(t, path)
	}
}

func TestExposure(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path)
	// Everything that a change of one field must leave alone: digits, order of
	// keys, characters that encoders like to escape.
	doc := `{"schemaVersion":1,"id":"a.b","name":"A <b> & \u2028c","request":{"method":"POST","url":"https://api.example.com/{{z}}","body":{"z":"{{z}}","a":12345678901234567890.10,"n":1e5}},` +
		`"inputSchema":{"type":"object","properties":{"z":{"type":"string"},"b":{"type":"integer","maximum":9007199254740993}}},"mutating":true}`
	w, report := wrapper.Parse([]byte(doc))
	if !report.OK() {
		t.Fatal(report.Problems)
	}
	must(t)(s.By(store.Human).Create(w))
	must(t)(s.By(store.Human).Create(parse("plain", "x")))
	before := string(w.Document())

	type state struct {
		doc, tool string
		priority  int
		rev       uint64
	}
	check := func(when string, want state) {
		t.Helper()
		e := s.List()[0]
		got := state{string(e.Wrapper.Document()), e.Tool, e.Priority, s.Revision()}
		if got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	shown := strings.Replace(before, `,"mutating":true}`, `,"exposeAsTool":true,"mutating":true}`, 1)
	hidden := strings.Replace(shown, `"exposeAsTool":true`, `"exposeAsTool":false`, 1)
	check("at first", state{before, "", 0, 3})
	if rev := must(t)(s.By(store.Human).SetExposure("a.b", false, nil)); rev != 3 {
		t.Errorf("revision %d for no change", rev)
	}
	check("hidden as it was", state{before, "", 0, 3})
	if rev := must(t)(s.By(store.Human).SetExposure("a.b", true, nil)); rev != 4 {
		t.Errorf("revision %d, want 4", rev)
	}
	check("exposed", state{shown, "wrap_a_b", 0, 4})
	must(t)(s.By(store.Human).SetExposure("a.b", true, new(store.MaxPriority)))
	check("with a priority", state{shown, "wrap_a_b", store.MaxPriority, 5})
	if rev := must(t)(s.By(store.Human).SetExposure("a.b", true, new(store.MaxPriority))); rev != 5 {
		t.Errorf("revision %d for no change", rev)
	}
	must(t)(s.By(store.Human).SetExposure("a.b", false, nil))
	check("hidden: name and priority are kept", state{hidden, "wrap_a_b", store.MaxPriority, 6})
	must(t)(s.By(store.Human).Update(parse("a.b", "new", exposed)))
	check("updated", state{string(parse("a.b", "new", exposed).Document()), "wrap_a_b", store.MaxPriority, 7})
	must(t)(s.Reload())
	mustClose(t, s)
	s = mustOpen(t, path)
	check("after opening again", state{string(parse("a.b", "new", exposed).Document()), "wrap_a_b", store.MaxPriority, 7})
	must(t)(s.By(store.Human).SetExposure("a.b", false, new(0)))
	hid := strings.Replace(string(parse("a.b", "new", exposed).Document()), "true", "false", 1)
	check("hidden without a priority", state{hid, "wrap_a_b", 0, 8})

	for _, bad := range []int{-1, store.MaxPriority + 1} {
		_, err := s.By(store.Human).SetExposure("a.b", true, &bad)
		mustFail(t, err, "BAD_REQUEST", "0 to 1000", fmt.Sprint(bad))
	}
	_, err := s.By(store.Human).SetExposure("a.c", true, nil)
	mustFail(t, err, "WRAPPER_NOT_FOUND", "near: a.b")
	must(t)(s.By(store.Human).SetExposure("a.b", true, new(5)))
	must(t)(s.By(store.Human).Delete("a.b")) // frees the priority
	must(t)(s.By(store.Human).Create(w))
	check("made again", state{before, "", 0, 11})
	mustClose(t, s)
	_, err = s.By(store.Human).SetExposure("a.b", true, nil)
	mustFail(t, err, "STORE_FAILED", "closed")
	s = mustOpen(t, path)
	check("made again and opened", state{before, "", 0, 11})
}

func TestExposureOfDamaged(t *testing.T) {
	path := newPath(t)
	fill(t, path, 3)
	store.RewriteRecord(t, path, "wrappers", "wrapper.001", 1, []byte("{"))
	s := mustOpen(t, path)
	_, err := s.By(store.Human).SetExposure("wrapper.001", true, nil)
	mustFail(t, err, "WRAPPER_UNREADABLE", "wrapper.001")
}

func TestApply(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path)
	one, two := parse("one", "first"), parse("two", "second")
	must(t)(s.By(store.Human).Create(one))
	must(t)(s.By(store.Human).Create(two))
	newer, three, four := parse("two", "changed", exposed), parse("a.b", "third", exposed), parse("a_b", "fourth", exposed)
	batch := []*wrapper.Wrapper{three, one, newer, four}
	want := []store.Change{
		{ID: "a.b", Action: store.Created, After: three.Document()},
		{ID: "one", Action: store.Unchanged},
		{ID: "two", Action: store.Updated, Before: two.Document(), After: newer.Document()},
		{ID: "a_b", Action: store.Created, After: four.Document()},
	}
	apply := func(ws []*wrapper.Wrapper, dryRun bool, want []store.Change, wantRev uint64) {
		t.Helper()
		changes, rev, err := s.By(store.Human).Apply(ws, dryRun)
		if diff := cmp.Diff(want, changes); diff != "" || err != nil || rev != wantRev || s.Revision() != wantRev {
			t.Errorf("revision %d (%d), %v (-want +got):\n%s", rev, s.Revision(), err, diff)
		}
	}
	apply(batch, true, want, 3)
	if s.Len() != 2 {
		t.Error("a dry run has saved something")
	}
	apply(batch, false, want, 4) // one step
	unchanged := []store.Change{{ID: "a.b", Action: store.Unchanged}, {ID: "one", Action: store.Unchanged}, {ID: "two", Action: store.Unchanged}, {ID: "a_b", Action: store.Unchanged}}
	apply(batch, false, unchanged, 4) // what is exported and applied is the same
	apply(nil, false, nil, 4)
	check := func() {
		t.Helper()
		docs := map[string]string{}
		tools := map[string]string{}
		for _, e := range s.List() {
			docs[e.ID], tools[e.ID] = string(e.Wrapper.Document()), e.Tool
		}
		wantDocs := map[string]string{"one": string(one.Document()), "two": string(newer.Document()), "a.b": string(three.Document()), "a_b": string(four.Document())}
		if diff := cmp.Diff(wantDocs, docs); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// The second of one batch whose name is taken; six digits of SHA-256("a_b").
		wantTools := map[string]string{"one": "", "two": "wrap_two", "a.b": "wrap_a_b", "a_b": "wrap_a_b_648fa9"}
		if diff := cmp.Diff(wantTools, tools); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
	}
	check()
	mustClose(t, s)
	if _, _, err := s.By(store.Human).Apply(batch, false); err == nil {
		t.Error("a closed store takes documents")
	}
	s = mustOpen(t, path)
	check()
	checkFile(t, path)
}

// Whatever one document is refused for, none of the batch is saved.
func TestApplyRefuses(t *testing.T) {
	path := newPath(t)
	fill(t, path, 2)
	store.RewriteRecord(t, path, "wrappers", "wrapper.001", 9, []byte("{}"))
	s := mustOpen(t, path)
	must(t)(s.By(store.Human).Create(parse("Orders.List", "x")))
	good, before := parse("good", "x"), s.Revision()
	for name, x := range map[string]struct {
		ws   []*wrapper.Wrapper
		code fault.Code
		says []string
	}{
		"same id twice":         {[]*wrapper.Wrapper{good, parse("a", "1"), parse("a", "2")}, "WRAPPER_EXISTS", []string{`two of the documents have the id "a"`}},
		"same but for case":     {[]*wrapper.Wrapper{good, parse("aB", "1"), parse("Ab", "2")}, "WRAPPER_EXISTS", []string{`"aB" and "Ab"`, "case"}},
		"store's, but for case": {[]*wrapper.Wrapper{good, parse("orders.list", "1")}, "WRAPPER_EXISTS", []string{`"Orders.List" already`, "case"}},
		"of a later version":    {[]*wrapper.Wrapper{good, parse("wrapper.001", "1")}, "WRAPPER_UNREADABLE", []string{"newer hbrestd"}},
	} {
		for _, dryRun := range []bool{true, false} {
			changes, _, err := s.By(store.Human).Apply(x.ws, dryRun)
			mustFail(t, err, x.code, x.says...)
			if changes != nil || s.Len() != 3 || s.Revision() != before {
				t.Errorf("%s: %v, %d wrappers, revision %d", name, changes, s.Len(), s.Revision())
			}
		}
	}
}

// A damaged wrapper is replaced, as Update does.
func TestApplyMends(t *testing.T) {
	path := newPath(t)
	fill(t, path, 2)
	store.RewriteRecord(t, path, "wrappers", "wrapper.001", 1, []byte("{"))
	s := mustOpen(t, path)
	w := parse("wrapper.001", "mended")
	changes, _, err := s.By(store.Human).Apply([]*wrapper.Wrapper{w}, false)
	if diff := cmp.Diff([]store.Change{{ID: w.ID, Action: store.Updated, After: w.Document()}}, changes); diff != "" || err != nil || s.Damaged() != 0 {
		t.Errorf("%v, %d damaged (-want +got):\n%s", err, s.Damaged(), diff)
	}
}

func TestApplyLimit(t *testing.T) {
	s := mustOpen(t, newPath(t))
	ws := make([]*wrapper.Wrapper, store.MaxApply+1)
	for i := range ws {
		ws[i] = parse(fmt.Sprintf("w.%04d", i), "x", exposed)
	}
	_, _, err := s.By(store.Human).Apply(ws, false)
	mustFail(t, err, "BAD_REQUEST", "1001", "1000")
	changes, rev, err := s.By(store.Human).Apply(ws[:store.MaxApply], false)
	if len(changes) != store.MaxApply || rev != 2 || err != nil || s.Len() != store.MaxApply {
		t.Errorf("%d changes, revision %d, %v, %d wrappers", len(changes), rev, err, s.Len())
	}
}

func TestWaitRevision(t *testing.T) {
	s := mustOpen(t, newPath(t))
	must(t)(s.By(store.Human).Create(parse("a", "x")))
	ctx, cancel := context.WithCancel(t.Context())
	for _, after := range []uint64{0, 1, 3, 1000} { // another store's, too
		if rev := s.WaitRevision(ctx, after); rev != 2 {
			t.Errorf("after %d: %d, want 2 at once", after, rev)
		}
	}
	cancel()
	if rev := s.WaitRevision(ctx, 2); rev != 2 {
		t.Errorf("after its context's end: %d", rev)
	}
}

// Each kind of change wakes everyone who waits, and nothing else does.
func TestWaitersWake(t *testing.T) {
	path := newPath(t)
	mustClose(t, mustOpen(t, path))
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, path)
		const many = 200
		news := make(chan uint64, many)
		wait := func() {
			for range many {
				go func() { news <- s.WaitRevision(t.Context(), s.Revision()) }()
			}
			synctest.Wait()
		}
		for i, change := range []func(){
			func() { must(t)(s.By(store.Human).Create(parse("a", "x"))) },
			func() { must(t)(s.By(store.Human).Update(parse("a", "y"))) },
			func() { must(t)(s.By(store.Human).SetExposure("a", true, nil)) },
			func() { must(t)(s.By(store.Human).SetExposure("a", true, new(3))) },
			func() {
				if _, _, err := s.By(store.Human).Apply([]*wrapper.Wrapper{parse("b", "x"), parse("c", "x")}, false); err != nil {
					t.Error(err)
				}
			},
			func() { must(t)(s.By(store.Human).Delete("a")) },
		} {
			wait()
			if err := s.SetSetting("allow-private", fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
			must(t)(s.Reload())
			synctest.Wait()
			if len(news) != 0 {
				t.Errorf("change %d: %d woke up without a new revision", i, len(news))
			}
			change()
			for range many {
				if rev := <-news; rev != uint64(i+2) {
					t.Errorf("change %d: revision %d, want %d", i, rev, i+2)
				}
			}
		}
		wait()
		mustClose(t, s)
		for range many {
			if rev := <-news; rev != 7 {
				t.Errorf("at the store's end: revision %d, want 7", rev)
			}
		}
	})
}
