package recipe

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a path.
const (
	maxPathChars    = 512
	maxPathSegments = 64
	maxPathIndex    = 1<<53 - 1 // the largest integer RFC 9535 allows
)

// A PathError says what is wrong with the text of a path.
type PathError struct {
	Offset  int    // the character at fault, counted from 1
	Message string // with the place: "']' missing at character 12"
	Code    string // "PATH_SYNTAX" or "PATH_TOO_LONG"
	Hint    string // what to write instead; may be empty
}

// Error is the message.
func (e *PathError) Error() string { return e.Message }

// ParsePath reads a path. Errors are *PathError.
func ParsePath(s string) (Path, error) {
	p := pathParser{text: s, left: s}
	if n := utf8.RuneCountInString(s); n > maxPathChars {
		return Path{}, &PathError{
			Offset: maxPathChars + 1, Code: "PATH_TOO_LONG",
			Message: fmt.Sprintf("the path has %d characters, at most %d are allowed", n, maxPathChars),
		}
	}
	if err := p.path(); err != nil {
		return Path{}, err
	}
	return p.out, nil
}

type pathParser struct {
	text, left string
	out        Path
}

func (p *pathParser) path() error {
	p.out.text = p.text
	switch {
	case p.text == "":
		return p.fail("the path is empty", `"@" is the item itself`)
	case !utf8.ValidString(p.text):
		return p.fail("the path is not UTF-8", "")
	case p.text == "#key" || p.text == "#index":
		p.out.special = p.text
		return nil
	case p.text[0] == '#':
		if name, _, found := strings.Cut(p.text, "."); found && (name == "#key" || name == "#index") {
			p.left = p.text[len(name):]
			return p.fail(name+" stands alone, nothing can follow it", "")
		}
		return p.fail("only #key and #index start with '#'", fmt.Sprintf("a member called %q is [%s]", p.text, quotePath(p.text)))
	}
	// $ and @ are the root only when no name goes on behind them: $count and
	// @type are members.
	if c := p.text[0]; (c == '$' || c == '@') && (len(p.text) == 1 || p.text[1] == '.' || p.text[1] == '[') {
		p.out.root = c == '$'
		p.left = p.text[1:]
	} else if c != '[' && c != '.' {
		if err := p.addName(); err != nil {
			return err
		}
	}
	for p.left != "" {
		var err error
		switch {
		case strings.HasPrefix(p.left, ".."):
			return p.fail("'..' is not supported", "write every step of the path")
		case p.left[0] == '.':
			p.left = p.left[1:]
			if strings.HasPrefix(p.left, "*") {
				p.left = p.left[1:]
				p.add(segment{step: stepAll})
				break
			}
			err = p.addName()
		case p.left[0] == '[':
			err = p.bracket()
		default:
			err = p.unexpected("'.' or '['")
		}
		if err != nil {
			return err
		}
		if len(p.out.segments) > maxPathSegments {
			return &PathError{
				Offset: p.offset(), Code: "PATH_TOO_LONG",
				Message: fmt.Sprintf("the path has more than %d segments", maxPathSegments),
			}
		}
	}
	return nil
}

func (p *pathParser) add(s segment) { p.out.segments = append(p.out.segments, s) }

// offset is the place of the next character, counted from 1.
func (p *pathParser) offset() int {
	return utf8.RuneCountInString(p.text[:len(p.text)-len(p.left)]) + 1
}

func (p *pathParser) fail(what, hint string) error {
	n := p.offset()
	return &PathError{Offset: n, Code: "PATH_SYNTAX", Message: fmt.Sprintf("%s at character %d", what, n), Hint: hint}
}

func (p *pathParser) unexpected(want string) error {
	if p.left == "" {
		return p.fail(want+" missing", "")
	}
	r, _ := utf8.DecodeRuneInString(p.left)
	hint := ""
	if r == '(' || strings.HasPrefix(p.left, "?(") {
		hint = "functions and parentheses are not supported"
	} else if strings.ContainsRune(" \t/&+'\"#!,;%|", r) {
		hint = "a name with other characters than letters, digits, _ - : @ $ goes into brackets: ['a b']"
	}
	return p.fail(fmt.Sprintf("%s expected, not %s,", want, strconv.QuoteRune(r)), hint)
}

