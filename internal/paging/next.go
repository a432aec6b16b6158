package paging

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// offset counts on. A page that is shorter than pageSize is the last one: what
// a server that serves fewer than it was asked for has skipped cannot be known.
func (w *Walker) offset(p Page) step {
	switch {
	case p.Items <= 0:
		return step{reason: StopEmptyPage}
	case w.repeats(p):
		w.report.Items -= p.Items
		w.report.Repeat = true
		return step{
			reason: StopLoop, more: w.claimed(p),
			note: fmt.Sprintf("two pages in a row are the same: does the API know %q?", w.plan.OffsetParam),
		}
	case w.complete():
		return step{reason: StopTotal}
	case p.Items < w.plan.PageSize:
		s := step{reason: StopShortPage, more: w.claimed(p)}
		if s.more {
			s.note = fmt.Sprintf("a page has %d items although the API says there are more: is pageSize %d above its maximum?", p.Items, w.plan.PageSize)
		}
		return s
	}
	if w.plan.Step == "page" {
		w.at++
	} else {
		w.at += w.plan.PageSize
	}
	return proceed(w.offsetEdit())
}

// repeats notices an API that ignores the offset, or serves its last page for
// every number behind it: it would fill the result with the same items.
func (w *Walker) repeats(p Page) bool {
	if p.Body == nil {
		return false
	}
	before := w.body
	w.body = sha256.Sum256(p.Body)
	return w.report.Pages > 1 && w.body == before
}

func (w *Walker) offsetEdit() Edit {
	n := number(w.at)
	var e Edit
	e.put(w.plan.In, w.plan.OffsetParam, n, string(n))
	return w.limited(e)
}

// limited adds the page size, which is the author's whatever the API names.
func (w *Walker) limited(e Edit) Edit {
	if w.plan.LimitParam != "" && w.plan.PageSize > 0 {
		e.Query = append(e.Query, Pair{w.plan.LimitParam, strconv.Itoa(w.plan.PageSize)})
	}
	return e
}

// cursor follows the token that the API names. A page may be short or empty
// without ending the list: some APIs filter after paging.
func (w *Walker) cursor(p Page) step {
	v := p.value(w.plan.Next)
	switch {
	case nothing(v):
		return step{reason: StopEnd}
	case w.complete():
		return step{reason: StopTotal}
	}
	e, sight, note := w.cursorEdit(v)
	switch {
	case note != "":
		return step{reason: StopBadNext, more: true, note: note}
	case w.seen[sight]:
		return step{reason: StopLoop, more: w.claimed(p), note: "the API names a cursor that was already sent"}
	}
	e = w.limited(e)
	if w.request != nil && len(e.address(w.request).String()) > maxURL {
		return step{reason: StopBadNext, more: true, note: fmt.Sprintf("with the cursor the URL has more than %d bytes", maxURL)}
	}
	w.seen[sight] = true
	return proceed(e)
}

// cursorEdit puts a cursor where the plan wants it. sight is the form in which
// cursors are compared; note says why v cannot be one.
func (w *Walker) cursorEdit(v recipe.Value) (e Edit, sight, note string) {
	encoded := recipe.Encode(v)
	if len(encoded) > maxCursor {
		return e, "", fmt.Sprintf("the cursor has more than %d bytes: check the path in next", maxCursor)
	}
	if w.plan.CursorParam == "*" {
		note = e.merge(w.plan.In, v)
		return e, string(encoded), note
	}
	if w.plan.In == "body" {
		e.put("body", w.plan.CursorParam, v, "")
		return e, string(encoded), ""
	}
	s, ok := text(v)
	switch {
	case !ok:
		return e, "", fmt.Sprintf("the cursor is %s, which cannot stand in a %s", kindOf(v), place(w.plan.In))
	case w.plan.In == "header" && !headerValue(s):
		return e, "", "the cursor has characters that cannot stand in a header"
	}
	e.put(w.plan.In, w.plan.CursorParam, v, s)
	return e, s, ""
}

func place(in string) string {
	if in == "header" {
		return "header"
	}
	return "query"
}

// merge takes every member of an object: cursorParam "*". Null members are
// left out of a query, which has no way to say null.
func (e *Edit) merge(in string, v recipe.Value) (note string) {
	o, ok := v.(recipe.Object)
	switch {
	case !ok:
		return fmt.Sprintf(`next leads to %s; cursorParam "*" needs an object`, kindOf(v))
	case len(o) > maxMembers:
		return fmt.Sprintf("the object that next leads to has more than %d members", maxMembers)
	}
	for _, m := range o {
		s, ok := text(m.Value)
		switch {
		case m.Key == "" || strings.ContainsFunc(m.Key, control):
			return "a member of the object that next leads to has no usable name"
		case in == "body":
			e.Body = append(e.Body, Place{[]string{m.Key}, m.Value})
		case ok:
			e.setQuery(m.Key, s)
		case m.Value != nil:
			return fmt.Sprintf("a member of the object that next leads to is %s, which cannot stand in a query", kindOf(m.Value))
		}
	}
	return ""
}

