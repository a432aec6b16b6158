package wrapper

import (
	"net/url"
	"strings"
)

// A segment is what stands between two slashes of a filled path.
type segment struct {
	start int    // its first byte in the path
	name  string // the last argument in it; "" when all of it is literal
}

// path fills the path of a URL. Each {{name}} becomes one encoded segment or a
// part of one, each {{name|raw}} one or more. Servers and proxies resolve "."
// and ".." and merge empty segments, so an argument must never make one.
func (b *build) path(t Template) string {
	if t.literal() {
		return t.source
	}
	out := make([]byte, 0, 2*len(t.source))
	segments := append(make([]segment, 0, 8), segment{})
	size := 0
	write := func(first bool, s, name string) {
		if !first {
			out = append(out, '/')
			segments = append(segments, segment{start: len(out)})
		}
		out = append(out, s...)
		size += len(s) + 1
		if name != "" {
			segments[len(segments)-1].name = name
		}
	}
	for _, p := range t.parts {
		if b.large != nil {
			return ""
		}
		first := true
		if p.name == "" {
			for s := range strings.SplitSeq(p.text, "/") {
				write(first, s, "")
				first = false
			}
			continue
		}
		for _, s := range b.pathValue(p, size) {
			write(first, escape(s), p.name)
			first = false
		}
		if b.tooLarge(size, MaxURL, "url") {
			return ""
		}
	}
	path := string(out)
	for i, s := range segments {
		if s.name == "" || len(b.problems) > 0 {
			continue
		}
		end := len(path)
		if i+1 < len(segments) {
			end = segments[i+1].start - len("/")
		}
		if message := misread(path[s.start:end]); message != "" {
			b.badSegment(s.name, message)
		}
	}
	return path
}

// misread says what is wrong with a filled segment, however its pieces came
// about: some servers decode %2F and %5C before they resolve dots, and some
// drop ";" and what follows it first.
func misread(segment string) string {
	text := segment
	if decoded, err := url.PathUnescape(segment); err == nil {
		text = decoded
	}
	if text == "" || isDots(text) {
		return `the value makes a path segment that is empty, "." or ".."`
	}
	if text == segment && !strings.ContainsRune(text, '\\') { // one piece, which was looked at
		return ""
	}
	pieces := strings.FieldsFunc(text, isSlash)
	for _, piece := range pieces {
		if isDots(piece) || len(piece) < len(text) && isDotsOrEmpty(piece) {
			return `the value makes a path with "." or ".." between slashes`
		}
	}
	return ""
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// pathValue is the value of a placeholder in the path, as one piece, or with
// raw as one for each segment. It is never empty, so that a refused value does
// not stop the search for further problems.
// before is the size of the path so far.
func (b *build) pathValue(p part, before int) []string {
	if b.refused[p.name] {
		return []string{"x"} // it may stand there a thousand times
	}
	n := len(b.problems)
	pieces := b.checkedPathValue(p, before)
	if len(b.problems) > n {
		b.refuse(p.name)
	}
	return pieces
}

// refuse notes an argument that need not be looked at again.
func (b *build) refuse(name string) {
	if b.refused == nil {
		b.refused = map[string]bool{}
	}
	b.refused[name] = true
}

func (b *build) checkedPathValue(p part, before int) []string {
	v, given := b.args.get(p.name)
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
	if b.tooLarge(before+len(s), MaxURL, "url") {
		return nil
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
		// The finished segment is judged too; here it is known whose dots they are.
		for _, piece := range strings.FieldsFunc(s, isSlash) {
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
	return s == "" || isDots(s)
}

// isDots reports whether s is "." or "..", also with ";" and something behind.
func isDots(s string) bool {
	s, _, _ = strings.Cut(s, ";")
	return s == "." || s == ".."
}
