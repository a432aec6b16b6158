package recipe

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds and defaults of a recipe document.
const (
	maxFields       = 50
	maxLabelChars   = 80
	defaultMaxItems = 50
	defaultMaxChars = 20_000
)

// ParseOptions are what Parse needs from outside. The zero value works.
type ParseOptions struct {
	// CredentialName reports whether a request parameter or header of this
	// name looks like one that carries a credential. Pagination must not use
	// such names. Nil: none does.
	CredentialName func(name string) bool
}

// Parse reads a recipe document (the "response" of a wrapper) with zero
// options.
func Parse(doc Value) (*Recipe, Report) { return ParseOptions{}.Parse(doc) }

// Parse reads a recipe document. It reports everything wrong at once, in
// document order, each with the exact field. Unknown keys at the top are
// dropped with a warning. The recipe is nil when there is a problem.
//
// Decode doc without UniqueKeys: then a doubled key is reported here, among
// the other problems.
func (o ParseOptions) Parse(doc Value) (*Recipe, Report) {
	c := &checker{opts: o, r: &Recipe{
		Select: Path{text: "$", root: true},
		Shape:  List,
		Mode:   Table,
		Limits: Limits{MaxItems: defaultMaxItems, MaxChars: defaultMaxChars},
	}}
	if top, ok := c.object("response", doc); ok {
		c.recipe(top)
	}
	if !c.report.OK() {
		return nil, c.report
	}
	c.r.plan = c.r.prepare()
	return c.r, c.report
}

// A checker collects what is wrong while it fills the recipe.
type checker struct {
	opts   ParseOptions
	r      *Recipe
	report Report
	given  Object   // the fields as the document has them
	labels []string // of the fields, for {{field:Label}}
}

func (c *checker) problem(field, code, hint, format string, args ...any) {
	if len(c.report.Problems) < MaxProblems {
		c.report.Problems = append(c.report.Problems, Problem{field, code, fmt.Sprintf(format, args...), hint})
	}
}

func (c *checker) warn(field, code, hint, format string, args ...any) {
	if len(c.report.Warnings) < MaxProblems {
		c.report.Warnings = append(c.report.Warnings, Problem{field, code, fmt.Sprintf(format, args...), hint})
	}
}

// each calls f for the members of o in document order. The second member of a
// name is a problem and not passed on.
func (c *checker) each(at string, o Object, f func(key, field string, v Value)) {
	seen := make(map[string]bool, len(o))
	for _, m := range o {
		field := FieldPath(at, m.Key)
		if seen[m.Key] {
			c.problem(field, "DUPLICATE", "keep one of them", "%q appears twice", clip(m.Key))
			continue
		}
		seen[m.Key] = true
		f(m.Key, field, m.Value)
	}
}

// unknown is the problem of a key that the format does not have.
func (c *checker) unknown(field, key string, known []string) {
	c.problem(field, "UNKNOWN_FIELD", suggest(key, known), "unknown key %q", clip(key))
}

func (c *checker) object(field string, v Value) (Object, bool) {
	o, ok := v.(Object)
	if !ok {
		c.problem(field, "TYPE", "", "must be an object, not %s", kindOf(v))
	}
	return o, ok
}

func (c *checker) text(field string, v Value) (string, bool) {
	s, ok := v.(string)
	if !ok {
		c.problem(field, "TYPE", "", "must be a string, not %s", kindOf(v))
	}
	return s, ok
}

// short is a string of from to most characters.
func (c *checker) short(field, code string, v Value, from, most int) (string, bool) {
	s, ok := c.text(field, v)
	if !ok {
		return "", false
	}
	if n := utf8.RuneCountInString(s); n < from || n > most {
		if from == 0 {
			c.problem(field, code, "", "at most %d characters, not %d", most, n)
		} else {
			c.problem(field, code, "", "%d to %d characters, not %d", from, most, n)
		}
		return "", false
	}
	return s, true
}

func (c *checker) boolean(field string, v Value) (bool, bool) {
	b, ok := v.(bool)
	if !ok {
		c.problem(field, "TYPE", "", "must be true or false, not %s", kindOf(v))
	}
	return b, ok
}

