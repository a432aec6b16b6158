package recipe

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDerivedLabel is the format's limit for a label, in characters.
const maxDerivedLabel = 80

// Words of labels that are written in capitals.
var capitalWords = nameSet("id", "iid", "url", "uri", "sku", "api", "ip", "uuid", "doi", "html", "isbn")

// Names of members that say little without the object they are in.
var plainNames = nameSet(append([]string{"type", "status", "state", "url", "number", "date", "count", "total"}, bestNames...)...)

// nameColumns is step five: labels and record keys, unique.
func nameColumns(cols []draftColumn) {
	labels, records := map[string]bool{}, map[string]bool{}
	for i := range cols {
		c := &cols[i]
		c.label = c.uniqueLabel(labels)
		c.record = c.uniqueRecord(records)
		labels[c.label], records[c.record] = true, true
	}
}

func (c draftColumn) uniqueLabel(taken map[string]bool) string {
	last := c.keys[len(c.keys)-1]
	parent := ""
	if len(c.keys) > 1 {
		parent = c.keys[len(c.keys)-2]
	}
	name := labelOf(last)
	if c.nested && normal(last) == "city" {
		// an address is shown by its city
	} else if c.nested && !containerNames[strings.ToLower(parent)] {
		name = labelOf(parent)
	} else if parent != "" && !containerNames[strings.ToLower(parent)] && (taken[name] || saysLittle(last)) {
		name = labelOf(parent + "_" + last)
	}
	return unique(name, " ", maxDerivedLabel, taken)
}

// saysLittle reports whether a member's name needs that of its object: wind
// speed, rain 1h.
func saysLittle(key string) bool {
	switch k := normal(key); k {
	case "all", "speed", "deg", "min", "max", "value", "count", "total", "type", "name", "id":
		return true
	default:
		return k != "" && (k[0] >= '0' && k[0] <= '9' || len(k) == 1)
	}
}

func (c draftColumn) uniqueRecord(taken map[string]bool) string {
	last := c.keys[len(c.keys)-1]
	if len(c.keys) == 1 {
		return unique(recordKey(last), "_", maxDerivedLabel, taken)
	}
	parent := c.keys[len(c.keys)-2]
	key := last
	switch {
	case c.nested && c.list:
		key = parent
	case containerNames[strings.ToLower(parent)] && !taken[last]:
	case plainNames[normal(last)] || taken[last]:
		key = parent + "_" + strings.Trim(last, "_@")
	}
	return unique(recordKey(key), "_", maxDerivedLabel, taken)
}

// recordKey is the API's own spelling, made fit to be a key of a record.
func recordKey(key string) string {
	if key = plainLine(key); key == "" {
		return "value"
	}
	return key
}

// unique cuts a name to most characters and adds 2, 3, … until it is free.
func unique(name, gap string, most int, taken map[string]bool) string {
	name = cutLabel(name, most)
	for n, try := 2, name; ; n++ {
		if !taken[try] {
			return try
		}
		end := gap + strconv.Itoa(n)
		try = strings.TrimSpace(cutLabel(name, most-len(end))) + end
	}
}

// labelOf makes a heading of a key: created_at, createdAt → Created at.
func labelOf(key string) string {
	if i := strings.Index(key, ". "); i > 0 && i < 4 && strings.Trim(key[:i], "0123456789") == "" {
		key = key[i+2:] // "1. open" is only numbered
	}
	parts := splitKey(key)
	if len(parts) == 0 {
		if s := plainLine(key); s != "" {
			return s
		}
		return "Value"
	}
	shout := len(parts) > 1 && !strings.ContainsFunc(key, unicode.IsLower)
	for i, p := range parts {
		low := strings.ToLower(p)
		switch {
		case capitalWords[low]:
			parts[i] = strings.ToUpper(p)
		case !shout && len(p) > 1 && p == strings.ToUpper(p) && len(p) <= 5:
			// an abbreviation of the API's own
		case i == 0:
			r, n := utf8.DecodeRuneInString(low)
			parts[i] = string(unicode.ToUpper(r)) + low[n:]
		default:
			parts[i] = low
		}
	}
	return strings.Join(parts, " ")
}

// splitKey splits a key into its words: at everything that is not a letter,
// mark or digit, and where the case changes.
func splitKey(key string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, string(word))
			word = word[:0]
		}
	}
	runes := []rune(key[:min(len(key), 4*deriveKey)])
	for i, r := range runes {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N) || r == utf8.RuneError {
			flush()
			continue
		}
		if unicode.IsUpper(r) && i > 0 {
			before := runes[i-1]
			after := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLower(before) || unicode.IsDigit(before) || unicode.IsUpper(before) && after {
				flush()
			}
		}
		word = append(word, r)
	}
	flush()
	return out
}

