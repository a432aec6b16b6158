package wrapper

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A Call is exactly what would be sent, minus the credential. It belongs to
// its caller, who may change it for further pages.
type Call struct {
	Method  string
	URL     *url.URL
	Header  []Header // the author's in their order, the idempotency key, then Accept and Content-Type unless given
	Body    []byte   // as sent; nil: none
	Auth    string   // name of the credential; "": none
	Timeout time.Duration

	Concurrency int   // as in Request
	Rate        *Rate // as in Request
	// IdempotencyHeader names the header that makes a repeated write safe; "":
	// there is none. When Header does not hold it, the sender makes a random
	// value and keeps it over all tries of the call.
	IdempotencyHeader string

	Args     recipe.Object    // with defaults, for a dry run
	Warnings []recipe.Problem // about the arguments

	bodyType string // of Body; "": there is none
	declared bool   // the document says "mutating": true, or overrides the method
}

// A Header is one header line.
type Header struct{ Name, Value string }

// Mutating reports whether this call may change something: its method is POST,
// PUT, PATCH or DELETE, or the document says so ("mutating": true, or a
// method-override header). "mutating": false does not change that. Approval,
// the intent row and retries all go by this answer.
func (c *Call) Mutating() bool { return c.declared || writes(c.Method) }

// Digest identifies the exact request: method, URL, headers, body, the name of the
// header for a random idempotency key, and the credential's name.
func (c *Call) Digest() [32]byte {
	h := sha256.New()
	put := func(b []byte) { // framed by length, so that no two requests meet
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	put([]byte("hbrestd-call-2"))
	put([]byte(c.Method))
	put([]byte(c.URL.String()))
	put(strconv.AppendInt(nil, int64(len(c.Header)), 10)) // a header may be named like what follows
	for _, x := range c.Header {
		put([]byte(x.Name))
		put([]byte(x.Value))
	}
	if c.Body != nil {
		put([]byte("body"))
		put(c.Body)
	}
	if c.IdempotencyHeader != "" {
		put([]byte("idempotency"))
		put([]byte(c.IdempotencyHeader))
	}
	put([]byte("auth"))
	put([]byte(c.Auth))
	var out [32]byte
	h.Sum(out[:0])
	return out
}

// A Preview is a Call for the eyes of an agent or a person.
type Preview struct {
	Method  string
	URL     string // credential-shaped query values masked
	Headers []Header
	// Body is the body as sent when it is JSON, else a JSON string that holds
	// it; nil: none.
	Body     json.RawMessage
	BodyType string // BodyForm or BodyText; "" is BodyJSON or no body
	Auth     string
}

// Preview returns the call with everything credential-shaped masked. A random
// idempotency key, which the sender makes, is shown as [random].
func (c *Call) Preview() Preview {
	p := Preview{Method: c.Method, URL: redact.URL(c.URL), Headers: []Header{}, Body: c.Body, Auth: c.Auth}
	if c.Body != nil && (c.bodyType == BodyForm || c.bodyType == BodyText) {
		p.Body, p.BodyType = recipe.Encode(string(c.Body)), c.bodyType
	}
	keyed := c.IdempotencyHeader == ""
	for _, h := range c.Header {
		p.Headers = append(p.Headers, Header{h.Name, redact.HeaderValue(h.Name, h.Value)})
		keyed = keyed || strings.EqualFold(h.Name, c.IdempotencyHeader)
	}
	if !keyed {
		p.Headers = append(p.Headers, Header{c.IdempotencyHeader, "[random]"})
	}
	return p
}
