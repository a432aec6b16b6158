package importer

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// maxLine is the most bytes of a curl line.
const maxLine = 1 << 20

// A shellLine is one command as a shell would start it.
type shellLine struct {
	args     []string // texts with holes for variables
	stdin    string   // a here document
	hasStdin bool
	notes    []string
}

var (
	cmdQuoting = regexp.MustCompile(`\^"|\^\r?\n|\^%\^|\^\{`)
	backtick   = regexp.MustCompile("`[ \t]*\r?\n")
	prompt     = regexp.MustCompile(`^\s*[$#%>]\s+curl\b`)
)

// readShell reads one command without running anything. Errors say the place,
// never what stands there.
func readShell(line string) (*shellLine, error) {
	if len(line) > maxLine {
		return nil, invalid("the line has %d bytes, at most %d are read", len(line), maxLine)
	}
	if !utf8.ValidString(line) || strings.ContainsAny(line, holeMarks+"\x00") {
		return nil, invalid("the line has bytes in it that are no text")
	}
	const bash = `Copy it for bash: in a browser's menu that is "Copy as cURL (bash)".`
	if cmdQuoting.MatchString(line) {
		return nil, invalidHint(bash, "the line is quoted for the command prompt of Windows (^)")
	}
	if backtick.MatchString(line) {
		return nil, invalidHint(bash, "the line is continued as in PowerShell (`)")
	}
	line = strings.ReplaceAll(line, "\r\n", "\n")
	if m := prompt.FindString(line); m != "" {
		line = "curl" + line[len(m):]
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, shellError(err)
	}
	if len(file.Stmts) == 0 {
		return nil, invalid("the line is empty")
	}
	if len(file.Stmts) > 1 {
		if file.Stmts[0].Background {
			return nil, ampersand()
		}
		return nil, invalidHint("Import one curl command at a time; where it was meant as one, end each line but the last with \\.", "the line has more than one command")
	}
	return readStmt(file.Stmts[0])
}

func invalidHint(hint, format string, args ...any) error {
	return fault.New("IMPORT_INVALID", format, args...).With(fault.Hint("%s", hint))
}

func ampersand() error {
	return invalidHint("Put the URL into single quotes: a & outside of quotes ends the command.", "the command ends at a &")
}

func shellError(err error) error {
	var bad syntax.ParseError
	if !errors.As(err, &bad) {
		return invalid("the line is no shell command that can be read")
	}
	what := "it cannot be read as a shell command"
	if bad.Incomplete {
		what = "a quote or a bracket is not closed"
	}
	return invalid("line %d, column %d: %s", bad.Pos.Line(), bad.Pos.Col(), what)
}

func readStmt(st *syntax.Stmt) (*shellLine, error) {
	out := &shellLine{}
	if st.Background {
		return nil, ampersand()
	}
	if pipe, ok := st.Cmd.(*syntax.BinaryCmd); ok {
		if pipe.Op != syntax.Pipe {
			return nil, invalid("the line has more than one command")
		}
		first := pipe.X
		for {
			inner, ok := first.Cmd.(*syntax.BinaryCmd)
			if !ok || inner.Op != syntax.Pipe {
				break
			}
			first = inner.X
		}
		out.notes = append(out.notes, "what stands behind the | is not run")
		st = first
	}
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Negated || st.Coprocess {
		return nil, invalid("the line is no plain curl command")
	}
	if len(call.Assigns) > 0 {
		return nil, invalidHint("Leave it out: variables become arguments or credentials.", "a variable is set in front of the command")
	}
	for _, r := range st.Redirs {
		if err := out.redirect(r); err != nil {
			return nil, err
		}
	}
	for _, w := range call.Args {
		s, err := word(w.Parts, false)
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, s)
	}
	return out, nil
}

func (l *shellLine) redirect(r *syntax.Redirect) error {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.DplOut:
		l.notes = append(l.notes, "where the output goes is left out")
		return nil
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc == nil {
			return invalid("the here document is missing")
		}
		literal := false // a quoted word means that nothing is expanded
		for _, p := range r.Word.Parts {
			if _, ok := p.(*syntax.Lit); !ok {
				literal = true
			}
		}
		if literal || !hasExpansion(r.Hdoc) {
			l.stdin, l.hasStdin = literalText(r.Hdoc, literal), true
			if r.Op == syntax.DashHdoc {
				l.stdin = regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(l.stdin, "")
			}
			return nil
		}
		s, err := word(r.Hdoc.Parts, true)
		l.stdin, l.hasStdin = s, true
		return err
	case syntax.WordHdoc:
		s, err := word(r.Word.Parts, false)
		l.stdin, l.hasStdin = s+"\n", true
		return err
	}
	return invalidHint("Put a URL with <name> in it into quotes: outside of them < reads from a file.", "the line reads from a file (<)")
}