func (c *checker) integer(field, code string, v Value, from, most int) (int, bool) {
	n, isNumber := v.(json.Number)
	if !isNumber {
		c.problem(field, "TYPE", "", "must be a whole number, not %s", kindOf(v))
		return 0, false
	}
	i, whole := wholeNumber(string(n))
	if !whole {
		c.problem(field, "TYPE", "", "must be a whole number, not %s", clip(string(n)))
		return 0, false
	}
	if i < int64(from) || i > int64(most) {
		c.problem(field, code, "", "must be %d to %d, not %s", from, most, clip(string(n)))
		return 0, false
	}
	return int(i), true
}

// wholeNumber reads a JSON number without a fraction: 20, 20.0, 2e1. One too
// large for an int64 is the largest or smallest there is.
func wholeNumber(s string) (int64, bool) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, true
	}
	n, ok := magnitude(s)
	if !ok || n.exp < int64(len(n.digits)) {
		return 0, false
	}
	i := int64(math.MaxInt64)
	if n.exp <= 18 {
		i, _ = strconv.ParseInt(n.digits+strings.Repeat("0", int(n.exp)-len(n.digits)), 10, 64)
	}
	if n.negative {
		i = -i
	}
	return i, true
}

// oneOf is a string out of a list.
func (c *checker) oneOf(field, code string, v Value, allowed ...string) (string, bool) {
	s, ok := c.text(field, v)
	if !ok {
		return "", false
	}
	for _, a := range allowed {
		if s == a {
			return s, true
		}
	}
	c.problem(field, code, suggest(s, allowed), "must be %s, not %q", quoted(allowed), clip(s))
	return "", false
}

// path reads a path that must not be empty.
func (c *checker) path(field string, v Value) (Path, bool) {
	s, ok := c.text(field, v)
	if !ok {
		return Path{}, false
	}
	p, err := ParsePath(s)
	if err != nil {
		e := err.(*PathError) // the only kind ParsePath makes
		c.problem(field, e.Code, e.Hint, "%s", e.Message)
		return Path{}, false
	}
	if first := p.segments; len(first) > 1 && first[0].step == stepName && first[0].name == "@odata" {
		c.warn(field, "PATH_SYNTAX", fmt.Sprintf("for a member with a dot in its name write %s", quotedName("@odata."+first[1].name)),
			`the path reads the member "@odata" and %q in it`, first[1].name)
	}
	return p, true
}

// rooted reads a path that starts with $.
func (c *checker) rooted(field string, v Value) (Path, bool) {
	p, ok := c.path(field, v)
	if ok && !p.root {
		c.problem(field, "PATH_ROOT", rootHint(p), "must start with $")
		return p, false
	}
	return p, ok
}

// rootHint says how to write a path so that it starts at the body.
func rootHint(p Path) string {
	switch {
	case p.special != "":
		return ""
	case strings.HasPrefix(p.text, "["), strings.HasPrefix(p.text, "."):
		return "write $" + p.text
	case p.text == "@" || strings.HasPrefix(p.text, "@.") || strings.HasPrefix(p.text, "@["):
		return "write $" + p.text[1:]
	}
	return "write $." + p.text
}

// inItem reads a path of a field, a record or a link label.
func (c *checker) inItem(field string, v Value) (Path, bool) {
	p, ok := c.path(field, v)
	if ok && !c.keyFits(field, p) {
		return p, false
	}
	return p, ok
}

// keyFits refuses #key, which only the items of shape entries have.
func (c *checker) keyFits(field string, p Path) bool {
	if p.special != "#key" || c.r.Shape == Entries {
		return true
	}
	c.problem(field, "PATH_SYNTAX", "", "#key is only for shape %q", Entries)
	return false
}

func quotedName(name string) string { return "[" + quotePath(name) + "]" }

var topKeys = [...]string{
	"schemaVersion", "select", "shape", "header", "mode", "title", "template",
	"fields", "record", "error", "limits", "pagination", "index",
}

