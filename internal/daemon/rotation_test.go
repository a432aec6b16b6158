package daemon_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/bridge"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// A counter is an API that answers with the number it was sent and counts what
// reaches it.
type counter struct {
	url    string
	writes atomic.Int64
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.writes.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

// doc is a wrapper that sends a number and shows it.
func (c *counter) doc() string {
	return `{"schemaVersion":1,"id":"write","name":"Write","request":{"method":"POST","url":"` + c.url + `/","body":{"n":"{{n}}"}},` +
		`"inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},` +
		`"response":{"schemaVersion":1,"mode":"document","fields":{"N":"n"},"record":{"n":"n"}}}`
}

// callers are shims that call and count what they are told. The first two
// write, the others read.
type callers struct {
	t    *testing.T
	stop chan struct{}
	wg   sync.WaitGroup

	mu     sync.Mutex // guards the rest
	done   []int64    // calls that were answered well, by shim
	budget []int      // calls that a shim may still make in this round
	more   chan struct{}
	codes  map[string]int64 // of calls that failed
	wrong  int
}

const (
	writers = 2
	// ahead is how many calls a shim may make in a round: more than are waited
	// for, so that most are calling when the round ends.
	ahead = 3
)

// startCallers lets each agent call, round by round, until end.
func startCallers(t *testing.T, agents []*agent) *callers {
	c := &callers{
		t: t, stop: make(chan struct{}), more: make(chan struct{}), codes: map[string]int64{},
		done: make([]int64, len(agents)), budget: make([]int, len(agents)),
	}
	for i, a := range agents {
		c.wg.Go(func() {
			for n := 9007199254740993 + i*1_000_000; c.mayGo(i); n++ {
				tool, args, want := "wrap_list", `{}`, "write - Write - POST"
				if i < writers {
					tool, args = "wrap_run", fmt.Sprintf(`{"id":"write","args":{"n":%d},"format":"json"}`, n)
					want = fmt.Sprintf(`[{"n":%d}]`, n)
				}
				text, failed, err := a.call(tool, args)
				c.told(i, want, text, failed, err)
			}
		})
	}
	return c
}

// mayGo waits for the next round when a shim is ahead; false at the end.
func (c *callers) mayGo(i int) bool {
	for {
		c.mu.Lock()
		more, left := c.more, c.budget[i]
		if left > 0 {
			c.budget[i]--
		}
		c.mu.Unlock()
		select {
		case <-c.stop:
			return false
		default:
		}
		if left > 0 {
			return true
		}
		select {
		case <-more:
		case <-c.stop:
		}
	}
}

// told counts an answer.
func (c *callers) told(i int, want, text string, failed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case failed:
		c.budget[i]++
		code, _, _ := strings.Cut(text, ":")
		if c.codes[code]++; c.codes[code] == 1 {
			c.t.Logf("the first %s: %s", code, text)
		}
	case err == nil && strings.HasPrefix(text, want):
		c.done[i]++
	default:
		if c.wrong++; c.wrong <= 5 {
			c.t.Errorf("shim %d: %v %q, want %q", i, err, text, want)
		}
	}
}

// round waits until each shim has been answered well twice from now on: the
// second of these calls began after this moment.
func (c *callers) round() {
	c.t.Helper()
	c.mu.Lock()
	from := slices.Clone(c.done)
	for i := range c.budget {
		c.budget[i] = ahead
	}
	close(c.more)
	c.more = make(chan struct{})
	c.mu.Unlock()
	deadline := time.Now().Add(time.Minute)
	for ; ; time.Sleep(time.Millisecond) {
		waiting := -1
		c.mu.Lock()
		for i, n := range c.done {
			if n < from[i]+2 {
				waiting = i
			}
		}
		c.mu.Unlock()
		if waiting < 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("shim %d got no answer any more", waiting)
		}
	}
}

func (c *callers) end() {
	close(c.stop)
	c.wg.Wait()
}

// total is how many calls were answered well, and how many of them wrote.
func (c *callers) total() (all, writes int64) {
	for i, n := range c.done {
		all += n
		if i < writers {
			writes += n
		}
	}
	return all, writes
}