func hasExpansion(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if _, ok := p.(*syntax.Lit); !ok {
			return true
		}
	}
	return false
}

func literalText(w *syntax.Word, raw bool) string {
	var b strings.Builder
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			if raw {
				b.WriteString(l.Value)
			} else {
				b.WriteString(unquoteDouble(l.Value, false))
			}
		}
	}
	return b.String()
}

// word is the text of a shell word.
func word(parts []syntax.WordPart, quoted bool) (string, error) {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if quoted {
				b.WriteString(unquoteDouble(p.Value, true))
				continue
			}
			if strings.ContainsAny(p.Value, "\u2018\u2019\u201c\u201d") {
				return "", invalidHint("Write straight quotes, ' and \", instead of typographic ones.", "line %d, column %d: a typographic quote, which no shell knows", p.Pos().Line(), p.Pos().Col())
			}
			if braceList.MatchString(p.Value) {
				return "", invalidHint("Put it into single quotes.", "line %d, column %d: the shell would make several words of the braces", p.Pos().Line(), p.Pos().Col())
			}
			b.WriteString(unquotePlain(p.Value))
		case *syntax.SglQuoted:
			s := p.Value
			if p.Dollar {
				var err error
				if s, err = ansiC(s); err != nil {
					return "", err
				}
			}
			b.WriteString(s)
		case *syntax.DblQuoted:
			s, err := word(p.Parts, true)
			if err != nil {
				return "", err
			}
			b.WriteString(s)
		case *syntax.ParamExp:
			name, err := variable(p)
			if err != nil {
				return "", err
			}
			b.WriteString(holeText(name))
		case *syntax.CmdSubst:
			return "", invalidHint("Put the value in by hand, or a variable in its place; nothing is run.", "line %d, column %d: a command inside the command, $(…) or `…`", p.Pos().Line(), p.Pos().Col())
		default:
			return "", invalid("line %d, column %d: a part that only a shell can work out", part.Pos().Line(), part.Pos().Col())
		}
	}
	if s := b.String(); !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", invalid("a quoted text makes bytes that are no text")
	}
	return b.String(), nil
}

// braceList is {a,b} or {1..3} outside of quotes.
var braceList = regexp.MustCompile(`\{[^{}]*(?:,|\.\.)[^{}]*\}`)

func variable(p *syntax.ParamExp) (string, error) {
	plainForm := p.Param != nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	if !plainForm || !syntax.ValidName(p.Param.Value) {
		return "", invalidHint("Write $NAME or ${NAME}.", "line %d, column %d: a variable with more than its name", p.Pos().Line(), p.Pos().Col())
	}
	return p.Param.Value, nil
}

// unquotePlain takes the backslashes out of a text outside of quotes.
func unquotePlain(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unquoteDouble takes the backslashes out of a text in double quotes, or of a
// here document, where \" stays.
func unquoteDouble(s string, quotes bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch c := s[i+1]; {
			case c == '\n':
				i++
				continue
			case c == '$' || c == '`' || c == '\\' || c == '"' && quotes:
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC reads what stands in $'…'.
func ansiC(s string) (string, error) {
	var b strings.Builder
	number := func(i, most, base int) (int64, int) {
		end := i
		for end < len(s) && end-i < most {
			if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
				break
			}
			end++
		}
		n, err := strconv.ParseInt(s[i:end], base, 64)
		if err != nil {
			return -1, i
		}
		return n, end
	}
	const letters, meaning = `abeEfnrtv\'"?`, "\a\b\x1b\x1b\f\n\r\t\v\\'\"?"
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		if at := strings.IndexByte(letters, c); at >= 0 {
			b.WriteByte(meaning[at])
			continue
		}
		var n int64 = -1
		next := i
		switch {
		case c == 'x':
			n, next = number(i+1, 2, 16)
		case c == 'u':
			n, next = number(i+1, 4, 16)
		case c == 'U':
			n, next = number(i+1, 8, 16)
		case c >= '0' && c <= '7':
			n, next = number(i, 3, 8)
		case c == 'c' && i+1 < len(s):
			n, next = int64(s[i+1]&0x1f), i+2
		}
		switch {
		case n < 0: // bash keeps what it does not know
			b.WriteByte('\\')
			b.WriteByte(c)
			continue
		case n == 0:
			return "", invalid("a quoted text has a NUL in it")
		case c == 'u' || c == 'U':
			if !utf8.ValidRune(rune(n)) || n > utf8.MaxRune {
				return "", invalid("a quoted text has a character in it that does not exist")
			}
			b.WriteRune(rune(n))
		default:
			b.WriteByte(byte(n))
		}
		i = next - 1
	}
	if strings.ContainsAny(b.String(), holeMarks) {
		return "", invalid("a quoted text has a character of the private use area in it")
	}
	return b.String(), nil
}
