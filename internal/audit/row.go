package audit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A Row is one outbound exchange or one change, and all that is ever written
// about it. There is no field for a path, a query, a header, a body or a
// credential's name, and each text has a narrow shape: what does not have it is
// left out before the row is written.
type Row struct {
	Time     time.Time     // when it began; kept to the millisecond; zero means now
	Kind     Kind          // on whose behalf
	Call     string        // id that the rows of one call share: at most 64 of [A-Za-z0-9_-]
	Wrapper  string        // id of the wrapper, if any
	Method   string        // at most 16 of [A-Z-]
	Host     string        // name or address with the port unless it is the scheme's own: at most 261 of [A-Za-z0-9._:-] and brackets
	Status   int           // of the answer; 0 if there was none
	Bytes    int64         // of the answer's body
	Duration time.Duration // kept to the millisecond
	Error    fault.Code    // how it failed; a code outside the catalogue becomes INTERNAL
	Author   Author        // of a change
	Action   Action        // what a change did
}

// Limits of the texts of a row, in bytes.
const (
	MaxCall    = 64
	MaxWrapper = 100 // decision 14
	MaxMethod  = 16
	MaxHost    = 261 // a name of 253, brackets or none, a colon and five digits
)

// A Kind says on whose behalf a request was sent. Others become KindOther.
type Kind string

// The kinds.
const (
	KindRun    Kind = "run"
	KindTest   Kind = "test"
	KindDerive Kind = "derive"
	KindImport Kind = "import"
	KindMint   Kind = "mint"
	KindChange Kind = "change" // not a request: something was changed
	KindAudit  Kind = "audit"  // written by the log about itself
	KindOther  Kind = "other"
)

// An Author is who made a change. Others are left out.
type Author string

// The authors.
const (
	AuthorHuman Author = "human"
	AuthorAgent Author = "agent"
)

// An Action is what a change did, in words. Others become ActionOther, so that
// no text of a caller's own making can enter.
type Action string

// The actions. The last four are the log's own.
const (
	ActionWrapperCreated Action = "wrapper created"
	ActionWrapperUpdated Action = "wrapper updated"
	ActionWrapperDeleted Action = "wrapper deleted"
	ActionWrapperExposed Action = "wrapper exposed"
	ActionWrapperHidden  Action = "wrapper hidden"
	ActionAllowAdded     Action = "allow rule added"
	ActionAllowRemoved   Action = "allow rule removed"
	ActionSettingChanged Action = "setting changed"
	ActionSecretChanged  Action = "credential changed"
	ActionSecretPiped    Action = "credential changed from standard input"
	ActionSecretBound    Action = "credential hosts changed"
	ActionSecretDeleted  Action = "credential deleted"
	ActionApprovalAsked  Action = "approval asked for"
	ActionApprovalGiven  Action = "approval given"
	ActionApprovalTrust  Action = "approval given for good"
	ActionApprovalDenied Action = "approval denied"
	ActionApprovalLapsed Action = "approval expired"
	ActionApprovalPolicy Action = "approval policy changed"
	ActionOther          Action = "other change"

	ActionFileOpened Action = "audit file opened"
	ActionFileClosed Action = "audit file closed"
	ActionRecovered  Action = "audit file recovered after damage"
	ActionRowsLost   Action = "rows lost" // read back as "12 rows could not be written"
)

func known(a Action) bool {
	switch a {
	case ActionWrapperCreated, ActionWrapperUpdated, ActionWrapperDeleted, ActionWrapperExposed, ActionWrapperHidden,
		ActionAllowAdded, ActionAllowRemoved, ActionSettingChanged,
		ActionSecretChanged, ActionSecretPiped, ActionSecretBound, ActionSecretDeleted,
		ActionApprovalAsked, ActionApprovalGiven, ActionApprovalTrust, ActionApprovalDenied, ActionApprovalLapsed, ActionApprovalPolicy,
		ActionOther:
		return true
	}
	return false
}

// clean is the row as it may be written. It is the only way in.
func clean(r Row) Row {
	switch r.Kind {
	case KindRun, KindTest, KindDerive, KindImport, KindMint:
		r.Author, r.Action = "", ""
	case KindChange:
		if r.Author != AuthorHuman && r.Author != AuthorAgent {
			r.Author = ""
		}
		if !known(r.Action) {
			r.Action = ActionOther
		}
	default: // KindAudit too: only the log itself writes those
		r.Kind, r.Author, r.Action = KindOther, "", ""
	}
	r.Call = shaped(r.Call, MaxCall, alnum|hyphen|underscore)
	r.Wrapper = shaped(r.Wrapper, MaxWrapper, alnum|hyphen|underscore|dot)
	r.Method = shaped(r.Method, MaxMethod, upper|hyphen)
	r.Host = shaped(r.Host, MaxHost, alnum|hyphen|underscore|dot|colon)
	if r.Error != "" {
		if _, ok := fault.Lookup(r.Error); !ok {
			r.Error = "INTERNAL"
		}
	}
	r.Status = min(max(r.Status, 0), 999)
	r.Bytes = max(r.Bytes, 0)
	r.Duration = max(r.Duration, 0)
	return r
}