func (c *checker) recipe(o Object) {
	const at = "response"
	// What decides over other keys first, silently: their own turn reports.
	if v, _ := first(o, "shape"); v != nil {
		s, _ := v.(string)
		c.r.Shape = Shape(s)
	}
	if v, _ := first(o, "mode"); v != nil {
		s, _ := v.(string)
		c.r.Mode = Mode(s)
	}
	if v, _ := first(o, "fields"); v != nil {
		c.given, _ = v.(Object)
		for _, m := range c.given {
			c.labels = append(c.labels, m.Key)
		}
	}
	given := map[string]bool{}
	c.each(at, o, func(key, field string, v Value) {
		given[key] = true
		switch key {
		case "schemaVersion":
			n, ok := v.(json.Number)
			if !ok {
				c.problem(field, "TYPE", "write 1", "must be the number 1, not %s", kindOf(v))
			} else if !sameNumber(string(n), "1") {
				c.problem(field, "VERSION_UNSUPPORTED", "write 1", "schemaVersion %s is not known, only 1 is", clip(string(n)))
			}
			c.r.SchemaVersion = 1
		case "select":
			c.r.Select, _ = c.rooted(field, v)
		case "shape":
			c.oneOf(field, "ENUM", v, string(List), string(Entries), string(Columns), string(Matrix))
		case "header":
			c.header(field, v)
		case "mode":
			c.oneOf(field, "MODE_UNKNOWN", v, string(Table), string(Document), string(Documents))
		case "title":
			c.r.Title = c.template(field, v)
			if c.r.Title != nil && strings.ContainsAny(c.r.Title.String(), "\r\n") {
				c.problem(field, "TEMPLATE_SYNTAX", "", "a title is one line")
			}
			c.tableTitle(field, c.r.Title)
		case "template":
			if c.r.Mode == Table {
				c.problem(field, "TEMPLATE_MODE", `use mode "document" or "documents"`, "not allowed for mode %q", Table)
			}
			c.r.Body = c.template(field, v)
		case "fields":
			c.fields(field, v)
		case "record":
			c.record(field, v)
		case "error":
			if p, ok := c.rooted(field, v); ok {
				c.r.Error = &p
			}
		case "limits":
			c.limits(field, v)
		case "pagination":
			c.pagination(field, v)
		case "index":
			if s, ok := c.text(field, v); ok {
				if s != "cortex" {
					c.problem(field, "INDEX_UNKNOWN", `write "cortex" or leave the key out`, "unknown index %q", clip(s))
				}
				c.r.Index = s
			}
		default:
			c.warn(field, "UNKNOWN_FIELD", suggest(key, topKeys[:]), "unknown key %q was dropped", clip(key))
		}
	})
	if !given["schemaVersion"] {
		c.problem(at+".schemaVersion", "REQUIRED", "write 1", "required")
	}
	if !given["fields"] {
		switch {
		case c.r.Mode == Table:
			c.problem(at+".fields", "NEEDS_FIELDS", `for example {"Name": "name"}`, "required for mode %q", Table)
		case !given["template"] && (c.r.Mode == Document || c.r.Mode == Documents):
			c.problem(at+".fields", "NEEDS_FIELDS", `for example {"Name": "name"}`, "fields or template required for mode %q", c.r.Mode)
		}
	}
}

// tableTitle warns of what the title of a table cannot show: it stands above
// all items and belongs to none.
func (c *checker) tableTitle(field string, t *Template) {
	if t == nil || c.r.Mode != Table {
		return
	}
	for _, p := range t.Paths() {
		if !p.root && (p.special != "#key" || c.r.Shape == Entries) {
			hint, _ := strings.CutPrefix(rootHint(p), "write ")
			if hint != "" {
				hint = "write {{" + hint + "}} for a member of the whole body"
			}
			c.warn(field, "PATH_ROOT", hint, "the title of a table belongs to no item, so {{%s}} stays empty", clip(p.text))
			return
		}
	}
	for _, label := range t.FieldLabels() {
		if strings.HasPrefix(c.fieldPath(label), "$") {
			continue
		}
		c.warn(field, "PATH_ROOT", "", "the title of a table belongs to no item, so {{field:%s}} stays empty", clip(label))
		return
	}
}

// fieldPath is the path of a field as the document has it; "" when there is
// none that can be read.
func (c *checker) fieldPath(label string) string {
	v, _ := first(c.given, label)
	if o, ok := v.(Object); ok {
		v, _ = first(o, "path")
	}
	s, _ := v.(string)
	return s
}

