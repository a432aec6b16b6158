package recipe

import (
	"slices"
	"strings"
	"unicode"
)

// Bounds and defaults of pagination.
const (
	defaultMaxPages = 10
	mostPages       = 25
	maxPageSize     = 1000
	maxStart        = 1_000_000_000
	maxParamChars   = 80
)

// The types of pagination.
const (
	pagingNone   = "none"
	pagingOffset = "offset"
	pagingCursor = "cursor"
	pagingLink   = "link"
)

var pagingTypes = [...]string{pagingNone, pagingOffset, pagingCursor, pagingLink}

var pagingKeys = [...]string{
	"type", "maxPages", "limitParam", "pageSize", "offsetParam", "start", "step", "total",
	"hasMore", "hasMoreWhen", "next", "cursorParam", "in", "nextUrl", "rel",
}

// keyTypes says which types a pagination key belongs to; nil: every type.
func keyTypes(key string) []string {
	switch key {
	case "offsetParam", "start", "step":
		return []string{pagingOffset}
	case "next", "cursorParam":
		return []string{pagingCursor}
	case "in":
		return []string{pagingOffset, pagingCursor}
	case "nextUrl", "rel":
		return []string{pagingLink}
	}
	return nil
}

func (c *checker) pagination(at string, v Value) {
	o, ok := c.object(at, v)
	if !ok {
		return
	}
	p := &c.r.Pagination
	p.Type = pagingNone
	typ, typeGiven := first(o, "type")
	known := !typeGiven
	if s, ok := typ.(string); ok {
		p.Type = s
		known = slices.Contains(pagingTypes[:], s)
	}
	if v, given := first(o, "in"); given { // decides how parameter names are read
		p.In, _ = v.(string)
	}
	if known && p.Paged() {
		p.MaxPages, p.HasMoreWhen = defaultMaxPages, true
		switch p.Type {
		case pagingOffset:
			p.Step = "items"
		case pagingLink:
			p.Rel = "next"
		}
		if p.Type != pagingLink && p.In == "" {
			p.In = "query"
		}
		if c.r.Mode == Document {
			c.problem(at, "PAGING_MODE", `use mode "table" or "documents"`, "mode %q is one request", Document)
		}
	}
	given := map[string]bool{}
	c.each(at, o, func(key, field string, v Value) {
		given[key] = true
		if !slices.Contains(pagingKeys[:], key) {
			c.unknown(field, key, pagingKeys[:])
			return
		}
		if of := keyTypes(key); known && of != nil && !slices.Contains(of, p.Type) {
			if typeGiven {
				c.problem(field, "PAGING_KEY", "", "only with type %s", quoted(of))
			}
			return
		}
		if known && typeGiven && p.Type == pagingNone && key != "type" {
			c.warn(field, "PAGING_KEY", "", "has no effect with type %q", pagingNone)
		}
		c.pagingKey(p, key, field, v)
	})
	if !typeGiven && len(o) > 0 {
		c.problem(at+".type", "REQUIRED", "", "required, one of %s", quoted(pagingTypes[:]))
		return
	}
	require := func(key, why string) {
		if !given[key] {
			c.problem(at+"."+key, "REQUIRED", "", "required for type %q%s", p.Type, why)
		}
	}
	switch p.Type {
	case pagingOffset:
		require("offsetParam", "")
		require("pageSize", "")
	case pagingCursor:
		require("next", "")
		require("cursorParam", "")
	case pagingLink:
		require("nextUrl", "")
	}
	if known && p.Type != pagingOffset && given["limitParam"] && !given["pageSize"] {
		c.problem(at+".pageSize", "REQUIRED", "", "required with limitParam")
	}
	if given["hasMoreWhen"] && !given["hasMore"] {
		c.problem(at+".hasMoreWhen", "PAGING_KEY", "", "only with hasMore")
	}
	c.distinctParams(at, o, p)
}