// A class is a set of characters.
type class byte

const (
	upper class = 1 << iota
	lower
	digit
	hyphen
	underscore
	dot
	colon // and square brackets

	alnum = upper | lower | digit
)

func classOf(c byte) class {
	switch {
	case c >= 'a' && c <= 'z':
		return lower
	case c >= '0' && c <= '9':
		return digit
	case c >= 'A' && c <= 'Z':
		return upper
	}
	switch c {
	case '.':
		return dot
	case '-':
		return hyphen
	case '_':
		return underscore
	case ':', '[', ']':
		return colon
	}
	return 0
}

// shaped is s, or nothing if it is longer than limit or holds another character.
func shaped(s string, limit int, may class) string {
	if len(s) > limit {
		return ""
	}
	for i := range len(s) {
		if classOf(s[i])&may == 0 {
			return ""
		}
	}
	return s
}

// A phase is what a row is to the log.
type phase byte

const (
	phaseIntent    phase = 1 // about to be sent
	phaseResult    phase = 2 // how it ended
	phaseChange    phase = 3
	phaseOpen      phase = 4 // first of a file; names the head before it
	phaseClose     phase = 5 // last of a file
	phaseLost      phase = 6 // rows that could not be written
	phaseRecovered phase = 7 // the file was damaged and set aside
)

// content is what the chain covers besides order.
type content struct {
	phase phase
	row   Row
	lost  uint64   // of phaseLost
	prev  [32]byte // of phaseOpen: the hash of the row before
}

// A stored row is
//
//	bytes 0-7    its number, big-endian, one more than that of the row before
//	byte 8       version of the payload's meaning
//	bytes 9-40   SHA-256, see link
//	bytes 41-    payload: phase, then each field in a fixed order, numbers as
//	             uvarint, texts with their length before them
//
// The first 41 bytes mean the same in every version, so that an older program
// can check a chain that a newer one has written.
const (
	rowVersion = 1
	hashAt     = 9
	payloadAt  = 41
	maxPayload = 4096 // eight times what the limits above allow
)

var errRow = errors.New("it cannot be read")

// payload encodes c. The same content always gives the same bytes.
func (c *content) payload(b []byte) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	r := &c.row
	b = append(b, byte(c.phase))
	b = binary.AppendUvarint(b, uint64(max(r.Time.UnixMilli(), 0)))
	text(string(r.Kind))
	text(r.Call)
	text(r.Wrapper)
	text(r.Method)
	text(r.Host)
	b = binary.AppendUvarint(b, uint64(r.Status))
	b = binary.AppendUvarint(b, uint64(r.Bytes))
	b = binary.AppendUvarint(b, uint64(r.Duration.Milliseconds()))
	text(string(r.Error))
	text(string(r.Author))
	text(string(r.Action))
	b = binary.AppendUvarint(b, c.lost)
	if c.phase == phaseOpen {
		b = append(b, c.prev[:]...)
	}
	return b
}

// parsePayload is the inverse of payload.
func parsePayload(b []byte) (c content, err error) {
	bad := len(b) == 0 || len(b) > maxPayload
	number := func() uint64 {
		n, k := binary.Uvarint(b)
		if bad = bad || k <= 0; bad {
			return 0
		}
		b = b[k:]
		return n
	}
	text := func() string {
		n := number()
		if bad = bad || n > uint64(len(b)); bad {
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return s
	}
	// A number beyond what payload can have written is damage, not a wrapped-around value.
	upTo := func(limit uint64) int64 {
		n := number()
		bad = bad || n > limit
		return int64(min(n, limit))
	}
	if bad {
		return c, errRow
	}
	c.phase, b = phase(b[0]), b[1:]
	r := &c.row
	r.Time = time.UnixMilli(upTo(math.MaxInt64)).UTC()
	r.Kind = Kind(text())
	r.Call, r.Wrapper, r.Method, r.Host = text(), text(), text(), text()
	r.Status = int(upTo(999))
	r.Bytes = upTo(math.MaxInt64)
	r.Duration = time.Duration(upTo(math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
	r.Error, r.Author, r.Action = fault.Code(text()), Author(text()), Action(text())
	c.lost = number()
	if c.phase == phaseOpen {
		if bad = bad || len(b) < len(c.prev); !bad {
			c.prev, b = [32]byte(b), b[len(c.prev):]
		}
	}
	if bad || len(b) != 0 {
		return content{}, errRow
	}
	if c.phase == phaseLost {
		r.Action = Action(fmt.Sprintf("%d rows could not be written", c.lost))
	}
	return c, nil
}