func keyWords(key string) []string {
	w := splitKey(key)
	for i := range w {
		w[i] = strings.ToLower(w[i])
	}
	return w
}

// normal is a key without case and separators.
func normal(key string) string { return strings.Join(keyWords(key), "") }

// plainLine gives a text without control characters and line breaks, trimmed.
func plainLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Zs) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s[:min(len(s), 8*deriveTitle)])
	return strings.Join(strings.Fields(s), " ")
}

// cutLabel cuts a text to n characters.
func cutLabel(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n]))
}

// memberPath writes the path of a member below base, "" being the item.
func memberPath(base, key string) string {
	s := memberSegment(key)
	if base == "" {
		return strings.TrimPrefix(s, ".")
	}
	return base + s
}

// memberSegment writes a name as a path segment: plain where the name is
// plain, in brackets otherwise, so that no name can be read as anything else.
func memberSegment(key string) string {
	plain := key != ""
	for i, r := range key {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > unicode.MaxASCII && unicode.IsLetter(r)
		if !letter && (i == 0 || !(r >= '0' && r <= '9') && r != '-' && r != ':') {
			plain = false
			break
		}
	}
	if plain {
		return "." + key
	}
	var b strings.Builder
	b.WriteString("['")
	for _, r := range key {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteString(`\u00`)
			b.WriteByte("0123456789abcdef"[r>>4])
			b.WriteByte("0123456789abcdef"[r&15])
		default:
			b.WriteRune(r)
		}
	}
	b.WriteString("']")
	return b.String()
}

// hidden reports whether a key must not be shown or walked through.
func (d *deriver) hidden(key string) bool {
	return len(key) > deriveKey || isCredential(key) || d.opts.Skip != nil && d.opts.Skip(key)
}

var (
	secretWords = nameSet("secret", "secrets", "token", "auth", "bearer", "jwt", "pwd", "cookie", "cookies", "ssn", "iban", "cvv",
		"cvc", "csrf", "xsrf", "otp", "passport", "ein", "credential", "credentials", "authorization", "signature")
	secretParts = []string{
		"password", "passwd", "passphrase", "apikey", "privatekey", "accesskey", "secretkey", "cardnumber", "cardnum",
		"socialsecurity", "accountnumber", "routingnumber", "sessionid", "sessionkey", "accesstoken", "refreshtoken",
		"clientsecret", "authtoken",
	}
)

// isCredential knows the names of credentials and of bank data.
func isCredential(key string) bool {
	w := keyWords(key)
	if slices.ContainsFunc(w, func(s string) bool { return secretWords[s] }) {
		return true
	}
	joined := strings.Join(w, "")
	return slices.ContainsFunc(secretParts, func(p string) bool { return strings.Contains(joined, p) })
}

// tokenList reports whether texts under a key would be tokens. Numbers are
// counts of them (total_tokens), objects are coins or words.
func tokenList(key string) bool {
	return slices.Contains(keyWords(key), "tokens")
}

// isTokenValue reports whether a member of a token or key would be its secret
// part: such a list is worth its names and dates only.
func isTokenValue(key string) bool {
	switch normal(key) {
	case "value", "key", "text", "hash", "string", "data", "raw", "content":
		return true
	default:
		return false
	}
}

// looksSecret recognises credentials by how they are written, whatever their
// key: the prefixes that big services use so that leaks can be found, JSON Web
// Tokens, and private keys.
func looksSecret(s string) bool {
	if strings.HasPrefix(s, "-----BEGIN ") {
		return true
	}
	bare := strings.TrimPrefix(strings.TrimPrefix(s, "Bearer "), "Basic ")
	if len(bare) < 16 || strings.ContainsAny(bare[:min(len(bare), deriveText)], " \n") {
		return false
	}
	if bare != s {
		return true
	}
	for _, p := range []string{
		"sk_live_", "sk_test_", "rk_live_", "sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-",
		"AKIA", "ASIA", "AIza", "ya29.", "npm_",
	} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return strings.HasPrefix(s, "eyJ") && strings.Count(s[:min(len(s), 4000)], ".") == 2
}

// isWallet reports whether an object holds bank or card data as a whole.
func isWallet(key string, o Object) bool {
	w := keyWords(key)
	if !slices.Contains(w, "bank") && !slices.Contains(w, "card") && !slices.Contains(w, "creditcard") {
		return false
	}
	return slices.ContainsFunc(o, func(m Member) bool {
		return isCredential(m.Key) || isCredential("card_"+m.Key)
	})
}
