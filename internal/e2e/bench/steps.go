package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"sync"
	"time"
)

// samples are what one program gave in one round, by name: times in ms or µs,
// memory in MiB, as the rows say.
type samples map[string][]float64

// options say how much is measured.
type options struct {
	rounds int
	calls  int           // of one caller; the other stages are multiples
	starts int           // of the shim in a round
	settle time.Duration // before memory at rest is read
	only   *regexp.Regexp
}

// A side is one of the two programs, running.
type side struct {
	*program
	world   *world
	opt     options
	service *server
	client  *client
	got     samples
}

func (s *side) add(name string, v float64) { s.got[name] = append(s.got[name], v) }

// up starts the service and one shim.
func (s *side) up() (err error) {
	if s.service, err = serve(command(s.program.service), s.listening, s.onStderr); err != nil {
		return err
	}
	s.client, err = connect(s.shim(s.service.url))
	return err
}

// down ends both.
func (s *side) down() error {
	var errs []error
	if s.client != nil {
		errs = append(errs, s.client.close())
	}
	if s.service != nil {
		errs = append(errs, s.service.stop())
	}
	s.client, s.service = nil, nil
	return errors.Join(errs...)
}

func (s *side) restart() error {
	if err := s.down(); err != nil {
		return err
	}
	return s.up()
}

func (s *side) pids() []int { return []int{s.service.cmd.Process.Pid, s.client.cmd.Process.Pid} }

// A step measures one thing of one side. The two sides take turns at each.
type step struct {
	name  string
	times int // turns in a round; 0: one
	do    func(*side) error
}

// steps are a round, in order: later ones count on what earlier ones started.
func steps(o options) []step {
	return []step{
		{"start of the shim", o.starts, (*side).start},
		{"start of the service", 3, (*side).startService},
		{"tools/list and memory at rest", 0, (*side).rest},
		{"further clients", 0, (*side).clients},
		{"object", turns, func(s *side) error { return s.latency("object") }},
		{"table", turns, func(s *side) error { return s.latency("table") }},
		{"throughput 8", 0, func(s *side) error { return s.rate(8, 2*o.calls) }},
		{"throughput 32 and connections", 0, func(s *side) error { return s.rate(32, 5*o.calls/2) }},
		{"eight slow calls", 0, (*side).slow},
		{"memory after the calls", 0, (*side).after},
		{"big", 0, (*side).big},
	}
}

// round measures every step once, by the sides in this order.
func round(ctx context.Context, sides []*side, o options) (err error) {
	defer func() {
		for _, s := range sides {
			err = errors.Join(err, s.down())
		}
	}()
	for _, s := range sides {
		s.got = samples{}
		if err := s.up(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for name, file := range s.sizes {
			info, err := os.Stat(file)
			if err != nil {
				return err
			}
			s.add(name, float64(info.Size())/1e6)
		}
	}
	for _, st := range steps(o) {
		if !o.only.MatchString(st.name) {
			continue
		}
		for range max(st.times, 1) {
			for _, s := range sides {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := st.do(s); err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, st.name, err)
				}
			}
		}
	}
	return nil
}

func (s *side) start() error {
	begin := time.Now()
	c, err := connect(s.shim(s.service.url))
	if err != nil {
		return err
	}
	s.add("start", ms(begin))
	return c.close()
}

// startService ends the service and times a new one, with what it has stored.
func (s *side) startService() error {
	if err := s.down(); err != nil {
		return err
	}
	begin := time.Now()
	service, err := serve(command(s.program.service), s.listening, s.onStderr)
	if err != nil {
		return err
	}
	s.add("service", ms(begin))
	s.service = service
	s.client, err = connect(s.shim(service.url))
	return err
}

// rest reads what a client reads first and then the memory, once all is quiet.
func (s *side) rest() error {
	if err := s.restart(); err != nil {
		return err
	}
	before, begin := s.client.received.Load(), time.Now()
	if err := s.client.list(); err != nil {
		return err
	}
	s.add("list", ms(begin))
	s.add("list bytes", float64(s.client.received.Load()-before))
	time.Sleep(s.opt.settle)
	if m, known := memory(false, s.pids()...); known {
		s.add("rest", m)
	}
	return nil
}

