package shim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// The tool list follows the daemon's manifest. A change that was made through
// this process is followed before its answer goes out; one background call
// waits for the changes of others. Only differences reach the SDK, because it
// tells the client of a change even when a tool was replaced by its equal.

// A pace is how fast the list follows. Tests have their own.
type pace struct {
	firstList time.Duration // the longest that tools/list waits for the first manifest
	settle    time.Duration // quiet time after a change of others: one notice for a burst
	settles   int           // the most of them, for a burst that does not end
	retry     time.Duration // pause after a failure; doubled up to retryMax
	retryMax  time.Duration
}

var usualPace = pace{
	firstList: 200 * time.Millisecond,
	settle:    100 * time.Millisecond, settles: 10,
	retry: time.Second, retryMax: 30 * time.Second,
}

// syncTime is how long the answer of a change may wait for the new list.
const syncTime = 5 * time.Second

// A toolSet is the generated tools that are registered, and why others are not.
type toolSet struct {
	limit int // the most tools; 0: none, and nothing is ever fetched for them
	pace  pace

	begin     chan struct{} // closed by the first message of the session
	beginOnce sync.Once
	first     chan struct{} // closed when the first manifest is there, or cannot be had
	firstOnce sync.Once
	news      chan struct{} // ends a pause of follow early
	away      atomic.Bool   // follow has not reached the daemon

	mu       sync.Mutex                   // guards the rest, and that changes come one after the other
	revision uint64                       // of the manifest that is registered
	applied  uint64                       // counts manifests that were registered
	since    string                       // the mark of entries, for the daemon; "" if it gave none
	entries  map[string]api.ManifestEntry // wrappers that want to be tools, or for which there is recall_memory, by id
	marks    map[string]mark              // of entries; replaced, never changed
	tools    map[string]string            // the line of each registered tool, by name
	refused  map[string]string            // why the SDK does not take a line
	changes  uint64                       // counts changes of tools
	listed   uint64                       // changes when the client last asked for the list
	asked    bool                         // it has asked at all
}

func newToolSet(limit int) *toolSet {
	return &toolSet{
		limit: limit, pace: usualPace, begin: make(chan struct{}), first: make(chan struct{}), news: make(chan struct{}, 1),
		entries: map[string]api.ManifestEntry{}, tools: map[string]string{}, refused: map[string]string{},
	}
}

// manifest fetches the list of all wrappers and lets the tools follow it.
func (s *Server) manifest(ctx context.Context) (*api.Manifest, error) {
	before := s.tools.count()
	m, err := s.client.Manifest(ctx, 0)
	if err == nil {
		s.apply(m, before)
	}
	return m, err
}

// fetch asks for what the tool list is made of, as far as it has changed;
// before is for apply.
func (s *Server) fetch(ctx context.Context, after uint64) (m *api.Manifest, before uint64, err error) {
	t := s.tools
	t.mu.Lock()
	before = t.applied
	q := &api.ManifestQuery{After: after, Tools: true, Since: t.since}
	t.mu.Unlock()
	m, err = s.client.Select(ctx, q)
	return m, before, err
}

// count is how many manifests were applied, for apply.
func (t *toolSet) count() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.applied
}

// take puts what m says into entries; false: that is old news. A manifest that
// was asked for before the last one was applied, and is no newer, is. A lower
// revision alone is not: the store may have been restored. Changes go on from
// nothing but the entries that they were asked for. The caller holds mu.
func (t *toolSet) take(m *api.Manifest, before uint64) bool {
	if before != t.applied && m.Revision <= t.revision || m.Since != "" && m.Since != t.since {
		return false
	}
	t.applied++
	t.revision, t.since = m.Revision, m.Mark
	if m.Since == "" {
		clear(t.entries)
	}
	for _, id := range m.Removed {
		delete(t.entries, id)
	}
	for _, e := range m.Wrappers {
		if isTool(e) || e.Index != "" {
			t.entries[e.ID] = e
		} else {
			delete(t.entries, e.ID)
		}
	}
	return true
}

