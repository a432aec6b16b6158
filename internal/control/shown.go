package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Visible writes what a terminal does not show as numbers: control characters,
// marks that turn or join text, and blanks that look like nothing. What a
// person allows must be what they see. A tab becomes four blanks.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t':
			b.WriteString("    ")
		case !unicode.IsGraphic(r), unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point),
			unicode.Is(unicode.Zs, r) && r != ' ', r == 0x2800, r == 0x1d159, r == unicode.ReplacementChar: // two blanks among the symbols
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// VersionWords say which version of its wrapper a question is about.
func (q *Approval) VersionWords() string {
	switch q.Version {
	case "saved":
		return "the saved wrapper"
	case "other":
		return "not the saved wrapper: that has been edited, or this one was only tried; an answer holds for this one alone"
	}
	return "not saved: the wrapper came with the call"
}

// BodyText is the body as people read it: JSON indented, everything else as it
// is. It still needs Visible.
func (q *Approval) BodyText() string {
	var b bytes.Buffer
	if q.BodyType == "" && json.Indent(&b, []byte(q.Body), "", "  ") == nil {
		return b.String()
	}
	return q.Body
}

// A ValuePlace is one value of a credential, as a person is asked for it.
type ValuePlace struct {
	Prompt string // "Value for X-App-Key"
	Keep   bool   // there is a saved one, which an empty entry keeps
	Empty  bool   // it may be empty: a password of Basic
}

// What names the value within a sentence.
func (p ValuePlace) What() string { return strings.ToLower(p.Prompt[:1]) + p.Prompt[1:] }

// Places says which values the credential has, and which of them are saved in
// old; nil: there is none yet.
func (q *SecretPut) Places(old *SecretInfo) []ValuePlace {
	keep := old != nil && old.Problem == "" && old.Kind == q.Kind
	switch q.Kind {
	case "basic":
		return []ValuePlace{{Prompt: "User name", Keep: keep}, {Prompt: "Password", Keep: keep, Empty: !keep}}
	case "oauth2":
		return []ValuePlace{{Prompt: "Client secret", Keep: keep}}
	}
	var places []ValuePlace
	for _, h := range q.Headers {
		p := ValuePlace{Prompt: "Value for " + h.Name}
		if keep {
			p.Keep = len(old.Headers) == len(q.Headers) // one may have got another name
			for _, was := range old.Headers {
				p.Keep = p.Keep || strings.EqualFold(was.Name, h.Name)
			}
		}
		places = append(places, p)
	}
	return places
}
