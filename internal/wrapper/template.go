package wrapper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
)

// A Template is text with placeholders: {{name}}, and {{name|raw}} in the path
// of a URL. There is no expression language and no way to write "{{" itself.
// It is compiled once; values are put in once and never read again, so that a
// value with braces in it stays text.
type Template struct {
	source string
	parts  []part
}

// A part is a stretch of literal text or one placeholder.
type part struct {
	text string // literal; "" for a placeholder
	name string // of the argument; "" for literal text
	raw  bool
}

// String returns the template as written.
func (t Template) String() string { return t.source }

// literal reports whether there is no placeholder.
func (t Template) literal() bool {
	return len(t.parts) == 0 || len(t.parts) == 1 && t.parts[0].name == ""
}

// credential reports whether literal text under this query key is a credential.
func (t Template) credential(key string) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.name == "" && redact.CredentialPair(key, p.text) })
}

// whole returns the argument's name when the template is nothing but one
// placeholder.
func (t Template) whole() (name string, ok bool) {
	if len(t.parts) == 1 && t.parts[0].name != "" {
		return t.parts[0].name, true
	}
	return "", false
}

// parseTemplate reads a template. The error completes a sentence about it and
// holds at most 40 characters of it.
func parseTemplate(s string) (Template, error) {
	t := Template{source: s}
	for rest := s; rest != ""; {
		open := strings.Index(rest, "{{")
		if open < 0 {
			t.parts = append(t.parts, part{text: rest})
			break
		}
		if open > 0 {
			t.parts = append(t.parts, part{text: rest[:open]})
		}
		inner, after, closed := strings.Cut(rest[open+2:], "}}")
		if !closed {
			return Template{}, fmt.Errorf("a placeholder is not closed: %q", cut(rest[open:], 40))
		}
		p, err := parsePlaceholder(inner)
		if err != nil {
			return Template{}, err
		}
		t.parts = append(t.parts, p)
		rest = after
	}
	return t, nil
}

func parsePlaceholder(inner string) (part, error) {
	name, modifier, piped := strings.Cut(inner, "|")
	name, modifier = strings.TrimSpace(name), strings.TrimSpace(modifier)
	switch {
	case strings.ContainsAny(name, "{}"):
		return part{}, fmt.Errorf("a brace inside a placeholder: %q", cut("{{"+inner, 40))
	case name == "":
		return part{}, fmt.Errorf("a placeholder without a name: %q", cut("{{"+inner+"}}", 40))
	case piped && modifier != "raw":
		return part{}, fmt.Errorf("unknown modifier %q; the only one is raw", cut(modifier, 40))
	}
	return part{name: name, raw: piped}, nil
}

// cut shortens s to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