// Promise 8: rotation never breaks a client. 300 times the token changes under
// eight shims that call without a pause, and under somebody who reads the file as
// fast as it can be read, 50,000 times at least. Each read has a whole token; each
// shim reads the file anew when it is refused, no call fails, none is sent twice.
func TestTokenChangesUnderCalls(t *testing.T) {
	t.Parallel()
	changes, least := soak.Rounds(20, 300), int64(soak.Rounds(1000, 50_000))
	up := newCounter(t)
	w := newWorld(t, private, outbound.Options{})
	w.create(up.doc())

	// A second door to the same daemon, with a token file that changes while
	// nobody is inside: a call sees the old token or the new one, never half.
	var gate sync.RWMutex
	var refused atomic.Int64
	holder := &token.Holder{}
	var written sync.Map // each token, from before it was in the file
	written.Store(w.tok, true)
	change := func() {
		gate.Lock()
		defer gate.Unlock()
		tok := token.New()
		written.Store(tok, true)
		holder.Set(tok)
		if err := token.Write(w.cfg.TokenPath, tok); err != nil {
			t.Error(err)
		}
	}
	change()
	inner := bridge.New(w.d, holder, bridge.Options{Version: "1.2.3"})
	door := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		gate.RLock()
		defer gate.RUnlock()
		s := &statusWriter{ResponseWriter: rw}
		inner.ServeHTTP(s, r)
		if s.status == http.StatusUnauthorized {
			refused.Add(1)
		}
	}))
	t.Cleanup(door.Close)

	agents := make([]*agent, 8)
	for i := range agents {
		agents[i] = w.agent(door.Listener.Addr().String())
	}
	var reads, bad atomic.Int64
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			data, err := os.ReadFile(w.cfg.TokenPath) // as a client in any language would
			tok, whole := strings.CutSuffix(string(data), "\n")
			if _, known := written.Load(tok); err != nil || !whole || !known {
				if bad.Add(1) <= 5 {
					t.Errorf("read %d: %v, %d bytes", reads.Load(), err, len(data))
				}
			}
			reads.Add(1)
		}
	})
	c := startCallers(t, agents)
	made := 0
	for ; made < changes || reads.Load() < least; made++ {
		change()
		c.round()
	}
	c.end()
	close(stop)
	reader.Wait()
	var failed int64
	for _, n := range c.codes {
		failed += n
	}
	if failed > 0 {
		t.Errorf("failed calls: %v", c.codes)
	}
	all, writes := c.total()
	if n := up.writes.Load(); n != writes {
		t.Errorf("%d writes were answered, %d arrived", writes, n)
	}
	soak.Measured(t, "%d changes of the token, %d reads of its file, %d of them short or wrong; %d calls answered, %d of them refused once and sent again, %d failed, %d writes sent twice",
		made, reads.Load(), bad.Load(), all, refused.Load(), failed, up.writes.Load()-writes)
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(code int) {
	s.status = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// 300 times the daemon restarts under eight shims that call without a pause.
// While it is away they are told so; never that their token is wrong, that the
// token file cannot be read, or that a stranger has the port.
func TestRestartsUnderCalls(t *testing.T) {
	t.Parallel()
	restarts := soak.Rounds(10, 300)
	up := newCounter(t)
	addr := fixedAddr(t) // a real daemon keeps its port too
	w := newWorld(t, map[string]string{"HB_WRAP_ALLOW_PRIVATE": "1", "HB_WRAP_ADDR": addr}, outbound.Options{})
	w.create(up.doc())
	agents := make([]*agent, 8)
	for i := range agents {
		agents[i] = w.agent(addr)
	}
	c := startCallers(t, agents)
	for range restarts {
		c.round()
		w.stop()
		w.start()
	}
	c.round()
	c.end()
	for code := range c.codes {
		if code != "BRIDGE_UNREACHABLE" && code != "SHUTTING_DOWN" {
			t.Errorf("failed calls: %v", c.codes)
		}
	}
	// A write may arrive although its caller got no answer; never twice.
	all, writes := c.total()
	if n := up.writes.Load(); n < writes || n > writes+c.codes["BRIDGE_UNREACHABLE"] {
		t.Errorf("%d writes were answered, %d arrived, %v", writes, n, c.codes)
	}
	soak.Measured(t, "%d restarts of the daemon, %d calls answered; told while it was away: %v", restarts, all, c.codes)
}

// fixedAddr is an address that is free and stays so while nobody listens there:
// the system hands out ports from 32768 on by itself.
func fixedAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port from 20000 to 30000")
	return ""
}
