package importer

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Curl drafts a wrapper from one curl command as documentation, browsers and
// people write it for a POSIX shell. The draft sends what curl would send:
// method, path, query, body and Content-Type. Nothing is run and no file is
// read; variables of the shell become arguments, or are named as the source
// of a credential.
//
// What curl would send and a wrapper cannot is a Refusal. Errors are
// *fault.Error IMPORT_INVALID: the line cannot be read, or is no curl command.
func Curl(line string, o Options) (*Result, error) {
	sh, err := readShell(line)
	if err != nil {
		return nil, err
	}
	if len(sh.args) == 0 || !isCurl(sh.args[0]) {
		return nil, invalidHint("Pass the whole command, from the word curl on.", "the line is no curl command")
	}
	c := &curlLine{shell: sh, s: &sent{holes: map[string]hole{}}}
	if err := c.read(sh.args[1:]); err != nil {
		return nil, err
	}
	if len(c.urls) == 0 {
		return nil, invalid("the curl command has no URL")
	}
	r := newRecording(o, "")
	var list []*sent
	for _, u := range c.urls {
		list = append(list, c.request(u))
	}
	if c.user != "" {
		for _, s := range list {
			s.user = c.user
		}
	}
	return r.drafts(list)
}

func isCurl(word string) bool {
	base := strings.ToLower(path.Base(strings.ReplaceAll(word, `\`, "/")))
	return base == "curl" || base == "curl.exe"
}

// A curlLine is the options of one command.
type curlLine struct {
	shell *shellLine
	s     *sent // what all URLs have in common
	urls  []string

	method             string
	data               string
	hasData, json      bool
	form               bool // some of it was escaped by curl, as forms are
	get, head          bool
	globoff, pathAsIs  bool
	byHand             string // data that was not
	user, extraQuery   string
	agent, referer     string
	hasAgent, hasRefer bool
}

func (c *curlLine) refuse(code, format string, args ...any) {
	if c.s.err == nil {
		c.s.err = refuse(code, format, args...)
	}
}

func (c *curlLine) note(s string) {
	if !slices.Contains(c.s.notes, s) {
		c.s.notes = append(c.s.notes, s)
	}
}

// optionName is what may be shown of an option that nobody knows: a mistyped
// line may have a password there.
var optionName = regexp.MustCompile(`^[a-z]{2,20}(-[a-z]{1,12}){0,4}$`)

// read goes through the words after "curl".
func (c *curlLine) read(args []string) error {
	onlyURLs := false
	for i := 0; i < len(args); i++ {
		word := args[i]
		next := func() (string, bool) {
			if i+1 >= len(args) {
				return "", false
			}
			i++
			return args[i], true
		}
		switch {
		case onlyURLs || !strings.HasPrefix(word, "-") || word == "-":
			c.urls = append(c.urls, word)
		case word == "--":
			onlyURLs = true
		case strings.HasPrefix(word, "--"):
			name, value, given := strings.Cut(word[2:], "=")
			o, ok := longOption(name)
			if !ok {
				if !optionName.MatchString(name) {
					name = "…"
				}
				c.refuse("OPTION", "the option --%s is not known", name)
				continue
			}
			if o.arg && !given {
				if value, given = next(); !given {
					return invalid("the option --%s has no value", o.long)
				}
			}
			c.option(o, value)
		default:
			if err := c.shortOptions(word[1:], next); err != nil {
				return err
			}
		}
	}
	return nil
}

// shortOptions reads "sSL" and "XPOST".
func (c *curlLine) shortOptions(letters string, next func() (string, bool)) error {
	for j := 0; j < len(letters); j++ {
		o, ok := shortOption(letters[j])
		if !ok {
			what := "an option"
			if letters[j] > ' ' && letters[j] < 0x7f {
				what = "the option -" + letters[j:j+1]
			}
			c.refuse("OPTION", "%s is not known", what)
			return nil
		}
		if !o.arg {
			c.option(o, "")
			continue
		}
		value := letters[j+1:]
		if value == "" {
			var given bool
			if value, given = next(); !given {
				return invalid("the option -%c has no value", o.short)
			}
		}
		c.option(o, value)
		return nil
	}
	return nil
}

func (c *curlLine) option(o curlOption, value string) {
	switch o.kind {
	case optNoted:
		c.note(o.why)
		return
	case optRefused:
		c.refuse(o.code, "%s", o.why)
		return
	case optIgnored:
		return
	}
	switch o.long {
	case "request":
		c.method = value
	case "header":
		c.header(value)
	case "data", "data-ascii", "data-binary", "data-raw", "json":
		if s, ok := c.read1(o.long, value); ok {
			c.add(s, o.long == "json")
			c.byHand += s
		}
	case "data-urlencode":
		if s, ok := c.urlencoded(value); ok {
			c.add(s, false)
			c.form = true
		}
	case "get":
		c.get = true
	case "head":
		c.head = true
	case "url":
		c.urls = append(c.urls, value)
	case "url-query":
		s, ok := strings.CutPrefix(value, "+") // sent as it is
		if !ok {
			s, ok = c.urlencoded(value)
		}
		c.form = true
		if ok {
			c.extraQuery = joined(c.extraQuery, s)
		}
	case "user":
		c.user = value
	case "oauth2-bearer":
		c.s.headers = append(c.s.headers, header{"Authorization", "Bearer " + value})
	case "user-agent":
		c.agent, c.hasAgent = value, true
	case "referer":
		c.referer, c.hasRefer = strings.TrimSuffix(value, ";auto"), true
	case "cookie":
		c.s.headers = append(c.s.headers, header{"Cookie", value})
	case "range":
		c.s.headers = append(c.s.headers, header{"Range", "bytes=" + value})
	case "globoff":
		c.globoff = true
	case "path-as-is":
		c.pathAsIs = true
	}
}

// read1 is the data of one option; what lies in a file cannot be read.
func (c *curlLine) read1(option, value string) (string, bool) {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile || option == "data-raw" {
		return value, true
	}
	if name == "-" && c.shell.hasStdin {
		s := c.shell.stdin
		if option != "data-binary" && option != "json" {
			s = strings.NewReplacer("\r", "", "\n", "").Replace(s)
		}
		return s, true
	}
	what := "a file"
	if name == "-" {
		what = "stdin"
	}
	c.refuse("FILE", "its body comes from %s (@), which is not read; write the body into the line", what)
	return "", false
}

// urlencoded is the data of --data-urlencode: content, =content, name=content;
// the forms with @ read a file.
func (c *curlLine) urlencoded(value string) (string, bool) {
	at := strings.IndexAny(value, "=@")
	if i := strings.IndexByte(value, '='); i >= 0 {
		at = i
	}
	if at >= 0 && value[at] == '@' {
		c.refuse("FILE", "its body comes from a file (@), which is not read; write the body into the line")
		return "", false
	}
	name, content := "", value
	if at >= 0 {
		name, content = value[:at], value[at+1:]
	}
	content = curlEscaped(content)
	if name == "" {
		return content, true
	}
	return name + "=" + content, true
}

// curlEscaped is curl's escaping with a space as "+". Holes stay.
func curlEscaped(s string) string {
	var b strings.Builder
	last := 0
	for _, m := range anyHole.FindAllStringIndex(s, -1) {
		b.WriteString(strings.ReplaceAll(escaped(s[last:m[0]]), "%20", "+"))
		b.WriteString(s[m[0]:m[1]])
		last = m[1]
	}
	b.WriteString(strings.ReplaceAll(escaped(s[last:]), "%20", "+"))
	return b.String()
}

// add puts data behind what is there: with "&", but for --json.
func (c *curlLine) add(s string, json bool) {
	switch {
	case !c.hasData:
		c.data = s
	case json:
		c.data += s
	default:
		c.data += "&" + s
	}
	c.hasData = true
	c.json = c.json || json
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "&" + b
}

// header reads "Name: value"; "Name:" takes one of curl's own headers out, and
// "Name;" sends an empty one.
func (c *curlLine) header(line string) {
	if strings.HasPrefix(line, "@") {
		c.refuse("FILE", "its headers come from a file (@), which is not read")
		return
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		if name, ok = strings.CutSuffix(line, ";"); !ok {
			c.note("a header without a colon is left out, as curl does")
			return
		}
		c.s.headers = append(c.s.headers, header{strings.TrimSpace(name), ""})
		return
	}
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if value == "" {
		c.s.removed = append(c.s.removed, strings.ToLower(name))
		return
	}
	if strings.ContainsAny(name, holeMarks) {
		c.refuse("HEADER_INVALID", "the name of a header is a variable")
		return
	}
	c.s.headers = append(c.s.headers, header{name, value})
}

func (c *curlLine) hasHeader(name string) bool {
	return slices.Contains(c.s.removed, strings.ToLower(name)) ||
		slices.ContainsFunc(c.s.headers, func(h header) bool { return strings.EqualFold(h.name, name) })
}

// request is what curl sends to one URL.
func (c *curlLine) request(address string) *sent {
	s := *c.s
	s.holes = map[string]hole{}
	for _, text := range append([]string{address, c.data, c.extraQuery, c.agent, c.referer}, headerValues(s.headers)...) {
		for _, m := range anyHole.FindAllStringSubmatch(text, -1) {
			s.holes[m[1]] = hole{from: strings.ToLower(m[1])}
		}
	}
	s.notes = append(slices.Clone(c.s.notes), c.shell.notes...)
	s.headers = slices.Clone(s.headers)
	for _, own := range []struct {
		name, value string
		given       bool
	}{{"User-Agent", c.agent, c.hasAgent && c.agent != ""}, {"Referer", c.referer, c.hasRefer && c.referer != ""}} {
		if own.given && !c.hasHeader(own.name) {
			s.headers = append(s.headers, header{own.name, own.value})
		}
	}
	if c.json {
		if !c.hasHeader("Content-Type") {
			s.headers = append(s.headers, header{"Content-Type", "application/json"})
		}
		if !c.hasHeader("Accept") {
			s.headers = append(s.headers, header{"Accept", "application/json"})
		}
	}
	var err error
	if s.address, err = c.address(address); err != nil && s.err == nil {
		s.err = err
	}
	extra := c.extraQuery
	switch {
	case c.get && c.hasData:
		extra = joined(extra, c.data)
	case c.hasData:
		s.body, s.hasBody = c.data, true
		s.bodyIsForm = !c.hasHeader("Content-Type")
	}
	if extra != "" {
		at, _, _ := strings.Cut(s.address, "#")
		switch {
		case strings.HasSuffix(at, "?"):
			at += extra
		case strings.Contains(at, "?"):
			at += "&" + extra
		default:
			at += "?" + extra
		}
		s.address = at
		// A "+" that was written by hand may be a plus.
		s.plusIsSpace = c.form && !strings.Contains(c.byHand, "+") && !strings.Contains(address, "+")
	}
	s.method = c.methodOf(&s)
	return &s
}

func headerValues(list []header) []string {
	var out []string
	for _, h := range list {
		out = append(out, h.value)
	}
	return out
}

func (c *curlLine) methodOf(s *sent) string {
	if c.head && c.hasData && !c.get && s.err == nil {
		s.err = refuse("METHOD", "-I and a body exclude each other")
	}
	switch {
	case c.method != "":
		if s.err == nil && c.method != strings.ToUpper(c.method) {
			s.err = refuse("METHOD", "curl sends the method in small letters, which servers do not take; write -X in capitals")
		}
		return cut(cleanText(strings.ToUpper(c.method)), 20)
	case c.head:
		return "HEAD"
	case c.hasData && !c.get:
		return "POST"
	}
	return "GET"
}

var (
	globName   = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)
	schemeLess = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
)

// address is the URL as curl sends it. A name in braces is a placeholder; other
// braces and brackets are lists, which curl makes several requests of.
func (c *curlLine) address(a string) (string, error) {
	if !schemeLess.MatchString(a) {
		if strings.HasPrefix(a, string(holeOpen)) { // $BASE/path
			return string("https://") + a, nil
		}
		a = "http://" + a
	}
	if !c.globoff {
		rest := globName.ReplaceAllString(strings.ReplaceAll(a, "[]", ""), "")
		scheme, rest, _ := strings.Cut(rest, "://")
		if i := strings.Index(rest, "]"); strings.HasPrefix(rest, "[") && i > 0 {
			rest = rest[i+1:] // an IPv6 address
		}
		if bare := unescapedGlob(rest); strings.ContainsAny(bare, "{}[]") {
			return scheme + "://" + rest, refuse("GLOB", "curl reads the braces or brackets in the URL as a list of several; with -g they stand for themselves")
		}
		a = strings.NewReplacer(`\{`, "{", `\}`, "}", `\[`, "[", `\]`, "]").Replace(a)
	}
	if c.pathAsIs {
		return a, nil
	}
	scheme, rest, _ := strings.Cut(a, "://")
	end := strings.IndexAny(rest, "?#")
	if end < 0 {
		end = len(rest)
	}
	host, p, slash := strings.Cut(rest[:end], "/")
	if slash {
		p = "/" + p
	}
	return scheme + "://" + host + withoutDots(p) + rest[end:], nil
}

func unescapedGlob(s string) string {
	return strings.NewReplacer(`\{`, "", `\}`, "", `\[`, "", `\]`, "").Replace(s)
}

// withoutDots removes the segments "." and ".." as RFC 3986, 5.2.4 does.
func withoutDots(p string) string {
	var out []string
	parts := strings.Split(p, "/")
	for i, s := range parts {
		last := i == len(parts)-1
		switch s {
		case ".", "..":
			if s == ".." && len(out) > 1 {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	return strings.Join(out, "/")
}