// link follows the URL that the API names, within the origin of the first
// request: another one would be handed the wrapper's headers and credential.
func (w *Walker) link(p Page) step {
	text, note := w.nextText(p)
	switch {
	case text == "" && note == "":
		return step{reason: StopEnd}
	case w.complete():
		return step{reason: StopTotal}
	case note != "":
		return step{reason: StopBadNext, more: true, note: note}
	}
	w.saw(p.URL) // after redirects
	u, reason, note := w.resolve(p.URL, text)
	switch {
	case reason != "":
		return step{reason: reason, more: true, note: note}
	case w.seen[w.sight(u)]:
		return step{reason: StopLoop, more: w.claimed(p), note: "the next link leads to a page that was already read"}
	}
	w.saw(u)
	return proceed(Edit{URL: u})
}

// nextText is the next link as the API writes it; "" is none.
func (w *Walker) nextText(p Page) (text, note string) {
	if src := w.plan.NextURL; src != nil && strings.EqualFold(src.Header, "link") {
		return linkTarget(p.header(src.Header), cmp.Or(w.plan.Rel, "next")), ""
	}
	v := p.value(w.plan.NextURL)
	templated := false
	if o, ok := v.(recipe.Object); ok && len(o) > 0 { // a link object: JSON:API, HAL
		href, _ := o.Get("href")
		if href == nil {
			href, _ = o.Get("url")
		}
		t, _ := o.Get("templated")
		templated = t == true
		if v = href; v == nil {
			return "", `the next link is an object without "href" and "url"`
		}
	}
	if nothing(v) {
		return "", ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		return "", fmt.Sprintf("the next link is %s, not a text", kindOf(v))
	case templated && strings.Contains(s, "{"):
		return "", "the next link is a template"
	}
	return strings.TrimSpace(s), ""
}

// resolve makes an absolute URL of the next link, in the scheme and with the
// host of the first request, or says why it cannot be followed.
func (w *Walker) resolve(page *url.URL, text string) (u *url.URL, reason, note string) {
	if len(text) > maxURL {
		return nil, StopBadNext, fmt.Sprintf("the next link has more than %d bytes", maxURL)
	}
	if page == nil {
		page = w.request
	}
	ref, err := url.Parse(exactPath(text))
	if err != nil || page == nil {
		return nil, StopBadNext, "the next link is not a URL"
	}
	u = page.ResolveReference(ref)
	u.Fragment, u.RawFragment = "", ""
	if u.User != nil {
		return nil, StopBadNext, "the next link has user information before its host"
	}
	origin, err := hostname.Origin(u)
	if err != nil {
		return nil, StopBadNext, "the next link is not an http or https URL with a valid host"
	}
	if origin != w.origin && !w.upgrades(u, origin) {
		return nil, StopCrossOrigin, "the next link leads to " + origin
	}
	u.Scheme, u.Host = w.request.Scheme, w.request.Host // the same origin, in the wrapper's own spelling
	if len(u.String()) > maxURL {
		return nil, StopBadNext, fmt.Sprintf("the next URL has more than %d bytes", maxURL)
	}
	return u, "", ""
}

// exactPath escapes what cannot stand in the path of a URL. net/url would do
// it too, and would then forget which slashes of the path were written as %2F.
func exactPath(ref string) string {
	start := 0
	if i := strings.Index(ref, "//"); i == 0 || i > 0 && ref[i-1] == ':' && !strings.ContainsAny(ref[:i], "/?#") {
		start = i + len("//") // the authority
		end := strings.IndexAny(ref[start:], "/?#")
		if end < 0 {
			return ref
		}
		start += end
	}
	end := strings.IndexAny(ref[start:], "?#")
	if end < 0 {
		end = len(ref) - start
	}
	end += start
	var b strings.Builder
	b.WriteString(ref[:start])
	for i := start; i < end; i++ {
		if c := ref[i]; c >= 0x80 || strings.IndexByte(" \"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(ref[i])
	}
	b.WriteString(ref[end:])
	return b.String()
}

// upgrades is the one exception to the rule of the same origin: frameworks
// behind a proxy print http:// links to an https API.
func (w *Walker) upgrades(u *url.URL, origin string) bool {
	rest, plain := strings.CutPrefix(origin, "http://")
	host, standard := strings.CutSuffix(rest, ":80")
	return plain && standard && w.origin == "https://"+host+":443"
}

// saw remembers a URL that was asked for or answered.
func (w *Walker) saw(u *url.URL) {
	if u != nil {
		w.seen[w.sight(u)] = true
	}
}

// sight is the form in which URLs are compared.
func (w *Walker) sight(u *url.URL) string {
	c := *u
	c.Fragment, c.RawFragment = "", ""
	if c.Path == "" {
		c.Path = "/"
	}
	if o, err := hostname.Origin(u); err == nil && o == w.origin {
		c.Scheme, c.Host = w.request.Scheme, w.request.Host
	}
	return c.String()
}
