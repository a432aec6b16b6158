// Package redact knows which names are shaped like credentials and masks what
// stands behind them in headers and URLs. The wrapper validator, previews, the
// audit trail and the importers ask it, so that they agree.
//
// It never sees a secret's value on purpose, never decides what is sent, and
// never guesses from a value that it is a secret. Start with [CredentialHeader]
// and [CredentialQuery], which are strict enough to refuse a wrapper;
// [CredentialKey] is the looser rule for what is shown.
package redact

import (
	"net/url"
	"strings"
	"unicode"
)

// Mask stands where a value was taken out.
const Mask = "[redacted]"

// CredentialHeader reports whether a header of this name carries a credential
// or a session. Wrappers must not set such a header; request.auth does. Case and
// the characters - _ . do not matter.
func CredentialHeader(name string) bool {
	n := normal(name)
	if headerNames[n] || containsWord(n, headerWords) || hasToken(n) {
		return true
	}
	if strings.HasPrefix(n, "xsession") {
		return true
	}
	// X-Auth-Key and X-Auth-Email, but not X-Author.
	return strings.HasPrefix(n, "xauth") && !strings.HasPrefix(n, "xauthor")
}

// CredentialQuery reports whether a query or form key of this name is a
// credential by its whole name ("api_key", "token", "sig"), never by a part of
// a word, so that "monkey" and "author" pass. Wrappers must not have such a key.
// Case, the characters - _ . and everything invisible do not matter. Names in
// brackets are judged each, user[password] and token[0] alike, and so are those
// between marks at which some servers split: a;token, data(token), user:password.
// A page's token passes in every shape: page_token, page[token].
func CredentialQuery(name string) bool { return isNamed(name, queryNames) }

// CredentialPair reports whether a query or form key with this value is a
// credential: by its name, or as a "code" that is as long as a key. Wrappers
// must not have such a pair.
func CredentialPair(name, value string) bool {
	return CredentialQuery(name) || len(value) >= longCode && isNamed(name, codeNames)
}

func isNamed(name string, known map[string]bool) bool {
	before := ""
	for i, inner := range append([]string{name}, strings.FieldsFunc(name, isBracket)...) {
		joined := joinedName(inner)
		if known[joined] && !(i > 0 && pageToken(before, joined)) {
			return true
		}
		if i == 0 {
			continue // as it would be with the brackets left out
		}
		last := before
		words := strings.FieldsFunc(inner, isMark)
		for _, word := range words {
			word = normal(word)
			if known[word] && !(len(words) > 1 && honestNames[word]) && !pageToken(last, word) {
				return true
			}
			last = word
		}
		before = joined
	}
	return false
}

func isBracket(r rune) bool { return r == '[' || r == ']' }

// isMark reports whether r separates names. Letters and digits of any script,
// what normal drops and white space do not.
func isMark(r rune) bool {
	return r > ' ' && r < 0x7f && r != '-' && r != '_' && r != '.' &&
		(r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// joinedName is the normal form of a name without its marks.
func joinedName(name string) string {
	return normal(strings.Map(func(r rune) rune {
		if isMark(r) {
			return -1
		}
		return r
	}, name))
}

// pageToken reports whether word behind before is the token of a page.
func pageToken(before, word string) bool {
	return word == "token" && hasAnySuffix(before, tokenLeaders)
}

// CredentialKey reports whether a value under this JSON, form or query key
// should be hidden when it is shown, and is left out of a derived recipe. It
// finds parts of names ("stripe_secret_key"), so it must not be used to refuse
// anything. Words that are common in honest data (key, code, pin, session,
// author, token_count, next_page_token) are not credentials here.
func CredentialKey(name string) bool {
	n := normal(name)
	return keyNames[n] || containsWord(n, keyWords) || endsInToken(n)
}

// HeaderValue is value, or [Mask] when a header of this name carries a credential.
func HeaderValue(name, value string) string {
	if CredentialHeader(name) {
		return Mask
	}
	return value
}

// URL writes u for a person: user information, and the values of query and
// fragment keys that [CredentialPair] or [CredentialKey] knows, become [Mask];
// everything else keeps its spelling and order. The path is shown as it is: no
// rule can tell a secret in it. The result is for reading, not for parsing.
func URL(u *url.URL) string {
	if u == nil {
		return ""
	}
	c := *u
	c.User, c.RawQuery, c.ForceQuery, c.Fragment, c.RawFragment = nil, "", false, "", ""
	if at := strings.LastIndexByte(c.Opaque, '@'); at >= 0 {
		c.Opaque = Mask + c.Opaque[at:]
	}
	text := c.String()
	if u.User != nil {
		text = strings.Replace(text, "//", "//"+Mask+"@", 1)
	}
	if u.RawQuery != "" || u.ForceQuery {
		text += "?" + Query(u.RawQuery)
	}
	if f := u.EscapedFragment(); f != "" {
		text += "#" + Query(f)
	}
	return text
}

// Query masks the values of credential-shaped keys in a raw query string (or an
// urlencoded form) and keeps every other byte. A key that cannot be decoded is
// masked with its value.
func Query(raw string) string {
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		key, value, has := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		switch {
		case !has && err == nil:
		case err != nil:
			pairs[i] = Mask
		case CredentialPair(name, value) || CredentialKey(name):
			pairs[i] = key + "=" + Mask
		}
	}
	return strings.Join(pairs, "&")
}

// normal is the form in which names are compared.
func normal(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		case r == '-', r == '_', r == '.', r == '[', r == ']', r <= ' ', r == 0x7f, unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, name)
}

// containsWord reports whether one of words occurs in n other than as the
// beginning of a longer, harmless word ("secret" in "secretary").
func containsWord(n string, words []string) bool {
	for _, w := range words {
		for rest := n; ; {
			i := strings.Index(rest, w)
			if i < 0 {
				break
			}
			rest = rest[i+len(w):]
			if w != "secret" || !strings.HasPrefix(rest, "ar") {
				return true
			}
		}
	}
	return false
}

// hasToken finds "token" anywhere in a header's name, except where it counts or
// names the tokens of a language model or a page.
func hasToken(n string) bool {
	for rest := n; ; {
		before, after, found := strings.Cut(rest, "token")
		if !found {
			return false
		}
		if after != "s" && !hasAnyPrefix(after, tokenFollowers) && !hasAnySuffix(before, tokenLeaders) {
			return true
		}
		rest = after
	}
}

// endsInToken is the rule for keys of data, where "token" inside a name is
// mostly about language models or pages: only the end of a name counts.
func endsInToken(n string) bool {
	n = strings.TrimSuffix(strings.TrimSuffix(n, "value"), "hash")
	before, is := strings.CutSuffix(n, "token")
	return is && !hasAnySuffix(before, tokenLeaders)
}

func hasAnyPrefix(s string, list []string) bool {
	for _, p := range list {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func hasAnySuffix(s string, list []string) bool {
	for _, p := range list {
		if strings.HasSuffix(s, p) {
			return true
		}
	}
	return false
}
