// Package approval is the desk between a call that writes and the person who
// may allow it: it holds questions and their answers, in memory.
//
// It decides nothing about requests and knows no network and no disk: what
// counts as a write, what the policy is and what is trusted for good arrives as
// functions in [Options]. An answer can only come in through [Desk.Decide],
// which the person's face calls and the agent's has no way to. Start with
// [New], then [Desk.Allow] for a call that asks.
package approval

import (
	"time"
)

// A Policy says when a person is asked.
type Policy string

// The policies, from the one that asks least to the one that asks most.
const (
	Off    Policy = "off"    // never
	First  Policy = "first"  // once for each document of a wrapper; the answer holds for all its calls until the daemon stops
	Always Policy = "always" // for each request; one answer lets one request out
)

// Stricter reports whether p asks more than q. A policy that is none of the
// three counts as Always.
func (p Policy) Stricter(q Policy) bool { return p.rank() > q.rank() }

func (p Policy) rank() int {
	switch p {
	case Off:
		return 0
	case First:
		return 1
	}
	return 2
}

// Limits of the desk. A person reads every question; beyond these an agent
// would only hide one among many.
const (
	MaxPending    = 100      // questions that wait for an answer
	MaxPerWrapper = 10       // of one wrapper, by its id
	MaxBytes      = 32 << 20 // of all requests that are held to be shown, whole
	maxEnded      = 100      // questions remembered after their end, without their request
)

// Defaults of Options.
const (
	DefaultWait = 15 * time.Second
	DefaultLife = 10 * time.Minute
)

// An Ask is the question whether one exact request may be sent. Everything in
// it has been redacted by whoever asks.
type Ask struct {
	Wrapper string   // id
	Name    string   // of the wrapper, for the person
	Doc     [32]byte // digest of the wrapper document
	Call    [32]byte // digest of the exact request
	Pages   int      // requests that the call may send in all; 1 without pagination

	Method, URL, Host string
	Headers           []string // "Name: value"
	Body              string   // as it would be sent, whole
	BodyType          string   // "form" or "text"; "": JSON or no body
	Auth              string   // name of the credential; "": none
}

func (a *Ask) key() key { return key{a.Doc, a.Call, a.Pages} }

func (a *Ask) size() int {
	n := len(a.URL) + len(a.Body) + len(a.Name)
	for _, h := range a.Headers {
		n += len(h)
	}
	return n
}

// A key is what one answer is for. The document is part of it, so that an
// answer never reaches another version of a wrapper that makes the same request.
type key struct {
	doc, call [32]byte
	pages     int
}

// A Verdict is a person's answer.
type Verdict int

// The verdicts.
const (
	Deny  Verdict = iota
	Allow         // what that covers is the policy's to say
	Trust         // this document of the wrapper, for good
)

// A State says where a question is.
type State string

// The states.
const (
	Pending State = "pending" // waits for an answer
	Allowed State = "allowed" // and not used up
	Denied  State = "denied"
	Used    State = "used"    // allowed, and the request was let out
	Expired State = "expired" // nobody answered, or nobody used the answer, in time
)

// A Question is an Ask with what has become of it.
type Question struct {
	Ask
	ID      string
	State   State
	Policy  Policy    // in force now; what Allow covers follows from it
	Asked   time.Time // when it came up
	Expires time.Time // when it, or its answer, ends by itself; zero: it does not
	Waiting int       // calls that wait at this moment
}

// An Event is something the audit trail tells of.
type Event struct {
	Kind EventKind
	ID   string
	Ask  Ask // without its request's parts once the question has ended
}

// An EventKind says what happened to a question.
type EventKind int

// The kinds.
const (
	EventAsked EventKind = iota
	EventAllowed
	EventTrusted
	EventDenied
	EventExpired
)

// Options are what a desk needs. The functions may be called at once by several
// goroutines and must not call the desk.
type Options struct {
	// Policy is the one in force for a document of a wrapper.
	Policy func(wrapper string, doc [32]byte) Policy
	// Trusted reports whether a person has trusted a document for good.
	Trusted func(wrapper string, doc [32]byte) bool
	// Trust keeps that; its error is the answer of Decide.
	Trust func(wrapper string, doc [32]byte) error
	// Record writes an event down. It is called in the order of the events, and
	// before an answer has any effect.
	Record func(Event)
	// NewID makes an id that cannot be guessed: 128 random bits as text.
	NewID func() string
	Now   func() time.Time
	Wait  time.Duration // how long a call waits for an answer; 0: DefaultWait
	Life  time.Duration // of a question, and then of its answer; 0: DefaultLife
}
