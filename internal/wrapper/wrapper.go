package wrapper

import (
	"crypto/sha256"
	"net/url"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Limits of a document and of a request made from it.
const (
	MaxDocument    = 256 << 10 // bytes of a document; imported ones are below 60 KiB
	MaxDepth       = 64        // arrays and objects inside each other in a document
	MaxName        = 200       // characters
	MaxDescription = 2000      // characters
	MaxURL         = 16 << 10  // bytes of a filled URL; servers refuse more than 8 to 16 KiB
	MaxHeaders     = 64 << 10  // bytes of all filled header values
	MaxBody        = 5 << 20   // bytes of a filled body
)

// Bounds of request.timeoutMs.
const (
	DefaultTimeout = 15 * time.Second
	MaxTimeout     = 60 * time.Second
	// WarnTimeout is the deadline of a whole call by default: a longer
	// timeout is clipped to it.
	WarnTimeout = 50 * time.Second
)

// A Wrapper is a checked document. Make one with Parse; it is immutable
// afterwards and safe for concurrent use.
type Wrapper struct {
	SchemaVersion int
	ID            string // [A-Za-z0-9][A-Za-z0-9._-]{0,99}
	Name          string // the id when the document has none
	Description   string
	Request       Request
	Input         *schema.Schema // with the generated method argument; never nil
	Response      *recipe.Recipe // nil: records are the raw value
	ExposeAsTool  bool
	// Mutating is what lists and annotations say: the document's own word or,
	// without one, whether any allowed method writes; a method-override header
	// makes it true. Whether one call writes is (*Call).Mutating.
	Mutating bool

	declared bool   // the document says "mutating": true
	override bool   // a method-override header is set
	raw      []byte // normalised document
}

// Request is the template of a wrapper's request.
type Request struct {
	Method  string   // the default
	Methods []string // all allowed: the default, then the others in the document's order
	URL     string   // as written, with placeholders
	Query   []Param
	Headers []Param
	Body    *Body         // nil: none; holds bodyType and formArrays
	Auth    string        // a credential's name, never a value; "": none
	Timeout time.Duration // of one request, 1 ms to MaxTimeout
	// Concurrency lowers how many requests of this wrapper's origin may be in
	// flight at once, 1 to MaxConcurrency; 0: the client's own limit.
	Concurrency int
	Rate        *Rate        // nil: as fast as the queue allows
	Idempotency *Idempotency // nil: a POST or PATCH that may have arrived is never repeated

	url *urlTemplate
}

// MaxConcurrency is the most that request.concurrency may say.
const MaxConcurrency = 32

// A Rate is at most Requests in any Per, counted for the whole origin.
type Rate struct {
	Requests int           // 1 to 10000
	Per      time.Duration // 1 s to 1 h
}

// Idempotency is the header by which an API recognises a repeated write.
type Idempotency struct {
	Header string
	Value  *Template // nil: a random key, the same over all tries of one call
}

// A Param is a query parameter or a header.
type Param struct {
	Name   string
	Values []Template // one, unless a query parameter is written as an array
	Style  string     // of a query parameter's several values: one of the Style constants; "" is StyleRepeat
}

// The styles of a query parameter with several values.
const (
	StyleRepeat   = "repeat"   // tag=a&tag=b
	StyleComma    = "comma"    // tag=a,b
	StylePipe     = "pipe"     // tag=a%7Cb
	StyleBrackets = "brackets" // tag%5B%5D=a&tag%5B%5D=b
)

// Document returns the normalised document: compact JSON in a fixed order of
// the known fields, with the author's order wherever order has a meaning.
// Parse of it gives the same document byte for byte.
func (w *Wrapper) Document() []byte { return append([]byte(nil), w.raw...) }

// Digest is the SHA-256 of the normalised document.
func (w *Wrapper) Digest() [32]byte { return sha256.Sum256(w.raw) }

// Host is the canonical host of the request, with the port when it is not the
// scheme's own.
func (w *Wrapper) Host() string { return w.Request.url.host }

// Origin is the part of the URL that no argument can change: scheme, host and
// port.
func (w *Wrapper) Origin() *url.URL {
	return &url.URL{Scheme: w.Request.url.scheme, Host: w.Request.url.host, Path: "/"}
}

// DefaultMethod is the method of a call that does not choose one.
func (w *Wrapper) DefaultMethod() string { return w.Request.Method }

// EffectiveSchema is the input schema as a tool publishes it, with the
// generated method argument when the wrapper allows several methods.
func (w *Wrapper) EffectiveSchema() recipe.Object { return w.Input.Published() }