// clients starts three more shims and reads what each adds, in itself and in the service.
func (s *side) clients() (err error) {
	const more = 3
	before, known := memory(false, s.pids()...)
	pids := s.pids()
	for range more {
		c, failed := connect(s.shim(s.service.url))
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, c.close()) }()
		if err := c.list(); err != nil {
			return err
		}
		pids = append(pids, c.cmd.Process.Pid)
	}
	time.Sleep(s.opt.settle)
	if after, _ := memory(false, pids...); known {
		s.add("client", (after-before)/more)
	}
	return nil
}

const (
	warm  = 48 // calls before those that count
	turns = 4  // of the calls of one caller in a round: what disturbs for a moment disturbs both programs
)

// inTurn is how many calls of one caller make a turn.
func (o options) inTurn() int { return max(o.calls/turns, 1) }

// total is how many calls memory is read after.
func (o options) total() int {
	return 2*turns*o.inTurn() + 2*o.calls + 5*o.calls/2 + 4*warm + 8
}

func (s *side) latency(name string) error {
	bytes := s.client.received.Load()
	if _, err := s.many(name, 1, 1); err != nil {
		return err
	}
	s.add(name+" bytes", float64(s.client.received.Load()-bytes))
	if _, err := s.many(name, warm/turns-1, 1); err != nil {
		return err
	}
	runtime.GC() // ours, so that it does not fall into the measured time
	before, known := processor(s.pids()...)
	calls := s.opt.inTurn()
	took, err := s.many(name, calls, 1)
	if err != nil {
		return err
	}
	after, _ := processor(s.pids()...)
	if known {
		s.add(name+" processor", (after-before)*1e6/float64(calls))
	}
	s.got[name] = append(s.got[name], took...)
	return nil
}

func (s *side) rate(callers, calls int) error {
	if _, err := s.many("object", warm, callers); err != nil {
		return err
	}
	runtime.GC()
	before, err := s.world.connections()
	if err != nil {
		return err
	}
	begin := time.Now()
	if _, err := s.many("object", calls, callers); err != nil {
		return err
	}
	s.add(fmt.Sprint("rate ", callers), float64(calls)/time.Since(begin).Seconds())
	after, err := s.world.connections()
	if err != nil {
		return err
	}
	if callers == 32 {
		s.add("connections", float64(after-before)*1000/float64(calls))
	}
	return nil
}

func (s *side) slow() error {
	begin := time.Now()
	_, err := s.many("slow", 8, 8)
	s.add("slow", ms(begin))
	return err
}

func (s *side) after() error {
	time.Sleep(s.opt.settle)
	if m, known := memory(false, s.pids()...); known {
		s.add("after", m)
		if rest := s.got["rest"]; len(rest) > 0 {
			s.add("growth", m-rest[0])
		}
	}
	return nil
}

// big measures processes that have done nothing else, for the sake of their peak.
func (s *side) big() error {
	if err := s.restart(); err != nil {
		return err
	}
	took, err := s.many("big", 6, 1)
	if err != nil {
		return err
	}
	s.add("big first", took[0])
	s.got["big"] = append(s.got["big"], took[1:]...)
	if m, known := memory(true, s.pids()...); known {
		s.add("big peak", m)
	}
	return nil
}

// many makes calls, so many at a time, checks every answer, and returns what
// each took, in ms.
func (s *side) many(name string, calls, callers int) ([]float64, error) {
	c := s.calls[name]
	took := make([]float64, calls)
	var mu sync.Mutex // guards next and failed
	next, failed := 0, error(nil)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil || next == calls {
			return -1
		}
		next++
		return next - 1
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := take(); i >= 0; i = take() {
				begin := time.Now()
				text, err := s.client.call(c.tool, c.args)
				took[i] = ms(begin)
				if err == nil {
					err = c.check(text)
				}
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return took, failed
}

// ask makes one request to the API without what is measured.
func (w *world) ask(path string) ([]byte, error) {
	resp, err := direct.Get(w.api.url + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the API answers %s to %s", resp.Status, path)
	}
	return io.ReadAll(resp.Body)
}

// connections is how many the API has been opened, but for those that asked for this.
func (w *world) connections() (int, error) {
	text, err := w.ask("/stats")
	if err != nil {
		return 0, err
	}
	w.asked++
	var v struct{ Connections int }
	err = json.Unmarshal(text, &v)
	return v.Connections - w.asked, err
}

func ms(since time.Time) float64 { return float64(time.Since(since)) / 1e6 }
