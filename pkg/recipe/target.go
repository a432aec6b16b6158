package recipe

import (
	"bytes"
	"slices"
	"strings"
)

// What a text may not bring into each part of an address.
var (
	inSchemeEscaper = strings.NewReplacer(":", "%3A", "&", "%26")
	inPathEscaper   = strings.NewReplacer("?", "%3F", "#", "%23")
	inQueryEscaper  = strings.NewReplacer("&", "%26", "#", "%23")
)

// appendTarget writes text into the link destination, the autolink or the
// attribute that dst ends in; after is what the author has behind it there. A
// scheme can come from a value only where it is one that links may have, however
// many values spell it. The host that the author began stays the author's: a
// value that would make another of it is left out, because no escape helps,
// browsers undo escapes in hosts.
func appendTarget(dst []byte, text, after string) []byte {
	from := targetStart(dst)
	there := string(dst[from:])
	autolink := from > 0 && dst[from-1] == '<' && (from == 1 || dst[from-2] != '(')
	if autolink && there == "" && !linkable(text) {
		// What is no address would be a tag.
		dst = slices.Insert(dst, from-1, '\\')
		return appendText(dst, clean(text, false), "", false, len(dst))
	}
	host, inHost := openHost(there)
	switch path, query := strings.IndexByte(there, '/') >= 0, strings.IndexByte(there, '?') >= 0; {
	case inHost:
		if !fitsHost(host, text, after) {
			return dst
		}
	case strings.IndexByte(there, '#') >= 0:
	case query:
		if !strings.HasSuffix(there, "?") {
			text = inQueryEscaper.Replace(text)
		}
	case there == "/" && strings.HasPrefix(text, "/"):
		text = "%2F" + text[1:] // two would begin a host
	case path && after != "":
		text = inPathEscaper.Replace(text)
	case !strings.ContainsAny(there, ":/") && (there != "" || !linkable(text)):
		scheme, rest := text, ""
		if end := strings.IndexAny(text, "/?#"); end >= 0 { // behind it no colon ends a scheme
			scheme, rest = text[:end], text[end:]
		}
		text = inSchemeEscaper.Replace(scheme) + rest
	}
	return appendURL(dst, text, autolink)
}

// targetStart is where the address begins that dst ends in. What values wrote
// into it has no brackets, quotes and spaces.
func targetStart(dst []byte) int {
	paren, angle := bytes.LastIndex(dst, []byte("](")), bytes.LastIndexByte(dst, '<')
	if paren >= 0 && angle <= paren+len("](") {
		from := paren + len("](")
		return from + bytes.LastIndexAny(dst[from:], "< \t\n") + 1
	}
	from := angle + 1
	tag := bytes.LastIndexAny(dst[from:], " \t\n\"'") + 1
	if from += tag; tag == 0 {
		return from
	}
	if name, _, is := bytes.Cut(dst[from:], []byte("=")); is && isAll(string(name), func(c byte) bool { return asciiLetter(c) || c == '-' }) {
		from += len(name) + 1
	}
	return from
}

// openHost returns what there is of the host, user and port where an address
// ends within them.
func openHost(there string) (host string, open bool) {
	_, host, open = strings.Cut(there, "//")
	if i := strings.Index(there, "//"); i > 0 && (there[i-1] != ':' || strings.ContainsAny(there[:i], "/?#")) {
		return "", false
	}
	return host, open && !strings.ContainsAny(host, "/?#")
}

// fitsHost reports whether text can go on behind host without making another
// host of it than the author meant.
func fitsHost(host, text, after string) bool {
	end := len(after)
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		end = i
	}
	rest := strings.ReplaceAll(after[:end], "{", "") // of the host, the author's
	switch {
	case strings.Contains(rest, "."):
		return isAll(text, func(c byte) bool {
			return asciiLetter(c) || asciiDigit(c) || c == '-' || c == '_' || c == '.'
		})
	case host == "":
		return true // the whole host is the value's
	case strings.HasSuffix(host, ":"):
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		return digits == len(text) || rest == "" && digits > 0 && strings.IndexByte("/?#", text[digits]) >= 0
	}
	return text == "" || rest == "" && strings.IndexByte("/?#", text[0]) >= 0
}