func (c *checker) header(field string, v Value) {
	if c.r.Shape != Matrix {
		c.problem(field, "OPTION_NOT_FOR_FORMAT", "", "only with shape %q", Matrix)
		return
	}
	if s, ok := v.(string); ok && s == "first" {
		c.r.Header.First = true
		return
	}
	p, ok := c.path(field, v)
	if ok && !p.root {
		hint := `write "first"`
		if root, ok := strings.CutPrefix(rootHint(p), "write "); ok {
			hint += " or " + root
		}
		c.problem(field, "PATH_ROOT", hint, "must start with $")
	}
	c.r.Header.Path = p
}

// template reads a template and checks what its placeholders name.
func (c *checker) template(field string, v Value) *Template {
	s, ok := c.text(field, v)
	if !ok {
		return nil
	}
	t, err := ParseTemplate(s)
	if err != nil {
		c.problem(field, "TEMPLATE_SYNTAX", "", "%s", err)
		return nil
	}
	for _, p := range t.Paths() {
		if !c.keyFits(field, p) {
			break
		}
	}
	for _, label := range t.FieldLabels() {
		if !slices.Contains(c.labels, label) {
			hint := ""
			if len(c.labels) > 0 {
				hint = suggest(label, c.labels)
			}
			c.problem(field, "TEMPLATE_SYNTAX", hint, "{{field:%s}} names no field", clip(label))
		}
	}
	return t
}

func (c *checker) record(field string, v Value) {
	o, ok := c.object(field, v)
	if !ok || !c.count(field, o) {
		return
	}
	c.each(field, o, func(key, field string, v Value) {
		if !c.label(field, key) {
			return
		}
		if _, isObject := v.(Object); isObject {
			c.problem(field, "TYPE", "write the path alone; a record keeps the raw value", "must be a path, not an object")
			return
		}
		if p, ok := c.inItem(field, v); ok {
			c.r.Record = append(c.r.Record, Binding{key, p})
		}
	})
}

// count checks the number of labels or keys.
func (c *checker) count(field string, o Object) bool {
	switch {
	case len(o) == 0:
		c.problem(field, "TOO_FEW", "", "must have 1 to %d entries", maxFields)
	case len(o) > maxFields:
		c.problem(field, "TOO_MANY", "", "must have 1 to %d entries, not %d", maxFields, len(o))
	default:
		return true
	}
	return false
}

func (c *checker) label(field, label string) bool {
	n := utf8.RuneCountInString(label)
	switch {
	case n == 0:
		c.problem(field, "TOO_SHORT", "", "a name must have 1 to %d characters", maxLabelChars)
	case n > maxLabelChars:
		c.problem(field, "TOO_LONG", "", "a name must have 1 to %d characters, not %d", maxLabelChars, n)
	case strings.ContainsFunc(label, unicode.IsControl):
		c.problem(field, "PATTERN", "", "a name has no control characters")
	default:
		return true
	}
	return false
}

func (c *checker) limits(field string, v Value) {
	o, ok := c.object(field, v)
	if !ok {
		return
	}
	c.each(field, o, func(key, field string, v Value) {
		switch key {
		case "maxItems":
			c.r.Limits.MaxItems, _ = c.integer(field, "LIMIT_RANGE", v, 1, 1000)
		case "maxChars":
			c.r.Limits.MaxChars, _ = c.integer(field, "LIMIT_RANGE", v, 200, 200_000)
		default:
			c.unknown(field, key, []string{"maxItems", "maxChars"})
		}
	})
}

// first is the value of the first member called key; a second one is a problem
// of its own.
func first(o Object, key string) (Value, bool) {
	for i := range o {
		if o[i].Key == key {
			return o[i].Value, true
		}
	}
	return nil, false
}

// kindOf names the type of a value for a message.
func kindOf(v Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case Array:
		return "an array"
	case Object:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}

// quoted lists words: "a", "b" or "c".
func quoted[S ~string](words []S) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(string(w)))
	}
	return b.String()
}

// suggest is a hint that names the known word nearest to a mistyped one, or
// all of them when none is near.
func suggest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		d := distance(strings.ToLower(word), strings.ToLower(k))
		if d < least && d*2 < len(k)+1 {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}

// distance counts the edits between two words; two neighbours that changed
// places are one edit. Long words are far from everything.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(x)][len(y)]
}
