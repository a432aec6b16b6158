package audit

import "fmt"

// A verifier walks the chain. After a problem it goes on from what the row
// claims to be, so that one damaged row does not hide what came after it.
type verifier struct {
	end   head  // the last row that this process has written or found
	noted *head // given by a person

	rows, first uint64
	unanchored  bool // the hash of the first row cannot be checked
	at          head
	problems    int
	badSeq      uint64
	problem     string
	headSeen    bool
	recovered   uint64 // the newest row that tells of a damaged file
}

func (v *verifier) bad(seq uint64, format string, args ...any) {
	v.problems++
	if v.problems == 1 {
		v.badSeq, v.problem = seq, fmt.Sprintf(format, args...)
	}
}

// add checks the next row.
func (v *verifier) add(row []byte) error {
	s, ok := split(row)
	if !ok {
		s.head = malformed(row)
	}
	if s.seq > v.end.seq {
		return errEnough // written since; the next call has it
	}
	if v.rows == 0 {
		v.begin(&s, ok)
	}
	v.rows++
	switch {
	case s.seq <= v.at.seq:
		v.bad(s.seq, "row %d stands after row %d", s.seq, v.at.seq)
	case s.seq == v.at.seq+2:
		v.bad(v.at.seq+1, "row %d is missing", v.at.seq+1)
	case s.seq > v.at.seq+1:
		v.bad(v.at.seq+1, "rows %d to %d are missing", v.at.seq+1, s.seq-1)
	case !ok:
		v.bad(s.seq, "row %d is damaged", s.seq)
	case !(v.unanchored && v.rows == 1) && s.hash != link(v.at.hash, s.seq, s.version, s.payload):
		v.bad(s.seq, "row %d was changed, or is not the row that was written there", s.seq)
	case s.seq == v.end.seq && s.hash != v.end.hash:
		v.bad(s.seq, "row %d is not the one that hbrestd has written: it, or a row before it, was written anew", s.seq)
	}
	if c, err := s.content(); ok && err == nil && c.phase == phaseRecovered {
		v.recovered = s.seq
	}
	v.at = s.head
	v.compare()
	return nil
}

// begin finds the head that the oldest row kept goes on from.
func (v *verifier) begin(s *stored, ok bool) {
	v.first = s.seq
	if s.seq <= 1 {
		return // the empty chain
	}
	c, err := s.content()
	if v.at = (head{seq: s.seq - 1}); ok && err == nil && c.phase == phaseOpen {
		v.at.hash = c.prev
		v.compare()
		return
	}
	// Files are removed whole, and each begins with a row that says so.
	v.unanchored = true
	v.bad(s.seq-1, "row %d is missing: the oldest row kept is not the first one of a file", s.seq-1)
}

// compare notices the noted head.
func (v *verifier) compare() {
	if v.noted == nil || v.noted.seq != v.at.seq || v.headSeen {
		return
	}
	if v.headSeen = v.noted.hash == v.at.hash; !v.headSeen {
		v.bad(v.at.seq, "row %d is not the one of the head given: it, or a row before it, was written anew", v.at.seq)
	}
}

// report is the verdict after the last row.
func (v *verifier) report() Report {
	if v.at.seq < v.end.seq {
		v.bad(v.at.seq+1, "rows %d to %d are missing at the end", v.at.seq+1, v.end.seq)
	}
	if v.rows == 0 {
		v.compare() // the head of an empty chain
	}
	if v.noted != nil && !v.headSeen {
		switch {
		case v.noted.seq > v.at.seq:
			v.bad(v.at.seq+1, "rows %d to %d are missing at the end: the head given is that of row %d", v.at.seq+1, v.noted.seq, v.noted.seq)
		case v.noted.seq+1 < v.first:
			v.bad(0, "the head given is that of row %d, but the oldest row kept is %d, so that it can no longer be checked", v.noted.seq, v.first)
		case v.problems == 0:
			v.bad(v.noted.seq, "row %d, whose head was given, is not there", v.noted.seq)
		}
	}
	r := Report{
		OK: v.problems == 0, Rows: v.rows, First: v.first, Head: v.at.String(),
		BadSeq: v.badSeq, Problem: v.problem, HeadSeen: v.headSeen, Recovered: v.recovered,
	}
	if v.problems > 1 {
		r.Problem += fmt.Sprintf("; %d problems in all", v.problems)
	}
	return r
}