// name reads an unquoted name. The alphabet is wider than that of RFC 9535
// (last-name, hydra:member, @type, 24h), but white space, punctuation and
// invisible characters need brackets.
func (p *pathParser) name() (string, error) {
	n := 0
	for n < len(p.left) {
		r, size := utf8.DecodeRuneInString(p.left[n:])
		if !isNameRune(r) {
			break
		}
		n += size
	}
	if n == 0 {
		return "", p.unexpected("a name")
	}
	name := p.left[:n]
	p.left = p.left[n:]
	return name, nil
}

func (p *pathParser) addName() error {
	name, err := p.name()
	p.add(segment{step: stepName, name: name})
	return err
}

func isNameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			r == '_' || r == '-' || r == ':' || r == '@' || r == '$'
	}
	if r == '\u200c' || r == '\u200d' { // joiners are part of words and emoji
		return true
	}
	return !unicode.In(r, unicode.White_Space, unicode.C)
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// space skips the white space RFC 9535 allows inside brackets.
func (p *pathParser) space() { p.left = strings.TrimLeft(p.left, " \t\r\n") }

func (p *pathParser) bracket() error {
	p.left = p.left[1:]
	p.space()
	var seg segment
	var err error
	switch {
	case p.left == "":
		return p.fail("']' missing", "")
	case p.left[0] == '*':
		p.left = p.left[1:]
		seg.step = stepAll
	case p.left[0] == '\'' || p.left[0] == '"':
		seg.name, err = p.quoted()
	case p.left[0] == '?':
		seg, err = p.filter()
	case p.left[0] == ':' || p.left[0] == '-' || asciiDigit(p.left[0]):
		seg, err = p.indexOrSlice()
	default:
		return p.unexpected("an index, '*', a quoted name or a filter")
	}
	if err != nil {
		return err
	}
	p.space()
	if strings.HasPrefix(p.left, ",") {
		return p.fail("several selectors in one bracket are not supported", "use one field for each")
	}
	if !strings.HasPrefix(p.left, "]") {
		if p.left == "" {
			return p.fail("']' missing", "")
		}
		return p.unexpected("']'")
	}
	p.left = p.left[1:]
	p.add(seg)
	return nil
}

func (p *pathParser) indexOrSlice() (segment, error) {
	var s segment
	var err error
	if p.left[0] != ':' {
		if s.index, err = p.integer(); err != nil {
			return s, err
		}
		s.hasFrom = true
		p.space()
	}
	if !strings.HasPrefix(p.left, ":") {
		s.step, s.hasFrom = stepIndex, false
		return s, nil
	}
	s.step = stepSlice
	p.left = p.left[1:]
	p.space()
	if p.left != "" && (p.left[0] == '-' || asciiDigit(p.left[0])) {
		if s.end, err = p.integer(); err != nil {
			return s, err
		}
		s.hasTo = true
		p.space()
	}
	if strings.HasPrefix(p.left, ":") {
		return s, p.fail("a slice has no step", "write [from:to]")
	}
	return s, nil
}

func (p *pathParser) integer() (int, error) {
	n := 0
	if p.left[0] == '-' {
		n = 1
	}
	start := n
	for n < len(p.left) && asciiDigit(p.left[n]) {
		n++
	}
	text := p.left[:n]
	i, err := strconv.ParseInt(text, 10, 64)
	switch {
	case n == start:
		return 0, p.fail("an index is a whole number", "")
	case text == "-0" || n-start > 1 && text[start] == '0':
		return 0, p.fail("an index has no leading zero", "")
	case err != nil || i > maxPathIndex || i < -maxPathIndex || int64(int(i)) != i:
		return 0, p.fail("the index is too large", "")
	}
	p.left = p.left[n:]
	return int(i), nil
}

