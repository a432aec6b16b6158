package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// SetExposure makes a wrapper a tool of its own, or hides it, and sets its
// priority under a client's cap, which runs from 0 to MaxPriority; nil keeps
// it. The stored document is changed accordingly. Where nothing changes the
// revision stays. The error is WRAPPER_NOT_FOUND, WRAPPER_UNREADABLE,
// BAD_REQUEST for a priority out of range, or STORE_FAILED.
func (by Editor) SetExposure(id string, expose bool, priority *int) (rev uint64, err error) {
	s := by.s
	if priority != nil && (*priority < 0 || *priority > MaxPriority) {
		return 0, refused("priority", "the priority is a whole number from 0 to %d, not %d", MaxPriority, *priority)
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return 0, err
	}
	e := s.c.entries[id]
	if e == nil {
		return 0, s.notFound(id)
	}
	w, damaged := e.get()
	if w == nil {
		return 0, unusable(id, damaged)
	}
	var changed []*entry
	if w.ExposeAsTool != expose {
		if w, err = exposed(w, expose); err != nil {
			return 0, err
		}
		changed = []*entry{{id: id, wrapper: w}}
	}
	priorities := map[string]int{}
	if priority != nil && *priority != s.c.set.priority[id] {
		priorities[id] = *priority
	}
	if len(changed) == 0 && len(priorities) == 0 {
		return s.c.revision, nil
	}
	return by.saveAll(changed, priorities, nil)
}

// exposed is w with another exposeAsTool. The other fields stay as they are
// written; Parse puts all into their order again.
func exposed(w *wrapper.Wrapper, expose bool) (*wrapper.Wrapper, error) {
	return rewritten(w, func(fields map[string]json.RawMessage) { fields["exposeAsTool"] = json.RawMessage(fmt.Sprint(expose)) })
}

// rewritten is w with other fields.
func rewritten(w *wrapper.Wrapper, change func(map[string]json.RawMessage)) (*wrapper.Wrapper, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(w.Document(), &fields)
	if err == nil {
		change(fields)
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err = enc.Encode(fields); err == nil {
			out, report := wrapper.Parse(b.Bytes())
			if report.OK() {
				return out, nil
			}
			p := report.Problems[0]
			err = fmt.Errorf("%s: %s", p.Field, p.Message)
		}
	}
	return nil, fault.New("WRAPPER_INVALID", "wrapper %q cannot be changed: %v", w.ID, err).With(fault.Cause(err))
}

// putPriority writes a priority; 0 needs no record.
func putPriority(tx *bbolt.Tx, id string, p int) error {
	if p == 0 {
		return deleteIn(tx, bucketPriority, id)
	}
	return putIn(tx, bucketPriority, id, binary.BigEndian.AppendUint16(nil, uint16(p)))
}

func (s *set) setPriority(id string, p int) {
	if p == 0 {
		delete(s.priority, id)
	} else {
		s.priority[id] = p
	}
	s.repaired("priority of", id)
}
