package importer

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Documents hold credentials by accident: in examples, in defaults, in texts
// that show a request. By name redact knows them. By value only a few shapes
// are sure enough to be taken out: a scheme with its credential, the prefixes
// that issuers made for being found, and user information in an address.
var credentialShapes = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(?:bearer|basic|digest|token|apikey)\s+[A-Za-z0-9+/_.~-]{16,}=*`),
	regexp.MustCompile(`\b(?:sk|pk|rk|whsec)_(?:live|test)_[A-Za-z0-9]{8,}`),
	regexp.MustCompile(`\b(?:sk|xai|hf|gsk|dop_v1|shpat|shpss|npm|glpat|figd|sntrys|lin_api)[-_][A-Za-z0-9_-]{20,}`),
	regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{16,}`),
	regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{8,}`),
	regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{12,}`),
	regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{20,}`),
	regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?`),
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
}

var (
	addressUser  = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@"'<>]+@`)
	addressQuery = regexp.MustCompile(`[?&;]([A-Za-z0-9_.%\[\]-]+)=([^\s&#;"'<>)]+)`)
	assignment   = regexp.MustCompile(`(?i)["']?\b([a-z0-9_-]*(?:api[_-]?key|apikey|password|passwd|secret|access[_-]?token|auth[_-]?token|client[_-]?secret|authorization))["']?\s*[:=]\s*["']?([^\s"',;&<>]{8,})`)
)

// cleanText masks what is shaped like a credential in a text for a reader.
func cleanText(s string) string {
	if !strings.ContainsAny(s, " -_.:=@") && len(s) < 12 {
		return s
	}
	for _, shape := range credentialShapes {
		s = shape.ReplaceAllStringFunc(s, func(found string) string {
			if !strings.ContainsAny(found, "0123456789") {
				return found // words: "Basic internationalization"
			}
			return redact.Mask
		})
	}
	s = addressUser.ReplaceAllString(s, "${1}"+redact.Mask+"@")
	s = maskGroup(s, addressQuery, func(name, value string) bool {
		if plainName, err := url.QueryUnescape(name); err == nil {
			name = plainName
		}
		return redact.CredentialPair(name, value) || redact.CredentialKey(name)
	})
	return maskGroup(s, assignment, func(name, _ string) bool { return redact.CredentialKey(name) })
}

// maskGroup masks the second group of each match that is a credential under the
// name in the first.
func maskGroup(s string, re *regexp.Regexp, credential func(name, value string) bool) string {
	found := re.FindAllStringSubmatchIndex(s, -1)
	if found == nil {
		return s
	}
	var b strings.Builder
	last := 0
	for _, m := range found {
		if !credential(s[m[2]:m[3]], s[m[4]:m[5]]) || strings.HasPrefix(s[m[4]:], redact.Mask) {
			continue
		}
		b.WriteString(s[last:m[4]])
		b.WriteString(redact.Mask)
		last = m[5]
	}
	b.WriteString(s[last:])
	return b.String()
}

// clean reports whether a value holds nothing that is shaped like a
// credential, by name or by value; name is the name it stands under. What is
// not clean is left out as a whole: half an example is a wrong one.
func clean(name string, v recipe.Value) bool {
	budget := maxLooks
	return cleanWithin(name, v, &budget)
}

// maxLooks bounds the values that are looked at in an example. Aliases of YAML
// make trees that are larger than their text.
const maxLooks = 20_000

func cleanWithin(name string, v recipe.Value, budget *int) bool {
	if *budget--; *budget < 0 {
		return false
	}
	if v != nil && (redact.CredentialKey(name) || redact.CredentialHeader(name)) {
		return false
	}
	switch v := v.(type) {
	case string:
		return cleanText(v) == v
	case recipe.Array:
		for _, e := range v {
			if !cleanWithin("", e, budget) {
				return false
			}
		}
	case recipe.Object:
		for _, m := range v {
			if cleanText(m.Key) != m.Key || !cleanWithin(m.Key, m.Value, budget) {
				return false
			}
		}
	}
	return true
}