func (c *checker) pagingKey(p *Pagination, key, field string, v Value) {
	switch key {
	case "type":
		c.oneOf(field, "PAGING_TYPE", v, pagingTypes[:]...)
	case "maxPages":
		p.MaxPages, _ = c.integer(field, "RANGE", v, 1, mostPages)
	case "limitParam":
		// The page size is always a query parameter, whatever "in" says.
		p.LimitParam = c.param(field, v, "query")
	case "pageSize":
		p.PageSize, _ = c.integer(field, "RANGE", v, 1, maxPageSize)
	case "offsetParam":
		p.OffsetParam = c.param(field, v, p.In)
	case "start":
		p.Start, _ = c.integer(field, "RANGE", v, 0, maxStart)
	case "step":
		p.Step, _ = c.oneOf(field, "ENUM", v, "items", "page")
	case "total":
		p.Total = c.source(field, v)
	case "hasMore":
		p.HasMore = c.source(field, v)
	case "hasMoreWhen":
		p.HasMoreWhen, _ = c.boolean(field, v)
	case "next":
		p.Next = c.source(field, v)
	case "cursorParam":
		p.CursorParam = c.cursorParam(field, v, p.In)
	case "in":
		p.In, _ = c.oneOf(field, "ENUM", v, "query", "body", "header")
	case "nextUrl":
		p.NextURL = c.source(field, v)
	case "rel":
		p.Rel, _ = c.short(field, "PAGING_KEY", v, 1, maxParamChars)
	}
}

func (c *checker) cursorParam(field string, v Value, in string) string {
	if s, ok := v.(string); !ok || s != "*" {
		return c.param(field, v, in)
	}
	if in == "header" { // the answer would choose the names of request headers
		c.problem(field, "PAGING_KEY", "name the header", `"*" is not for in %q`, in)
	}
	return "*"
}

// param reads the name of a query parameter or header, or a dotted place in a
// body.
func (c *checker) param(field string, v Value, in string) string {
	s, ok := c.short(field, "PAGING_KEY", v, 1, maxParamChars)
	if !ok {
		return ""
	}
	name := s
	switch in {
	case "header":
		if !isToken(s) {
			c.problem(field, "PAGING_KEY", "", "%q is not the name of a header", s)
			return s
		}
		if belongsToConnection(s) {
			c.problem(field, "PAGING_KEY", "", "header %q belongs to the connection", s)
			return s
		}
	case "body":
		if slices.Contains(strings.Split(s, "."), "") {
			c.problem(field, "PAGING_KEY", `for example "variables.after"`, "must be names with a dot between them")
			return s
		}
		name = s[strings.LastIndexByte(s, '.')+1:]
	default:
		if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
			c.problem(field, "PAGING_KEY", "", "a parameter name has no white space or control characters")
			return s
		}
	}
	if c.credential(name) {
		code := "CREDENTIAL_QUERY"
		if in == "header" {
			code = "CREDENTIAL_HEADER"
		}
		c.problem(field, code, "credentials belong into request.auth", "%q looks like the name of a credential", s)
	}
	return s
}

func (c *checker) credential(name string) bool {
	return c.opts.CredentialName != nil && c.opts.CredentialName(name)
}

// source reads where a pagination value comes from: header:NAME, or a path
// into the body that may leave out the $.
func (c *checker) source(field string, v Value) *Source {
	if s, ok := v.(string); ok {
		if name, ok := strings.CutPrefix(s, "header:"); ok {
			switch {
			case len(name) > maxParamChars || !isToken(name):
				c.problem(field, "PAGING_KEY", `for example "header:Link"`, "%q is not the name of a header", clip(name))
			case c.credential(name):
				c.problem(field, "CREDENTIAL_HEADER", "", "header %q may carry a credential", name)
			}
			return &Source{Header: name}
		}
	}
	p, ok := c.path(field, v)
	if !ok {
		return nil
	}
	if p.special != "" || p.text == "@" || strings.HasPrefix(p.text, "@.") || strings.HasPrefix(p.text, "@[") {
		c.problem(field, "PATH_ROOT", "write $.name or name", "the path starts at the whole body")
		return nil
	}
	return &Source{Path: p.fromBody()}
}

// distinctParams refuses two parameters of one name, at the later one.
func (c *checker) distinctParams(at string, o Object, p *Pagination) {
	other, key := p.OffsetParam, "offsetParam"
	if p.Type == pagingCursor {
		other, key = p.CursorParam, "cursorParam"
	}
	if p.LimitParam == "" || p.LimitParam != other || p.In != "query" {
		return
	}
	field, twin := at+"."+key, "limitParam"
	for _, m := range o {
		if m.Key == "limitParam" {
			break
		}
		if m.Key == key {
			field, twin = at+".limitParam", key
			break
		}
	}
	c.problem(field, "PAGING_KEY", "", "must differ from %s", twin)
}

// belongsToConnection reports whether a header is made by the HTTP client
// itself: setting it could take the request apart.
func belongsToConnection(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(connectionHeaders[:], name) || strings.HasPrefix(name, "proxy-")
}

var connectionHeaders = [...]string{
	"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
	"upgrade", "expect",
}

// isToken reports whether s can be the name of an HTTP header.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}
