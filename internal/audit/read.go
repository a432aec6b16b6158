package audit

import (
	"context"
	"errors"
)

// MaxRows is the most that Last and Follow return at once; more is cut to it.
const MaxRows = 1000

// A Merged is one exchange or change as it is shown: an intent and its result
// are one, under the number of the result.
type Merged struct {
	Seq uint64
	Row
	// Outcome is "" for what has a result, "unknown" for an intent without
	// one, and "unreadable" for a row that is damaged or of a later version.
	Outcome string
}

// Outcomes of a Merged.
const (
	OutcomeUnknown    = "unknown"
	OutcomeUnreadable = "unreadable"
)

// Last returns the last n exchanges and changes, newest last, and the number to
// follow from. The error is AUDIT_FAILED.
func (l *Log) Last(n int) (rows []Merged, next uint64, err error) {
	n = min(n, MaxRows)
	if n <= 0 {
		h, _ := l.now()
		return nil, h.seq, nil
	}
	for k := 2*n + 16; ; k *= 2 {
		raw, err := l.opt.Tail(k)
		if err != nil {
			return nil, 0, unreadable(err)
		}
		m := merger{}
		for _, row := range raw {
			next = m.add(row)
		}
		if out := m.rows(); len(out) >= n || len(raw) < k {
			return out[max(len(out)-n, 0):], next, nil
		}
	}
}

// Follow returns up to n exchanges and changes after the number after, waiting
// until there is one, and the number to follow from. When ctx or the log ends
// there are none, and no error. An intent whose process still runs is shown
// when its result comes. The error is AUDIT_FAILED.
func (l *Log) Follow(ctx context.Context, after uint64, n int) (rows []Merged, next uint64, err error) {
	n = min(max(n, 1), MaxRows)
	for {
		h, changed := l.now()
		if after > h.seq { // a number of another trail
			return nil, h.seq, nil
		}
		if after < h.seq {
			rows, next, err := l.between(ctx, after, h.seq, n)
			if err != nil || len(rows) > 0 {
				return rows, next, err
			}
			after = next
		}
		select {
		case <-ctx.Done():
			return nil, after, nil
		case <-l.done:
			if now, _ := l.now(); now.seq == after {
				return nil, after, nil
			}
		case <-changed:
		}
	}
}

var errEnough = errors.New("enough")

// between merges up to n of the rows (after, last].
func (l *Log) between(ctx context.Context, after, last uint64, n int) ([]Merged, uint64, error) {
	m, next := merger{follows: true, started: l.started}, last
	full := false
	err := l.opt.Scan(after+1, func(row []byte) error {
		h, _ := l.read(row)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case h.seq > last:
			return errEnough
		case !full:
			m.add(row)
			if full = m.live >= n; full {
				next = h.seq
			}
			return nil
		case h.seq <= l.started && m.unmatched > 0:
			// Only to see whether an intent shown as unknown has a result.
			m.match(row)
			return nil
		}
		return errEnough
	})
	switch {
	case ctx.Err() != nil:
		return nil, after, nil
	case err != nil && !errors.Is(err, errEnough):
		return nil, after, unreadable(err)
	}
	return m.rows(), next, nil
}

// A merger joins intents and results. Rows are added in their order.
type merger struct {
	// follows leaves out the intents beyond the number started, because their
	// results are still to come.
	follows bool
	started uint64

	list      []Merged
	dropped   []bool
	live      int // rows of list that are not dropped
	open      map[pair][]int
	unmatched int
}

// A pair is what an intent and its result have in common. The hops and pages of
// one call come one after the other, so that a result belongs to the newest
// intent that has none.
type pair struct {
	call, wrapper, method, host string
	kind                        Kind
}

func pairOf(r *Row) pair { return pair{r.Call, r.Wrapper, r.Method, r.Host, r.Kind} }

// add takes a stored row in and returns its number.
func (m *merger) add(row []byte) uint64 {
	s, ok := split(row)
	if !ok {
		s.head = malformed(row)
	}
	c, err := s.content()
	if !ok || err != nil {
		m.show(Merged{Seq: s.seq, Outcome: OutcomeUnreadable})
		return s.seq
	}
	switch c.phase {
	case phaseOpen, phaseClose:
	case phaseIntent:
		if m.follows && s.seq > m.started {
			break
		}
		if m.open == nil {
			m.open = map[pair][]int{}
		}
		p := pairOf(&c.row)
		m.open[p] = append(m.open[p], len(m.list))
		m.unmatched++
		m.show(Merged{Seq: s.seq, Row: c.row, Outcome: OutcomeUnknown})
	case phaseResult:
		m.result(&c.row)
		m.show(Merged{Seq: s.seq, Row: c.row})
	default:
		m.show(Merged{Seq: s.seq, Row: c.row})
	}
	return s.seq
}

// match only drops the intent that the row is the result of.
func (m *merger) match(row []byte) {
	s, ok := split(row)
	if !ok {
		return
	}
	if c, err := s.content(); err == nil && c.phase == phaseResult {
		m.result(&c.row)
	}
}

func (m *merger) result(r *Row) {
	p := pairOf(r)
	at := m.open[p]
	if len(at) == 0 || r.Call == "" {
		return
	}
	m.dropped[at[len(at)-1]] = true
	m.open[p] = at[:len(at)-1]
	m.live--
	m.unmatched--
}

func (m *merger) show(r Merged) {
	m.list = append(m.list, r)
	m.dropped = append(m.dropped, false)
	m.live++
}

func (m *merger) rows() []Merged {
	out := make([]Merged, 0, m.live)
	for i, r := range m.list {
		if !m.dropped[i] {
			out = append(out, r)
		}
	}
	return out
}

// A Report is the verdict on the chain.
type Report struct {
	OK       bool   // the chain is whole and, if a head was given, ends in it or goes on from it
	Rows     uint64 // checked
	First    uint64 // number of the oldest row kept; 0 if there is none
	Head     string // "SEQ:HASH" of the last row
	BadSeq   uint64 // number of the first row that is wrong or missing; 0 if none
	Problem  string // what is wrong with it, for a person
	HeadSeen bool   // the given head is in the chain
	// Recovered is the newest row that says that a damaged file was set aside:
	// the chain is whole from what was left, but rows before it may be missing.
	// 0 if there is none.
	Recovered uint64
}

// Verify reads every row that is kept and checks that none was changed, removed,
// added or moved. Rows cut off at the end are missed when they are newer than
// the last row that this process knows of, or when head, as Head gave it
// earlier ("SEQ:HASH"; "" for none), names one of them. The error is
// BAD_REQUEST for a head that is none, AUDIT_FAILED if the rows cannot be read,
// or that of ctx.
func (l *Log) Verify(ctx context.Context, head string) (Report, error) {
	v := verifier{}
	if head != "" {
		h, err := parseHead(head)
		if err != nil {
			return Report{}, err
		}
		v.noted = &h
	}
	v.end, _ = l.now()
	err := l.opt.Scan(0, func(row []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return v.add(row)
	})
	if cerr := ctx.Err(); cerr != nil {
		return Report{}, cerr
	}
	if err != nil && !errors.Is(err, errEnough) {
		return Report{}, unreadable(err)
	}
	return v.report(), nil
}