// quoted reads a string in single or double quotes with the escapes of
// RFC 9535.
func (p *pathParser) quoted() (string, error) {
	quote := p.left[0]
	p.left = p.left[1:]
	var b strings.Builder
	for p.left != "" {
		c := p.left[0]
		switch {
		case c == quote:
			p.left = p.left[1:]
			return b.String(), nil
		case c < 0x20:
			return "", p.fail("a control character must be escaped", `write \u00XX`)
		case c != '\\':
			_, size := utf8.DecodeRuneInString(p.left)
			b.WriteString(p.left[:size])
			p.left = p.left[size:]
		default:
			r, err := p.escape(quote)
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		}
	}
	return "", p.fail(fmt.Sprintf("closing %c missing", quote), "")
}

func (p *pathParser) escape(quote byte) (rune, error) {
	if len(p.left) < 2 {
		return 0, p.fail("unfinished escape", "")
	}
	c := p.left[1]
	if i := strings.IndexByte("bfnrt/\\", c); i >= 0 {
		p.left = p.left[2:]
		return rune("\b\f\n\r\t/\\"[i]), nil
	}
	if c == quote {
		p.left = p.left[2:]
		return rune(c), nil
	}
	if c == 'u' {
		r, ok := hex4(p.left)
		size := 6
		if ok && r >= 0xd800 && r < 0xdc00 {
			var low rune
			low, ok = hex4(p.left[6:])
			ok = ok && low >= 0xdc00 && low < 0xe000
			r, size = 0x10000+(r-0xd800)<<10+(low-0xdc00), 12
		} else if r >= 0xdc00 && r < 0xe000 {
			ok = false
		}
		if ok {
			p.left = p.left[size:]
			return r, nil
		}
		return 0, p.fail(`bad \u escape`, `write \u and four hexadecimal digits`)
	}
	return 0, p.fail(`unknown escape`, `known are \' \" \\ and \uXXXX`)
}

// hex4 reads \uXXXX at the start of s.
func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if asciiDigit(c) {
			d = int(c - '0')
		}
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// filter reads ?@.name==literal.
func (p *pathParser) filter() (segment, error) {
	s := segment{step: stepFilter}
	const form = "a filter is [?@.name=='text'], with one comparison"
	p.left = p.left[1:]
	p.space()
	if !strings.HasPrefix(p.left, "@") {
		return s, p.fail("'@' expected in the filter", form)
	}
	p.left = p.left[1:]
	var err error
	switch {
	case strings.HasPrefix(p.left, "."):
		p.left = p.left[1:]
		if s.name, err = p.name(); err != nil {
			return s, err
		}
	case strings.HasPrefix(p.left, "['") || strings.HasPrefix(p.left, `["`):
		p.left = p.left[1:]
		if s.name, err = p.quoted(); err != nil {
			return s, err
		}
		if !strings.HasPrefix(p.left, "]") {
			return s, p.unexpected("']'")
		}
		p.left = p.left[1:]
	default:
		return s, p.fail("'.' and a name expected in the filter", form)
	}
	p.space()
	if !strings.HasPrefix(p.left, "==") {
		return s, p.fail("'==' expected in the filter", form)
	}
	p.left = p.left[2:]
	p.space()
	s.literal, err = p.literal()
	return s, err
}

func (p *pathParser) literal() (Value, error) {
	if p.left != "" && (p.left[0] == '\'' || p.left[0] == '"') {
		return p.quoted()
	}
	n := 0
	for n < len(p.left) && (isNameRune(rune(p.left[n])) || p.left[n] == '.' || p.left[n] == '+') {
		n++
	}
	var v Value
	switch word := p.left[:n]; word {
	case "true":
		v = true
	case "false":
		v = false
	case "null":
	default:
		if _, ok := isJSONNumber(word); !ok {
			return nil, p.fail("a string, number, true, false or null expected in the filter", "texts need quotes: [?@.name=='text']")
		}
		v = json.Number(word)
	}
	p.left = p.left[n:]
	return v, nil
}

// quoteEscaper escapes what stands between single quotes.
var quoteEscaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// quotePath writes a name as a bracket segment wants it.
func quotePath(name string) string {
	return "'" + quoteEscaper.Replace(name) + "'"
}