// apply registers what m asks for that is not registered yet and removes the
// rest; false: m is old news.
func (s *Server) apply(m *api.Manifest, before uint64) bool {
	t := s.tools
	if t.limit == 0 {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.take(m, before) {
		return false
	}
	entries := slices.Collect(maps.Values(t.entries))
	tools, marks := chooseTools(entries, t.limit, t.refused)
	t.marks = marks
	keep := make(map[string]bool, len(tools))
	for _, g := range tools {
		keep[g.definition.Name] = true
	}
	for _, e := range entries {
		keep[recallName] = keep[recallName] || e.Index != ""
	}
	var gone []string
	for name := range t.tools {
		if !keep[name] {
			gone = append(gone, name)
			delete(t.tools, name)
		}
	}
	changed := len(gone) > 0
	for _, g := range tools {
		name := g.definition.Name
		if t.tools[name] == g.line {
			continue
		}
		changed = true
		if err := s.addTool(g); err != nil {
			s.log.Error("a tool was refused", "tool", name, "err", err)
			t.refused[g.line] = "hb-rest cannot show it"
			_, t.marks = chooseTools(entries, t.limit, t.refused)
			gone = append(gone, name) // an older one of this name
			delete(t.tools, name)
			continue
		}
		t.tools[name] = g.line
	}
	if keep[recallName] && t.tools[recallName] == "" { // it never changes
		r := recallTool()
		s.mcp.AddTool(r.definition(), s.handler(r))
		t.tools[recallName] = r.schema
		changed = true
	}
	if len(gone) > 0 {
		s.mcp.RemoveTools(gone...)
	}
	if changed {
		t.changes++
	}
	return true
}

// addTool registers a tool. The SDK panics on schemas that it does not like;
// all known ones were refused before.
func (s *Server) addTool(g *generatedTool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in AddTool: %s", panicKind(p))
		}
	}()
	s.mcp.AddTool(g.definition, s.generatedHandler(g))
	return nil
}

// marks says of each of these wrappers that wants to be a tool what became of
// that. Where there are tools, it says so of all wrappers.
func (s *Server) marks(entries []api.ManifestEntry) map[string]mark {
	t := s.tools
	if t.limit == 0 {
		_, marks := chooseTools(entries, 0, nil)
		return marks
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.marks
}

// listMarks is marks of a list that the daemon has just made; the tools follow
// first if it is another one than they are of.
func (s *Server) listMarks(ctx context.Context, m *api.Manifest) map[string]mark {
	if s.tools.limit > 0 && m.Revision != s.tools.known() && slices.ContainsFunc(m.Wrappers, isTool) {
		if err := s.sync(ctx); err != nil {
			s.log.Warn("the tool list follows later", "err", err)
		}
	}
	return s.marks(m.Wrappers)
}

// sync lets the tools follow the daemon now.
func (s *Server) sync(ctx context.Context) error {
	for { // again only when another manifest was applied meanwhile
		m, before, err := s.fetch(ctx, 0)
		if err != nil {
			return err
		}
		if s.apply(m, before) || m.Revision <= s.tools.known() {
			return nil
		}
	}
}

// changed lets the tools follow a change that was made through this process
// and returns the mark of the wrapper. wants is whether it wants to be a tool,
// indexing whether what it reads is to be found again.
// The change is done, so a failure here is not the call's: the list follows
// later.
func (s *Server) changed(ctx context.Context, r *api.ChangeResult, wants, indexing bool) mark {
	t := s.tools
	switch {
	case t.limit == 0 && wants:
		return mark{state: disabled}
	case t.limit == 0:
		return mark{}
	}
	t.mu.Lock()
	_, wanted := t.entries[r.ID]
	same := !wants && !indexing && !wanted && t.applied > 0 && r.Revision == t.revision+1
	if same {
		t.revision = r.Revision // no tool comes or goes: nothing to fetch
	}
	t.mu.Unlock()
	if same {
		return mark{}
	}
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	if err := s.sync(ctx); err != nil {
		s.log.Warn("the tool list follows later", "err", err)
		t.wake()
		return mark{}
	}
	return s.marks(nil)[r.ID]
}

// noticed looks at what the last answer told in passing.
func (s *Server) noticed(reached bool) {
	t := s.tools
	if t.limit == 0 {
		return
	}
	if s.client.Revision() > t.known() || reached && t.away.Load() {
		t.wake()
	}
}

// known is the revision that is registered.
func (t *toolSet) known() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.revision
}

