package outbound

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// isRedirect reports whether a status asks for another request. 300, 304, 305
// and 306 do not: they are final answers.
func isRedirect(status int) bool {
	switch status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// follow decides on a redirect by the table in docs/decisions.md: the next hop,
// or POLICY_REDIRECT (the place is not allowed), or UPSTREAM_REDIRECT (there is
// no usable place, or a write would be repeated where nobody asked for it).
func (c *Client) follow(h *hop, resp *Response) (*hop, error) {
	to, err := location(h, resp)
	if err != nil {
		return nil, err
	}
	if h.n >= max(c.policy.MaxRedirects, 0) {
		return nil, redirectRefused("more than %d redirects", max(c.policy.MaxRedirects, 0))
	}
	t, err := c.redirectTarget(h, to)
	if err != nil {
		return nil, err
	}
	next := *h
	next.n, next.target, next.header = h.n+1, t, h.header.Clone()
	same := t.origin == h.target.origin
	if !same && h.req.HoldsSecret != nil && h.req.HoldsSecret(to.String()) {
		// The host is looked at as the API wrote it: the canonical one is in lower case.
		return nil, redirectRefused("the API puts the credential into a place at another origin")
	}
	if h.write {
		switch {
		case resp.Status == http.StatusSeeOther:
			next.method, next.body, next.write = http.MethodGet, nil, false
			dropBodyHeaders(next.header)
		case resp.Status == 301 || resp.Status == 302:
			return nil, upstreamRedirect(resp, "answered a write with %d, which does not say whether to repeat it", resp.Status)
		case !same:
			return nil, upstreamRedirect(resp, "answered a write with %d to another origin, where it is not repeated", resp.Status)
		}
	}
	if !same {
		// For good: later hops start from this header, also one that comes back.
		next.header, next.body = acrossOrigins(h), nil
	}
	return &next, nil
}

func location(h *hop, resp *Response) (*url.URL, error) {
	text := resp.Header.Get("Location")
	if text == "" {
		return nil, upstreamRedirect(resp, "answered %d without saying where to", resp.Status)
	}
	base := *h.target.url
	if base.Opaque != "" { // an exact path: read it so that relative places resolve against it
		if p, err := url.Parse(base.Opaque); err == nil {
			base.Path, base.RawPath = p.Path, p.RawPath
		}
		base.Opaque = ""
	}
	to, err := base.Parse(escapePath(text))
	if err != nil {
		return nil, upstreamRedirect(resp, "answered %d with a place that is not a URL", resp.Status)
	}
	return to, nil
}

// escapePath escapes what cannot stand in the path of a reference. net/url would
// do it too, and would then forget which slashes were written as %2F.
func escapePath(ref string) string {
	start := 0
	if i := strings.Index(ref, "//"); i == 0 || i > 0 && ref[i-1] == ':' && !strings.ContainsAny(ref[:i], "/?#") {
		start = i + len("//") // behind it the authority, which net/url reads
		n := strings.IndexAny(ref[start:], "/?#")
		if n < 0 {
			return ref
		}
		start += n
	}
	end := len(ref)
	if n := strings.IndexAny(ref[start:], "?#"); n >= 0 {
		end = start + n
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteString(ref[:start])
	for i := start; i < end; i++ {
		if c := ref[i]; c >= 0x80 || strings.IndexByte(" \"<>\\^`{|}", c) >= 0 {
			b.WriteString(string([]byte{'%', hex[c>>4], hex[c&15]}))
			continue
		}
		b.WriteByte(ref[i])
	}
	return b.String() + ref[end:]
}

// redirectTarget puts the place through the whole policy; every refusal becomes
// POLICY_REDIRECT with the reason.
func (c *Client) redirectTarget(h *hop, to *url.URL) (*target, error) {
	where := fault.Shorten(to.Scheme+"://"+to.Host, 100)
	if h.target.scheme == "https" && strings.EqualFold(to.Scheme, "http") {
		return nil, redirectRefused("%s: from https to http", where).With(fault.Hint(refusedPlace))
	}
	t, err := c.policy.target(to) // not remembered: an API chooses its redirects
	if err != nil {
		return nil, asRedirect(err)
	}
	return t, nil
}

// asRedirect renames a policy refusal that a redirect caused.
func asRedirect(err error) error {
	f := fault.From(err)
	if !strings.HasPrefix(string(f.Code), "POLICY_") || f.Code == "POLICY_REDIRECT" {
		return err
	}
	return redirectRefused("%s", f.Message).With(fault.Hint(refusedPlace), fault.Cause(err))
}

func redirectRefused(format string, args ...any) *fault.Error {
	return fault.New("POLICY_REDIRECT", "redirect refused: "+format, args...).With(fault.Field(urlField))
}

func upstreamRedirect(resp *Response, format string, args ...any) *fault.Error {
	return fault.New("UPSTREAM_REDIRECT", "the API "+format, args...).With(fault.Status(resp.Status))
}

// acrossOrigins is what another origin gets to see of the caller's headers.
func acrossOrigins(h *hop) http.Header {
	out := http.Header{}
	for _, v := range h.header.Values("Accept") {
		out.Add("Accept", v)
	}
	for _, s := range h.req.SecretHeaders {
		out.Del(s)
	}
	return out
}

// dropBodyHeaders takes away what describes a body that is no longer sent, and
// what would turn the GET back into a write.
func dropBodyHeaders(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Content-") {
			delete(h, name)
		}
	}
	for _, name := range []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"} {
		delete(h, name)
	}
}
