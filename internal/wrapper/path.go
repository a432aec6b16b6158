package wrapper

import (
	"net/url"
	"strings"
)

// A segment is what stands between two slashes of a filled path.
type segment struct {
	text strings.Builder
	name string // the last argument in it; "" when all of it is literal
}

// path fills the path of a URL. Each {{name}} becomes one encoded segment or a
// part of one, each {{name|raw}} one or more. Servers and proxies resolve "."
// and ".." and merge empty segments, so an argument must never make one.
func (b *build) path(t Template) string {
	if t.literal() {
		return t.source
	}
	segments := []*segment{{}}
	size := 0
	write := func(s, name string) {
		last := segments[len(segments)-1]
		last.text.WriteString(s)
		size += len(s) + 1
		if name != "" {
			last.name = name
		}
	}
	for _, p := range t.parts {
		if p.name == "" {
			for i, s := range strings.Split(p.text, "/") {
				if i > 0 {
					segments = append(segments, &segment{})
				}
				write(s, "")
			}
			continue
		}
		for i, s := range b.pathValue(p) {
			if i > 0 {
				segments = append(segments, &segment{})
			}
			write(escape(s), p.name)
		}
		if b.tooLarge(size, MaxURL, "url") {
			return ""
		}
	}
	var out strings.Builder
	for i, s := range segments {
		if i > 0 {
			out.WriteByte('/')
		}
		if text := s.text.String(); s.name != "" && len(b.problems) == 0 && isDotsOrEmpty(text) {
			b.badSegment(s.name, `the value makes a path segment that is empty, "." or ".."`)
		}
		out.WriteString(s.text.String())
	}
	return out.String()
}

// pathValue is the value of a placeholder in the path, as one piece, or with
// raw as one for each segment. It is never empty, so that a refused value does
// not stop the search for further problems.
func (b *build) pathValue(p part) []string {
	v, given := b.args[p.name]
	switch {
	case !given:
		b.problem(p.name, "REQUIRED", "", "is required (the URL needs it)")
		return []string{"x"}
	case v == nil:
		b.problem(p.name, "NULL_NOT_ALLOWED", "give a value", "null is not allowed: the URL needs it")
		return []string{"x"}
	}
	s, ok := b.scalarText(p.name, "the URL's path")
	if !ok {
		return []string{"x"}
	}
	if strings.ContainsFunc(s, isControl) {
		code := "CONTROL_CHARACTER"
		if p.raw {
			code = "PATH_SEGMENT"
		}
		b.problem(p.name, code, "", "the value goes into the URL's path, which cannot hold control characters")
		return []string{"x"}
	}
	pieces := strings.Split(s, "/")
	if !p.raw {
		// Some servers decode %2F and %5C before they resolve dots.
		for _, piece := range strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '\\' }) {
			if len(piece) < len(s) && isDotsOrEmpty(piece) {
				b.badSegment(p.name, `the value has "." or ".." between slashes`)
				return []string{"x"}
			}
		}
		return []string{s}
	}
	if strings.Contains(s, `\`) {
		b.badSegment(p.name, "a path cannot hold a backslash")
		return []string{"x"}
	}
	for _, piece := range pieces {
		if isDotsOrEmpty(piece) {
			b.badSegment(p.name, `a path cannot have empty segments, "." or ".."`)
			return []string{"x"}
		}
	}
	return pieces
}

func (b *build) badSegment(name, message string) {
	b.problem(name, "PATH_SEGMENT", "send a path such as a/b, without a slash at either end", "%s", message)
}

// isDotsOrEmpty reports whether a server that decodes s may see nothing, "." or
// "..".
func isDotsOrEmpty(s string) bool {
	if decoded, err := url.PathUnescape(s); err == nil {
		s = decoded
	}
	return s == "" || s == "." || s == ".."
}