// wake ends a pause of follow.
func (t *toolSet) wake() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// follow keeps the tools as the daemon has them until ctx ends.
func (s *Server) follow(ctx context.Context) {
	t := s.tools
	select {
	case <-t.begin:
	case <-ctx.Done():
		return
	}
	pause := t.pace.retry
	for ctx.Err() == nil {
		known, start := t.known(), time.Now()
		m, before, err := s.fetch(ctx, known)
		if err == nil && known > 0 && m.Revision > t.known() { // not a change of our own
			m, before = s.settled(ctx, m, before)
		}
		if err == nil {
			s.apply(m, before)
		}
		t.firstOnce.Do(func() { close(t.first) })
		if ctx.Err() != nil {
			return
		}
		if away := err != nil; away != t.away.Swap(away) {
			if away {
				s.log.Warn("the daemon is away; tools stay as they are", "err", err)
			} else {
				s.log.Info("the daemon is back")
			}
		}
		// A daemon that answers at once without news does not know how to wait.
		if err == nil && (m.Revision != known || time.Since(start) >= t.pace.retry) {
			pause = t.pace.retry
			continue
		}
		if err == nil && m.Revision == 0 {
			pause = t.pace.retry // an empty store: there is no revision to wait behind
		}
		if woken := t.pauseFor(ctx, pause); woken {
			pause = t.pace.retry
			continue
		}
		pause = min(2*pause, t.pace.retryMax)
	}
}

// pauseFor waits and reports whether news ended it early.
func (t *toolSet) pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-t.news:
		return true
	}
	return false
}

// settled waits until a burst of changes is over, so that the client is told
// once.
func (s *Server) settled(ctx context.Context, m *api.Manifest, before uint64) (*api.Manifest, uint64) {
	for range s.tools.pace.settles {
		timer := time.NewTimer(s.tools.pace.settle)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return m, before
		}
		st, err := s.client.Status(ctx) // small, unlike the manifest
		if err != nil || st.Revision == m.Revision {
			break
		}
		newer, since, err := s.fetch(ctx, 0)
		if err != nil {
			break
		}
		m, before = newer, since
	}
	return m, before
}

// ready waits for the first manifest, for a moment: a client asks for its list
// right after initialize, and some never ask again.
func (t *toolSet) ready(ctx context.Context) {
	timer := time.NewTimer(t.pace.firstList)
	defer timer.Stop()
	select {
	case <-t.first:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// following is the middleware of messages that arrive: the first one starts
// following, and a list, or a call of a tool that may be about to come, waits
// for the first manifest.
func (s *Server) following(next mcp.MethodHandler) mcp.MethodHandler {
	t, reserved := s.tools, reservedNames()
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		t.beginOnce.Do(func() { close(t.begin) })
		switch method {
		case "tools/list":
			t.ready(ctx)
			t.mu.Lock()
			t.asked, t.listed = true, t.changes // before the list is made: then a change in between is told
			t.mu.Unlock()
		case "tools/call":
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && (!reserved[p.Name] || p.Name == recallName) {
				t.ready(ctx)
			}
		}
		return next(ctx, method, req)
	}
}

// telling is the middleware of messages that leave: it drops the notice of a
// change to a client that has not seen the list as it was before.
func (s *Server) telling(next mcp.MethodHandler) mcp.MethodHandler {
	t := s.tools
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "notifications/tools/list_changed" {
			t.mu.Lock()
			current := !t.asked || t.listed == t.changes
			t.mu.Unlock()
			if current {
				return nil, nil
			}
		}
		return next(ctx, method, req)
	}
}
