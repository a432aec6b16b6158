package store_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// A script is an endless row of changes of all kinds, the same in every process,
// for the tests that stop one in the middle. What a store must hold after each
// change is computed here, without the store.

// scriptTime is the time of all versions, and verified a minute after it.
var scriptTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var scriptOptions = store.Options{Now: func() time.Time { return scriptTime }}

// facts are everything that a store says, each by a name of one or two words:
// "doc w07" is the document of the wrapper w07.
type facts map[string]string

// noFacts is what an empty store says.
func noFacts() facts { return facts{"revision": "1"} }

// look asks a store for all facts. Damage of any kind is an error.
func look(s *store.Store) (facts, error) {
	if s.Recovered() != "" || len(s.Unreadable()) > 0 {
		return nil, fmt.Errorf("damaged: %q, %q", s.Recovered(), s.Unreadable())
	}
	f := facts{"revision": fmt.Sprint(s.Revision())}
	ids := []string{}
	for _, e := range s.List() {
		if e.Wrapper == nil {
			return nil, fmt.Errorf("%s is damaged: %s", e.ID, e.Damaged)
		}
		ids = append(ids, e.ID)
		f["doc "+e.ID] = string(e.Wrapper.Document())
		f.set("tool "+e.ID, e.Tool)
		if e.Priority != 0 {
			f["priority "+e.ID] = strconv.Itoa(e.Priority)
		}
		if !e.Verified.IsZero() {
			f["verified "+e.ID] = e.Verified.Format(time.RFC3339Nano)
		}
	}
	for _, r := range s.RemovedWrappers() {
		ids = append(ids, r.ID)
		f["removed "+r.ID] = r.Time.Format(time.RFC3339Nano)
	}
	for _, id := range ids {
		versions, err := s.History(id)
		if err != nil {
			return nil, err
		}
		for _, v := range versions {
			if v.Damaged != "" {
				return nil, fmt.Errorf("version %d of %s is damaged: %s", v.Number, id, v.Damaged)
			}
			f["versions "+id] += version(v.Number, v.Author, v.Time, string(v.Doc))
		}
	}
	for name, value := range s.Settings() {
		f["setting "+name] = value
	}
	for _, r := range s.Allowed() {
		f["allow "+r.Host+" "+r.Port] = fmt.Sprint(r.HTTP)
	}
	names, err := s.ListSealed()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		sealed, err := s.GetSealed(name)
		if err != nil {
			return nil, err
		}
		f["sealed "+name] = string(sealed)
	}
	for _, p := range s.ApprovalPolicies() {
		if p.Damaged {
			return nil, fmt.Errorf("the policy of %s is damaged", p.Wrapper)
		}
		f["approval "+p.Wrapper] = p.Policy + " " + hex.EncodeToString(p.Doc[:])
	}
	for _, tr := range s.Trusted() {
		f["trust "+hex.EncodeToString(tr.Doc[:])] = tr.Wrapper
	}
	return f, nil
}

func version(number uint64, a store.Author, t time.Time, doc string) string {
	return fmt.Sprintf("%d %s %s %q\n", number, a, t.Format(time.RFC3339Nano), doc)
}

func (f facts) set(name, value string) {
	if value == "" {
		delete(f, name)
	} else {
		f[name] = value
	}
}

