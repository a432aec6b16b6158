package audit_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// memory keeps rows as the store does, and fails on demand.
type memory struct {
	mu      sync.Mutex
	rows    [][]byte
	groups  []int
	fail    error
	land    bool          // a failing Append keeps its rows all the same
	hold    chan struct{} // Append waits for it
	bytes   int64
	rotated [][]byte // first rows of files
	failRot error
}

func (m *memory) append(rows [][]byte) error {
	if m.hold != nil {
		<-m.hold
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil || m.land {
		for _, r := range rows {
			m.rows = append(m.rows, bytes.Clone(r))
			m.bytes += int64(len(r))
		}
	}
	if m.fail == nil {
		m.groups = append(m.groups, len(rows))
	}
	return m.fail
}

func (m *memory) tail(n int) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rows[max(len(m.rows)-n, 0):]), nil
}

func (m *memory) scan(from uint64, f func([]byte) error) error {
	m.mu.Lock()
	rows := slices.Clone(m.rows)
	m.mu.Unlock()
	for _, r := range rows {
		if len(r) >= 8 && binary.BigEndian.Uint64(r) < from {
			continue
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) size() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

func (m *memory) rotate(first []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failRot != nil {
		return m.failRot
	}
	m.bytes = int64(len(first))
	m.rows = append(m.rows, first)
	m.rotated = append(m.rotated, first)
	return nil
}

func (m *memory) set(fail error, land bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail, m.land = fail, land
}

func (m *memory) options() audit.Options {
	return audit.Options{Append: m.append, Tail: m.tail, Scan: m.scan}
}

func open(t testing.TB, o audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLog(t testing.TB, l *audit.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func headOf(l *audit.Log) string {
	seq, hash := l.Head()
	return fmt.Sprintf("%d:%s", seq, hash)
}

var when = time.Date(2026, 11, 30, 12, 0, 0, 5e6, time.UTC)

func read(call string) audit.Row {
	return audit.Row{
		Time: when, Kind: audit.KindRun, Call: call, Wrapper: "orders.list", Method: "GET", Host: "api.example.com",
		Status: 200, Bytes: 1234, Duration: 56 * time.Millisecond,
	}
}

func write(call string) audit.Row {
	return audit.Row{Time: when, Kind: audit.KindRun, Call: call, Wrapper: "orders.create", Method: "POST", Host: "api.example.com:8443"}
}

func done(r audit.Row, status int, code fault.Code) audit.Row {
	r.Status, r.Error, r.Duration = status, code, time.Second
	return r
}

func mustFail(t *testing.T, err error, code fault.Code, says ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code {
		t.Errorf("error %v, want %s", err, code)
		return
	}
	for _, s := range says {
		if !strings.Contains(f.Message, s) {
			t.Errorf("message %q does not say %q", f.Message, s)
		}
	}
}

func TestRowsComeBack(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	ctx := t.Context()
	if rows, next, err := l.Last(10); len(rows) != 0 || next != 0 || err != nil {
		t.Errorf("an empty log: %v, %d, %v", rows, next, err)
	}
	l.Result(read("c1"))
	if err := l.Intent(ctx, write("c2")); err != nil {
		t.Fatal(err)
	}
	rejected := done(write("c2"), 409, "UPSTREAM_CONFLICT")
	l.Result(rejected)
	change := audit.Row{Time: when, Kind: audit.KindChange, Wrapper: "orders.list", Author: audit.AuthorAgent, Action: audit.ActionWrapperUpdated}
	if err := l.Intent(ctx, change); err != nil {
		t.Fatal(err)
	}
	if err := l.Intent(ctx, write("c3")); err != nil { // its result never comes
		t.Fatal(err)
	}
	closeLog(t, l)
	closeLog(t, l) // a second time

	want := []audit.Merged{
		{Seq: 2, Row: read("c1")},
		{Seq: 4, Row: rejected},
		{Seq: 5, Row: change},
		{Seq: 6, Row: write("c3"), Outcome: audit.OutcomeUnknown},
	}
	check := func(l *audit.Log) {
		t.Helper()
		rows, next, err := l.Last(10)
		if err != nil || next != 6 {
			t.Errorf("next %d, %v, want 6", next, err)
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		rows, _, _ = l.Last(2)
		if diff := cmp.Diff(want[2:], rows); diff != "" {
			t.Errorf("last two (-want +got):\n%s", diff)
		}
		report, err := l.Verify(ctx, headOf(l))
		good := audit.Report{OK: true, Rows: 6, First: 1, Head: headOf(l), HeadSeen: true}
		if diff := cmp.Diff(good, report); diff != "" || err != nil {
			t.Errorf("report, %v (-want +got):\n%s", err, diff)
		}
	}
	check(l) // reading goes on
	again := open(t, m.options())
	defer closeLog(t, again)
	if headOf(again) != headOf(l) {
		t.Errorf("the head after opening again is %s, was %s", headOf(again), headOf(l))
	}
	check(again)
}

// Two hops of one call, and pages: each result belongs to the newest intent of
// its kind that has none.
func TestMerging(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	ctx := t.Context()
	other := write("c1")
	other.Host = "other.example.com"
	mint := audit.Row{Time: when, Kind: audit.KindMint, Call: "c1", Method: "POST", Host: "login.example.com"}
	lone := write("")
	for _, r := range []audit.Row{mint, write("c1"), other, write("c1"), lone} {
		if err := l.Intent(ctx, r); err != nil {
			t.Fatal(err)
		}
		if r == mint {
			continue // minting failed in a way that nobody saw
		}
		l.Result(done(r, 200, ""))
	}
	closeLog(t, l)
	rows, _, err := l.Last(100)
	want := []audit.Merged{
		{Seq: 2, Row: mint, Outcome: audit.OutcomeUnknown},
		{Seq: 4, Row: done(write("c1"), 200, "")},
		{Seq: 6, Row: done(other, 200, "")},
		{Seq: 8, Row: done(write("c1"), 200, "")},
		// Without a call id nothing says that the two belong together.
		{Seq: 9, Row: lone, Outcome: audit.OutcomeUnknown},
		{Seq: 10, Row: done(lone, 200, "")},
	}
	if diff := cmp.Diff(want, rows); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestLimitOfLast(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	for i := range audit.MaxRows + 1 {
		l.Result(read(fmt.Sprint("c", i)))
	}
	closeLog(t, l)
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, audit.MaxRows: audit.MaxRows, audit.MaxRows + 1: audit.MaxRows} {
		rows, next, err := l.Last(n)
		if len(rows) != want || next != audit.MaxRows+2 || err != nil {
			t.Errorf("Last(%d): %d rows, next %d, %v, want %d rows", n, len(rows), next, err, want)
		}
		if n > 0 && rows[len(rows)-1].Call != fmt.Sprint("c", audit.MaxRows) {
			t.Errorf("Last(%d) ends with %v", n, rows[len(rows)-1])
		}
	}
}

// Whatever a caller puts into a row, only what has the shape of the field gets
// onto the disk, and there is no field for anything else.
func TestNothingElseEnters(t *testing.T) {
	fields := map[string]string{}
	for f := range reflect.TypeFor[audit.Row]().Fields() {
		fields[f.Name] = f.Type.String()
	}
	want := map[string]string{
		"Time": "time.Time", "Kind": "audit.Kind", "Call": "string", "Wrapper": "string", "Method": "string", "Host": "string",
		"Status": "int", "Bytes": "int64", "Duration": "time.Duration", "Error": "fault.Code", "Author": "audit.Author", "Action": "audit.Action",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Fatalf("the fields of a row (-want +got):\n%s", diff)
	}
	canaries := []string{
		"/v1/orders/CANARY", "CANARY?token=x", "key=CANARY", "Authorization: CANARY", "Bearer CANARY", `{"card":"CANARY"}`,
		"user:CANARY@api.example.com", "secret/CANARY", "CANARY name", "CANARY\n", "CANARY\x00", "CANARYé", "<CANARY>", "%CANARY", "a,CANARY", "'CANARY'",
		strings.Repeat("C", 300) + "ANARY",
	}
	m := &memory{}
	l := open(t, m.options())
	for _, c := range canaries {
		r := audit.Row{
			Time: when, Kind: audit.Kind(c), Call: c, Wrapper: c, Method: c, Host: c,
			Error: fault.Code(c), Author: audit.Author(c), Action: audit.Action(c),
		}
		l.Result(r)
		for _, k := range []audit.Kind{audit.KindRun, audit.KindChange, audit.KindAudit} {
			r.Kind = k
			if err := l.Intent(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeLog(t, l)
	for i, row := range m.rows {
		if bytes.Contains(row, []byte("ANARY")) || len(row) > 150 {
			t.Errorf("row %d holds %q", i+1, row)
		}
	}
	rows, _, err := l.Last(4)
	if err != nil {
		t.Fatal(err)
	}
	empty := audit.Row{Time: when, Error: "INTERNAL"}
	shown := make([]audit.Row, 4)
	for i, k := range []audit.Kind{audit.KindOther, audit.KindRun, audit.KindChange, audit.KindOther} {
		shown[i] = empty
		shown[i].Kind = k
	}
	shown[2].Action = audit.ActionOther
	for i := range rows {
		if diff := cmp.Diff(shown[i], rows[i].Row); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestLimitsOfTexts(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	at := audit.Row{
		Time: when, Kind: audit.KindRun, Call: strings.Repeat("c", audit.MaxCall), Wrapper: strings.Repeat("w", audit.MaxWrapper),
		Method: strings.Repeat("M", audit.MaxMethod), Host: strings.Repeat("h", audit.MaxHost), Status: 999, Bytes: 1 << 62, Duration: 1000 * time.Hour,
	}
	over := at
	over.Call += "c"
	over.Wrapper += "w"
	over.Method += "M"
	over.Host += "h"
	over.Status++
	l.Result(at)
	l.Result(over)
	l.Result(audit.Row{Time: time.UnixMilli(-1), Kind: audit.KindTest, Host: "[2606:4700::1]:8443", Status: -1, Bytes: -1, Duration: -1})
	closeLog(t, l)
	rows, _, err := l.Last(3)
	want := []audit.Merged{
		{Seq: 2, Row: at},
		{Seq: 3, Row: audit.Row{Time: when, Kind: audit.KindRun, Status: 999, Bytes: 1 << 62, Duration: 1000 * time.Hour}},
		{Seq: 4, Row: audit.Row{Time: time.UnixMilli(0).UTC(), Kind: audit.KindTest, Host: "[2606:4700::1]:8443"}},
	}
	if diff := cmp.Diff(want, rows); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A lone read row is on its way within 20 ms; rows that come together go
// together; an intent does not wait for company.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := open(t, m.options())
		start := time.Now()
		l.Result(read("a"))
		_, _, err := l.Follow(t.Context(), 0, 1)
		if took := time.Since(start); took > 20*time.Millisecond || err != nil {
			t.Errorf("a lone row took %v, %v", took, err)
		}
		for range 10 {
			l.Result(read("b"))
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if want := []int{2, 10}; !slices.Equal(m.groups, want) {
			t.Errorf("groups %v, want %v", m.groups, want)
		}
		l.Result(read("c"))
		start = time.Now()
		if err := l.Intent(t.Context(), write("d")); err != nil || time.Since(start) != 0 {
			t.Errorf("an intent took %v, %v", time.Since(start), err)
		}
		if want := []int{2, 10, 2}; !slices.Equal(m.groups, want) {
			t.Errorf("groups %v, want %v", m.groups, want)
		}
		closeLog(t, l)
	})
}

// Close writes what is there, and nothing is accepted afterwards.
func TestClose(t *testing.T) {
	m := &memory{}
	o := m.options()
	var heads []string
	o.Report = func(h string) { heads = append(heads, h) }
	l := open(t, o)
	for i := range 250 {
		l.Result(read(fmt.Sprint(i)))
	}
	closeLog(t, l)
	if len(m.rows) != 251 {
		t.Errorf("%d rows, want 251", len(m.rows))
	}
	if len(heads) < 2 || heads[len(heads)-1] != headOf(l) || !strings.HasPrefix(headOf(l), "251:") {
		t.Errorf("heads %v, want the last to be %s", heads, headOf(l))
	}
	l.Result(read("late"))
	mustFail(t, l.Intent(t.Context(), write("late")), "AUDIT_FAILED", "closed")
	if len(m.rows) != 251 {
		t.Errorf("a row was written after Close")
	}
	rows, next, err := l.Follow(t.Context(), 251, 1)
	if len(rows) != 0 || next != 251 || err != nil {
		t.Errorf("Follow of a closed log: %v, %d, %v", rows, next, err)
	}
}

func TestHeadIsReported(t *testing.T) {
	m := &memory{}
	o := m.options()
	var heads []string
	o.Report = func(h string) { heads = append(heads, strings.SplitN(h, ":", 2)[0]) }
	l := open(t, o)
	for range 199 { // one row opens the file: rows 1 to 200
		if err := l.Intent(t.Context(), write("x")); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	if diff := cmp.Diff([]string{"100", "200", "200"}, heads); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
}

// Promise 21: while nothing can be written, no intent is acknowledged, and
// everything works again when it can. The read rows of that time are not lost.
func TestBlocked(t *testing.T) {
	for _, land := range []bool{false, true} {
		t.Run(fmt.Sprint("rows land all the same ", land), func(t *testing.T) {
			m := &memory{}
			l := open(t, m.options())
			if err := l.Intent(t.Context(), write("before")); err != nil {
				t.Fatal(err)
			}
			l.Result(done(write("before"), 200, ""))
			m.set(errors.New("disk on fire"), land)
			for i := range 100 {
				mustFail(t, l.Intent(t.Context(), write(fmt.Sprint("blocked", i))), "AUDIT_FAILED", "nothing was sent")
				l.Result(read(fmt.Sprint("read", i)))
			}
			if l.Trouble() == "" {
				t.Error("no trouble is told of")
			}
			m.set(nil, false)
			if err := l.Intent(t.Context(), write("after")); err != nil {
				t.Fatal(err)
			}
			l.Result(done(write("after"), 201, ""))
			if l.Trouble() != "" {
				t.Errorf("trouble %q after it is over", l.Trouble())
			}
			closeLog(t, l)
			rows, _, err := l.Last(1000)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			for _, r := range rows {
				seen[r.Call]++
				if strings.HasPrefix(r.Call, "blocked") && r.Error != "AUDIT_FAILED" || r.Outcome != "" {
					t.Errorf("%+v", r)
				}
			}
			for i := range 100 {
				if n := seen[fmt.Sprint("read", i)]; n != 1 {
					t.Errorf("read row %d is there %d times", i, n)
				}
				if n := seen[fmt.Sprint("blocked", i)]; !land && n != 0 {
					t.Errorf("an intent that was refused is in the trail")
				}
			}
			if seen["before"] != 1 || seen["after"] != 1 {
				t.Errorf("before %d, after %d, want 1 and 1", seen["before"], seen["after"])
			}
			if r, err := l.Verify(t.Context(), ""); !r.OK || err != nil {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// Without any traffic the rows are written by themselves when that is possible
// again.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := open(t, m.options())
		m.set(errors.New("full"), false)
		for range 5 {
			l.Result(read("x"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(m.rows) != 0 || l.Trouble() == "" {
			t.Errorf("%d rows, trouble %q", len(m.rows), l.Trouble())
		}
		m.set(nil, false)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if len(m.rows) != 6 || l.Trouble() != "" {
			t.Errorf("%d rows, want 6, trouble %q", len(m.rows), l.Trouble())
		}
		closeLog(t, l)
	})
}

// The queue has a bound. What finds no room is counted, and the count is a row.
func TestRowsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{hold: make(chan struct{})}
		o := m.options()
		o.Queue = 10
		l := open(t, o)
		l.Result(read("first"))
		time.Sleep(20 * time.Millisecond) // the writer is in Append now
		synctest.Wait()
		start := time.Now()
		for i := range 10 {
			l.Result(read(fmt.Sprint(i)))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("rows that have room waited for %v", took)
		}
		for range 3 {
			l.Result(read("no room"))
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("three rows without room waited for %v, want a second each", took)
		}
		mustFail(t, l.Intent(t.Context(), write("no room")), "AUDIT_FAILED", "10 rows wait")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := l.Intent(ctx, write("no room")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
		close(m.hold)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		closeLog(t, l)
		rows, _, err := l.Last(100)
		if err != nil || len(rows) != 12 {
			t.Fatalf("%d rows, %v, want 12", len(rows), err)
		}
		if r := rows[1]; r.Kind != audit.KindAudit || r.Action != "3 rows could not be written" {
			t.Errorf("second row %+v", r)
		}
	})
}

// While commits fail, the rows that wait have the same bound.
func TestBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		o := m.options()
		o.Queue = 10
		l := open(t, o)
		m.set(errors.New("full"), false)
		l.Result(read("x"))
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		for range 100 {
			l.Result(read("x"))
			synctest.Wait()
		}
		m.set(nil, false)
		time.Sleep(time.Minute)
		synctest.Wait()
		closeLog(t, l)
		rows, _, err := l.Last(100)
		if err != nil || len(rows) != 12 || rows[11].Action != "90 rows could not be written" {
			t.Errorf("%d rows, %v, last %+v", len(rows), err, rows[len(rows)-1])
		}
	})
}

func TestCloseWhileBlocked(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	m.set(errors.New("full"), false)
	l.Result(read("x"))
	l.Result(read("y"))
	mustFail(t, l.Close(), "AUDIT_FAILED", "2 rows")
}

// Whoever stops waiting sends nothing. The trail shows either no row or one
// that says so.
func TestIntentCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{hold: make(chan struct{})}
		l := open(t, m.options())
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() { errs <- l.Intent(ctx, write("committing")) }()
		synctest.Wait() // it is in Append
		go func() { errs <- l.Intent(ctx, write("queued")) }()
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that of the context", err)
			}
		}
		if err := l.Intent(ctx, write("late")); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		close(m.hold)
		closeLog(t, l)
		rows, _, err := l.Last(10)
		cancelled := write("committing")
		cancelled.Error = "CALL_CANCELLED"
		if diff := cmp.Diff([]audit.Merged{{Seq: 3, Row: cancelled}}, rows); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// Somebody takes rows away while hbrestd runs: nothing is sent any more.
func TestCutWhileRunning(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	for i := range 5 {
		if err := l.Intent(t.Context(), write(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	m.rows = m.rows[:4]
	r, err := l.Verify(t.Context(), "")
	if r.OK || r.BadSeq != 5 || r.Problem != "rows 5 to 6 are missing at the end" || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	m.set(errors.New("numbers do not fit"), false)
	mustFail(t, l.Intent(t.Context(), write("x")), "AUDIT_FAILED")
	m.set(nil, false)
	mustFail(t, l.Intent(t.Context(), write("x")), "AUDIT_FAILED", "somebody changed the file")
	_ = l.Close()
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := open(t, m.options())
		if err := l.Intent(t.Context(), write("dead")); err != nil { // its process ends before the result
			t.Fatal(err)
		}
		if err := l.Intent(t.Context(), write("old")); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			l.Result(read(fmt.Sprint("r", i)))
		}
		l.Result(done(write("old"), 200, ""))
		closeLog(t, l)

		l = open(t, m.options())
		rows, next, err := l.Follow(t.Context(), 0, 3)
		// The intent of "old" is not shown as unknown, although its result is far behind.
		want := []audit.Merged{{Seq: 2, Row: write("dead"), Outcome: audit.OutcomeUnknown}, {Seq: 4, Row: read("r0")}}
		if diff := cmp.Diff(want, rows); diff != "" || next != 4 || err != nil {
			t.Errorf("next %d, %v (-want +got):\n%s", next, err, diff)
		}
		all := slices.Clone(rows)
		for next < 24 {
			rows, next, err = l.Follow(t.Context(), next, 7)
			if err != nil || len(rows) == 0 {
				t.Fatal(next, err)
			}
			all = append(all, rows...)
		}
		last, _, _ := l.Last(100)
		if diff := cmp.Diff(last, all); diff != "" {
			t.Errorf("Follow and Last differ (-Last +Follow):\n%s", diff)
		}

		// Now it waits. An intent alone wakes nobody; its result does.
		got := make(chan []audit.Merged)
		for range 50 {
			go func() {
				rows, next, err := l.Follow(t.Context(), 24, 10)
				if next != 26 || err != nil {
					t.Errorf("next %d, %v", next, err)
				}
				got <- rows
			}()
		}
		synctest.Wait()
		if err := l.Intent(t.Context(), write("new")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case rows := <-got:
			t.Errorf("an intent was shown: %v", rows)
		default:
		}
		l.Result(done(write("new"), 201, ""))
		for range 50 {
			if diff := cmp.Diff([]audit.Merged{{Seq: 26, Row: done(write("new"), 201, "")}}, <-got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rows, next, err = l.Follow(ctx, 26, 1)
		if len(rows) != 0 || next != 26 || err != nil {
			t.Errorf("after the context's end: %v, %d, %v", rows, next, err)
		}
		rows, next, err = l.Follow(t.Context(), 1000, 1) // a number of another trail
		if len(rows) != 0 || next != 26 || err != nil {
			t.Errorf("from beyond the end: %v, %d, %v", rows, next, err)
		}
		go func() {
			rows, _, _ := l.Follow(t.Context(), 26, 1)
			got <- rows
		}()
		synctest.Wait()
		closeLog(t, l)
		if rows := <-got; len(rows) != 0 {
			t.Errorf("at the log's end: %v", rows)
		}
	})
}

// The first process of a home is like any other: an intent of it is shown when
// its result comes.
func TestFollowFreshTrail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := open(t, m.options())
		for _, call := range []string{"a", "b"} {
			if err := l.Intent(t.Context(), write(call)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if rows, next, err := l.Follow(ctx, 0, 10); len(rows) != 0 || next != 3 || err != nil { // 1 opens the file
			t.Errorf("before the results: %v, %d, %v", rows, next, err)
		}
		l.Result(done(write("b"), 201, ""))
		if err := l.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []audit.Merged{{Seq: 4, Row: done(write("b"), 201, "")}}
		for _, after := range []uint64{0, 3} {
			rows, next, err := l.Follow(t.Context(), after, 10)
			if diff := cmp.Diff(want, rows); diff != "" || next != 4 || err != nil {
				t.Errorf("after %d: next %d, %v (-want +got):\n%s", after, next, err, diff)
			}
		}
		// Last has no later page on which an intent could come again: it shows all.
		want = append([]audit.Merged{{Seq: 2, Row: write("a"), Outcome: audit.OutcomeUnknown}}, want...)
		rows, _, err := l.Last(10)
		if diff := cmp.Diff(want, rows); diff != "" || err != nil {
			t.Errorf("Last: %v (-want +got):\n%s", err, diff)
		}
		closeLog(t, l)
	})
}

// A file that is full is closed with a row, and the next one begins with one
// that names the head. Without the older file the chain still holds.
func TestRotation(t *testing.T) {
	m := &memory{}
	o := m.options()
	o.Size, o.Rotate, o.MaxFile = m.size, m.rotate, 2000
	l := open(t, o)
	for i := range 60 {
		if err := l.Intent(t.Context(), write(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	if len(m.rotated) < 3 {
		t.Fatalf("%d rotations, want at least 3", len(m.rotated))
	}
	rows, next, err := l.Last(1000)
	if len(rows) != 60 || next != uint64(61+2*len(m.rotated)) || err != nil {
		t.Errorf("%d rows, next %d, %v, want 60 without those of the log itself", len(rows), next, err)
	}
	whole, err := l.Verify(t.Context(), headOf(l))
	if !whole.OK || !whole.HeadSeen || err != nil {
		t.Errorf("%+v, %v", whole, err)
	}
	first := binary.BigEndian.Uint64(m.rotated[1])
	before := headOfRow(m.rows[first-2])
	old := headOfRow(m.rows[first-3])
	m.rows = m.rows[first-1:]
	for head, want := range map[string]audit.Report{
		"":     {OK: true},
		before: {OK: true, HeadSeen: true}, // named by the first row that is left
		old:    {Problem: fmt.Sprintf("the head given is that of row %d, but the oldest row kept is %d, so that it can no longer be checked", first-2, first)},
	} {
		want.Rows, want.First, want.Head = whole.Rows-first+1, first, headOf(l)
		r, err := l.Verify(t.Context(), head)
		if diff := cmp.Diff(want, r); diff != "" || err != nil {
			t.Errorf("%q, %v (-want +got):\n%s", head, err, diff)
		}
	}
	m.rows = m.rows[1:] // but not in the middle of a file
	r, err := l.Verify(t.Context(), "")
	if r.OK || r.BadSeq != first || err != nil {
		t.Errorf("%+v, %v, want row %d", r, err, first)
	}
}

func headOfRow(row []byte) string {
	return fmt.Sprintf("%d:%x", binary.BigEndian.Uint64(row), row[9:41])
}

// When the file cannot be changed, the rows go on in the old one.
func TestRotationFails(t *testing.T) {
	m := &memory{failRot: errors.New("no")}
	o := m.options()
	o.Size, o.Rotate, o.MaxFile = m.size, m.rotate, 1000
	l := open(t, o)
	for i := range 50 {
		if err := l.Intent(t.Context(), write(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	rows, _, err := l.Last(100)
	if len(rows) != 50 || err != nil {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if r, err := l.Verify(t.Context(), headOf(l)); !r.OK || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	// A start that finds a closed file opens one.
	m.rows = m.rows[:slices.IndexFunc(m.rows, func(r []byte) bool { return bytes.Contains(r, []byte(audit.ActionFileClosed)) })+1]
	l = open(t, m.options())
	l.Result(read("x"))
	closeLog(t, l)
	if !bytes.Contains(m.rows[len(m.rows)-2], []byte(audit.ActionFileOpened)) {
		t.Error("no row opens a file after one that closed it")
	}
}

func TestRecovered(t *testing.T) {
	m := &memory{}
	o := m.options()
	o.Recovered = true
	closeLog(t, open(t, o))
	l := open(t, m.options())
	defer closeLog(t, l)
	rows, _, err := l.Last(10)
	if len(rows) != 1 || rows[0].Action != audit.ActionRecovered || rows[0].Kind != audit.KindAudit || err != nil {
		t.Errorf("%+v, %v", rows, err)
	}
	// The chain is whole from there on, and the verdict says what came before.
	if r, err := l.Verify(t.Context(), ""); err != nil || !r.OK || r.Recovered != rows[0].Seq {
		t.Errorf("%+v, %v", r, err)
	}
}

// A reader sees every row that was recorded before it asked.
func TestSettle(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	for i := range 500 {
		l.Result(audit.Row{Kind: audit.KindRun, Call: "c"})
		if err := l.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if seq, _ := l.Head(); seq != uint64(i+2) { // row 1 opens the file
			t.Fatalf("row %d is not there: the head is %d", i+2, seq)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Settle(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who has gone: %v", err)
	}
	closeLog(t, l)
	if err := l.Settle(t.Context()); err != nil {
		t.Errorf("a closed log: %v", err)
	}
}

func TestReadingFails(t *testing.T) {
	m := &memory{}
	o := m.options()
	broken := false
	storeFailed := fault.New("STORE_FAILED", "audit.db is not open")
	o.Tail = func(n int) ([][]byte, error) {
		if broken {
			return nil, storeFailed
		}
		return m.tail(n)
	}
	o.Scan = func(uint64, func([]byte) error) error { return storeFailed }
	l := open(t, o)
	l.Result(read("x"))
	closeLog(t, l)
	broken = true
	_, _, err := l.Last(1)
	mustFail(t, err, "AUDIT_FAILED", "could not be read: audit.db is not open")
	_, _, err = l.Follow(t.Context(), 0, 1)
	mustFail(t, err, "AUDIT_FAILED", "could not be read")
	_, err = l.Verify(t.Context(), "")
	mustFail(t, err, "AUDIT_FAILED", "could not be read")
	_, err = audit.Open(o)
	mustFail(t, err, "AUDIT_FAILED", "could not be read")
}

// Many at once: every acknowledged intent is there, once, before its result.
func TestConcurrent(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for k := range 50 {
				call := fmt.Sprintf("%d-%d", i, k)
				if err := l.Intent(t.Context(), write(call)); err != nil {
					t.Error(err)
				}
				l.Result(done(write(call), 200, ""))
				if k%10 == 0 {
					if _, _, err := l.Last(20); err != nil {
						t.Error(err)
					}
					if r, err := l.Verify(t.Context(), ""); !r.OK || err != nil {
						t.Error(r, err)
					}
				}
			}
		})
	}
	wg.Wait()
	closeLog(t, l)
	rows, next, err := l.Last(1000)
	if len(rows) != 1000 || next != 2001 || err != nil {
		t.Errorf("%d rows, next %d, %v", len(rows), next, err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if r.Outcome != "" || seen[r.Call] {
			t.Errorf("%+v", r)
		}
		seen[r.Call] = true
	}
}

// Promise 20. Every single change of a chain is found, and where it is.
func TestEveryMutationIsFound(t *testing.T) {
	m := &memory{}
	l := open(t, m.options())
	for i := range 100 {
		if err := l.Intent(t.Context(), write(fmt.Sprint("call", i))); err != nil {
			t.Fatal(err)
		}
		r := done(write(fmt.Sprint("call", i)), 200+i%300, "")
		r.Bytes = int64(i * i)
		l.Result(r)
	}
	closeLog(t, l)
	good := m.rows
	rnd := rand.New(rand.NewPCG(5, 6))
	found := 0
	mutations, cut, slowest := soak.Rounds(1500, 10_000), 0, time.Duration(0)
	for i := range mutations {
		rows, bad, what := mutate(rnd, good)
		f := &memory{rows: rows}
		o := f.options()
		l, err := audit.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		// Whoever has cut the tail is found by a head that was noted elsewhere.
		begun := time.Now()
		r, err := l.Verify(t.Context(), headOfRow(good[len(good)-1]))
		if err != nil || r.OK || r.Problem == "" {
			t.Errorf("mutation %d, %s: not found: %+v, %v", i, what, r, err)
		} else {
			found++
		}
		slowest = max(slowest, time.Since(begun))
		if strings.HasPrefix(what, "cut") {
			cut++
		}
		if r.BadSeq != bad {
			t.Errorf("mutation %d, %s: found at row %d, want %d: %s", i, what, r.BadSeq, bad, r.Problem)
		}
		closeLog(t, l)
	}
	soak.Measured(t, "%d of %d mutations of a trail of 201 rows found at the right row (%d of them a cut tail, by a known head); slowest check %v",
		found, mutations, cut, slowest.Round(time.Millisecond))
}

// mutate changes one thing of a copy as somebody with the file could: keys stay
// in order. bad is the first row that is then wrong or missing.
func mutate(rnd *rand.Rand, good [][]byte) (rows [][]byte, bad uint64, what string) {
	for _, r := range good {
		rows = append(rows, bytes.Clone(r))
	}
	n := len(rows)
	at := rnd.IntN(n)
	bad = uint64(at + 1)
	renumber := func() {
		for i, r := range rows {
			binary.BigEndian.PutUint64(r, uint64(i+1))
		}
	}
	switch rnd.IntN(7) {
	case 0, 1:
		k := 8 + rnd.IntN(len(rows[at])-8)
		rows[at][k] ^= 1 << rnd.IntN(8)
		return rows, bad, fmt.Sprintf("bit of byte %d of row %d", k, at+1)
	case 2:
		rows = slices.Delete(rows, at, at+1)
		return rows, bad, fmt.Sprintf("row %d removed", at+1)
	case 3:
		rows = slices.Delete(rows, at, at+1)
		renumber()
		return rows, bad, fmt.Sprintf("row %d removed, the others renumbered", at+1)
	case 4:
		from := rnd.IntN(n)
		rows = slices.Insert(rows, at, bytes.Clone(rows[from]))
		renumber()
		if from == at { // the copy stands after what it is a copy of
			bad++
		}
		return rows, bad, fmt.Sprintf("a copy of row %d put in before row %d", from+1, at+1)
	case 5:
		other := (at + 1 + rnd.IntN(n-1)) % n
		rows[at], rows[other] = rows[other], rows[at]
		renumber()
		return rows, uint64(min(at, other) + 1), fmt.Sprintf("rows %d and %d swapped", at+1, other+1)
	}
	if at == 0 {
		at, bad = 1, 2
	}
	return rows[:at], bad, fmt.Sprintf("cut after row %d", at)
}

// A forger who computes everything after a change anew has another head.
func TestForgedChain(t *testing.T) {
	chain := func(status int) *memory {
		m := &memory{}
		l := open(t, m.options())
		for i := range 10 {
			r := read(fmt.Sprint(i))
			if i == 4 {
				r.Status = status
			}
			if err := l.Intent(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		closeLog(t, l)
		return m
	}
	honest, forged := chain(500), chain(200)
	l := open(t, honest.options())
	defer closeLog(t, l)
	if r, err := l.Verify(t.Context(), headOfRow(forged.rows[7])); r.OK || r.BadSeq != 8 || err != nil ||
		r.Problem != "row 8 is not the one of the head given: it, or a row before it, was written anew" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := l.Verify(t.Context(), headOfRow(honest.rows[7])); !r.OK || !r.HeadSeen || err != nil {
		t.Errorf("an older head of the same chain: %+v, %v", r, err)
	}
	if r, _ := l.Verify(t.Context(), "12:"+strings.Repeat("0", 64)); r.OK || r.BadSeq != 12 ||
		r.Problem != "rows 12 to 12 are missing at the end: the head given is that of row 12" {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"x", ":", "1:", "1:" + strings.Repeat("0", 63), "1:" + strings.Repeat("0", 65), "1:" + strings.Repeat("g", 64), "-1:" + strings.Repeat("0", 64), strings.Repeat("0", 64)} {
		_, err := l.Verify(t.Context(), bad)
		mustFail(t, err, "BAD_REQUEST", "not the head")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Verify(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// A damaged last row is no reason not to start: the chain goes on from it, and
// the check names it and nothing else.
func TestDamagedTail(t *testing.T) {
	for name, cut := range map[string]int{"in its payload": 60, "in its hash": 20, "no row at all": 9} {
		m := &memory{}
		l := open(t, m.options())
		for i := range 5 {
			l.Result(read(fmt.Sprint(i)))
		}
		closeLog(t, l)
		m.rows[5] = m.rows[5][:cut]
		l = open(t, m.options())
		l.Result(read("on"))
		closeLog(t, l)
		r, err := l.Verify(t.Context(), "")
		if r.OK || r.BadSeq != 6 || r.Rows != 7 || strings.Contains(r.Problem, "in all") || err != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		rows, _, err := l.Last(2)
		if len(rows) != 2 || rows[0].Outcome != audit.OutcomeUnreadable || rows[0].Seq != 6 || rows[1].Call != "on" || err != nil {
			t.Errorf("%s: %+v, %v", name, rows, err)
		}
	}
}

func FuzzStoredRow(f *testing.F) {
	m := &memory{}
	l := open(f, m.options())
	l.Result(read("x"))
	closeLog(f, l)
	f.Add(m.rows[0])
	f.Add(m.rows[1])
	f.Fuzz(func(t *testing.T, row []byte) {
		if len(row) < 8 {
			return
		}
		m := &memory{rows: [][]byte{row}}
		l := open(t, m.options())
		defer func() { _ = l.Close() }()
		if rows, _, err := l.Last(1); err != nil || len(rows) > 1 {
			t.Error(rows, err)
		}
		if _, err := l.Verify(t.Context(), ""); err != nil {
			t.Error(err)
		}
	})
}