// of lists the second words of facts with a first word, sorted.
func (f facts) of(first string) (out []string) {
	for name := range f {
		if rest, ok := strings.CutPrefix(name, first+" "); ok {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

func (f facts) revise() {
	n, err := strconv.Atoi(f["revision"])
	if err != nil {
		panic(err)
	}
	f["revision"] = strconv.Itoa(n + 1)
}

// remember adds a version, of which the last 20 are kept; doc is empty for a removal.
func (f facts) remember(id, doc string) {
	lines := strings.SplitAfter(f["versions "+id], "\n")
	lines = lines[:len(lines)-1]
	number := uint64(1)
	if n := len(lines); n > 0 {
		_, err := fmt.Sscan(lines[n-1], &number)
		if err != nil {
			panic(err)
		}
		number++
	}
	lines = append(lines, version(number, store.Human, scriptTime, doc))
	f["versions "+id] = strings.Join(lines[max(0, len(lines)-20):], "")
}

func (f facts) save(w *wrapper.Wrapper) {
	f["doc "+w.ID] = string(w.Document())
	if w.ExposeAsTool {
		f["tool "+w.ID] = "wrap_" + w.ID // no two ids of the script are alike
	}
	f.remember(w.ID, f["doc "+w.ID])
	delete(f, "removed "+w.ID)
}

// A scripted is a store at work on a script.
type scripted struct {
	path   string
	s      *store.Store
	closed bool // a change has closed it and could not open it again
}

// step is change n of the script for a store that says was: what the store says
// then, all of it or, before the change is acknowledged, nothing of it, and the
// change itself.
func step(n int, was facts) (now facts, change func(*scripted) error) {
	rnd := rand.New(rand.NewPCG(77, uint64(n)))
	now = maps.Clone(was)
	document := func(id string) *wrapper.Wrapper {
		more := fmt.Sprintf(`,"description":%q`, strings.Repeat("d", rnd.IntN(1900)))
		if rnd.IntN(2) == 0 {
			more += exposed
		}
		return parse(id, fmt.Sprintf("change %d", n), more)
	}
	key := func(of int) string { return fmt.Sprintf("k%d", rnd.IntN(of)) }
	id := fmt.Sprintf("w%02d", rnd.IntN(20))
	_, there := was["doc "+id]
	switch kind := rnd.IntN(16); {
	case kind < 4 && !there:
		w := document(id)
		now.save(w)
		now.revise()
		return now, func(x *scripted) error { _, err := x.s.By(store.Human).Create(w); return err }
	case kind < 4:
		w := document(id)
		now.save(w)
		now.revise()
		return now, func(x *scripted) error { _, err := x.s.By(store.Human).Update(w); return err }
	case kind < 6 && there:
		for _, word := range []string{"doc ", "tool ", "priority ", "verified "} {
			delete(now, word+id)
		}
		now.remember(id, "")
		now["removed "+id] = scriptTime.Format(time.RFC3339Nano)
		now.revise()
		return now, func(x *scripted) error { _, err := x.s.By(store.Human).Delete(id); return err }
	case kind < 7: // several in one step
		var ws []*wrapper.Wrapper
		for _, i := range rnd.Perm(20)[:2+rnd.IntN(3)] {
			w := document(fmt.Sprintf("w%02d", i))
			now.save(w)
			ws = append(ws, w)
		}
		now.revise()
		return now, func(x *scripted) error { _, _, err := x.s.By(store.Human).Apply(ws, false); return err }
	case kind < 8 && there:
		p := 1 + rnd.IntN(store.MaxPriority)
		if was["priority "+id] == strconv.Itoa(p) {
			p = p%store.MaxPriority + 1
		}
		now["priority "+id] = strconv.Itoa(p)
		now.revise()
		exposed := strings.Contains(was["doc "+id], `"exposeAsTool":true`)
		return now, func(x *scripted) error { _, err := x.s.By(store.Human).SetExposure(id, exposed, &p); return err }
	case kind < 9:
		name := key(10)
		if _, set := was["setting "+name]; set && rnd.IntN(3) == 0 {
			delete(now, "setting "+name)
			return now, func(x *scripted) error { return x.s.UnsetSetting(name) }
		}
		value := fmt.Sprint(n, strings.Repeat("s", rnd.IntN(300)))
		now["setting "+name] = value
		return now, func(x *scripted) error { return x.s.SetSetting(name, value) }
	case kind < 10:
		r := store.AllowRule{Host: key(10) + ".example", Port: "443", HTTP: n%2 == 0}
		name := "allow " + r.Host + " " + r.Port
		if _, set := was[name]; set && rnd.IntN(2) == 0 {
			delete(now, name)
			return now, func(x *scripted) error { _, err := x.s.Disallow(r); return err }
		}
		now[name] = fmt.Sprint(r.HTTP)
		return now, func(x *scripted) error { _, err := x.s.Allow(r); return err }
	case kind < 12:
		name := key(8)
		if _, set := was["sealed "+name]; set && rnd.IntN(4) == 0 {
			delete(now, "sealed "+name)
			return now, func(x *scripted) error { return x.s.DeleteSealed(name) }
		}
		size := 100 + rnd.IntN(400)
		if rnd.IntN(8) == 0 {
			size = rnd.IntN(30_000) // over several pages
		}
		value := make([]byte, size)
		for i := range value {
			value[i] = byte(rnd.Uint32())
		}
		value = fmt.Append(value, n)
		now["sealed "+name] = string(value)
		return now, func(x *scripted) error { return x.s.PutSealed(name, value) }
	case kind < 13:
		doc := [32]byte{byte(rnd.IntN(256)), byte(n), byte(n >> 8), byte(n >> 16)}
		for _, d := range was.of("trust") { // a policy takes back what of the wrapper is trusted
			if was["trust "+d] == id {
				delete(now, "trust "+d)
			}
		}
		p := store.ApprovalPolicy{Wrapper: id, Policy: "always", Doc: doc}
		if _, set := was["approval "+id]; set && rnd.IntN(3) == 0 {
			p.Policy = ""
		}
		now.set("approval "+id, p.Policy)
		if p.Policy != "" {
			now["approval "+id] += " " + hex.EncodeToString(doc[:])
		}
		return now, func(x *scripted) error { return x.s.SetApproval(p) }
	case kind < 14:
		doc := [32]byte{byte(rnd.IntN(256)), byte(n), byte(n >> 8), byte(n >> 16), 1}
		now["trust "+hex.EncodeToString(doc[:])] = id
		return now, func(x *scripted) error { return x.s.Trust(store.Trusted{Wrapper: id, Doc: doc}) }
	case kind < 15: // what a run leaves is written at the latest when the store is closed
		at := scriptTime.Add(time.Duration(n) * time.Second)
		var marked []string
		for _, id := range was.of("doc") {
			if rnd.IntN(3) == 0 {
				marked = append(marked, id)
				now["verified "+id] = at.Format(time.RFC3339Nano)
			}
		}
		return now, func(x *scripted) error {
			for _, id := range marked {
				x.s.MarkVerified(id, at)
			}
			x.closed = true
			err := x.s.Close()
			if err == nil {
				x.s, err = store.Open(x.path, scriptOptions)
				x.closed = err != nil
			}
			return err
		}
	default:
		return now, func(x *scripted) error { _, err := x.s.Reload(); return err }
	}
}

func init() {
	// work PATH FROM TO: opens the store, says "open", does the changes FROM to
	// TO-1 of the script, says each number once it is done, and closes.
	children["work"] = func(args []string) int {
		if err := work(args[0], number(args[1]), number(args[2])); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

func work(path string, from, to int) error {
	s, err := store.Open(path, scriptOptions)
	if err != nil {
		return err
	}
	was, err := look(s)
	if err != nil {
		return err
	}
	fmt.Println("open") // unbuffered: one write
	x := &scripted{path: path, s: s}
	for n := from; n < to; n++ {
		now, change := step(n, was)
		if err := change(x); err != nil {
			return fmt.Errorf("change %d: %w", n, err)
		}
		fmt.Println(n)
		was = now
	}
	return x.s.Close()
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}
