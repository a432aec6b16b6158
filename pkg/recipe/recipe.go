package recipe

// A Mode says how items are laid out.
type Mode string

// The modes of format v1.
const (
	Table     Mode = "table"     // one row an item
	Document  Mode = "document"  // the first item as a list of fields or a template
	Documents Mode = "documents" // every item under its own heading
)

// A Shape says how the selected value becomes items.
type Shape string

// The shapes of format v1.
const (
	List    Shape = "list"
	Entries Shape = "entries"
	Columns Shape = "columns"
	Matrix  Shape = "matrix"
)

// A Recipe says what to show of a JSON answer. Make one with Parse or Derive;
// it is immutable afterwards and safe for concurrent use.
type Recipe struct {
	SchemaVersion int
	Select        Path
	Shape         Shape
	Header        Header
	Mode          Mode
	Title         *Template // nil: the name handed to Render
	Body          *Template // "template" in JSON; nil: the field list
	Fields        []Field   // column order
	Record        []Binding // key order; nil: see Render
	Error         *Path     // nil: no error path
	Limits        Limits
	Pagination    Pagination
	Index         string  // "" or "cortex"
	plain         bool    // made by Plain
	all           []Field // of the recipe that Narrow was asked of, for titles; nil: Fields
	plan          *plan   // nil: it is made for each reading
}

// A Header says where the names of the cells of shape Matrix come from. The
// zero Header names none: cells are reached by index.
type Header struct {
	First bool // the first row has the names and is no item
	Path  Path // a list of names in the body; zero: none
}

// A Field is one column or line.
type Field struct {
	Label  string
	Path   Path
	Format Format
}

// A Binding is one key of a record.
type Binding struct {
	Key  string
	Path Path
}

// Limits bound a rendering.
type Limits struct {
	MaxItems int // 1 to 1000, default 50: items rendered and returned as records
	MaxChars int // 200 to 200000, default 20000: characters of Markdown
}

// A Kind names a format; "" chooses one by the value.
type Kind string

// The kinds of format v1.
const (
	KindAuto     Kind = ""
	KindText     Kind = "text"
	KindNumber   Kind = "number"
	KindInteger  Kind = "integer"
	KindCurrency Kind = "currency"
	KindPercent  Kind = "percent"
	KindBytes    Kind = "bytes"
	KindBoolean  Kind = "boolean"
	KindDate     Kind = "date"
	KindDateTime Kind = "datetime"
	KindLink     Kind = "link"
	KindImage    Kind = "image"
	KindCode     Kind = "code"
	KindList     Kind = "list"
	KindJSON     Kind = "json"
	KindHTML     Kind = "html"
	KindMarkdown Kind = "markdown"
)

// A Format says how a value becomes text. Options that do not belong to Kind
// are zero; Parse has refused them.
type Format struct {
	Kind           Kind
	Prefix, Suffix string // at most 20 characters each
	Default        string // for missing, null and ""
	MaxChars       int    // 0: 200 in tables, 2000 in documents
	Decimals       int    // -1: as written; else 0 to 12
	Scale          string // decimal literal to multiply by; "": 1
	Group          bool   // thousands separator
	Currency       string // code or path text
	Unit           string // "", "s", "ms", "us"
	True, False    string // labels; "": yes, no
	Text           *Path  // link label
	Join           string // list separator; default ", "
	Item           *Path  // path inside each list element
	Each           Kind   // format of each list element; "": text
	MaxItems       int    // list elements shown; 0: 10
}

// Pagination is the plan of a paginated recipe; walking it is not this
// package's job. The zero value means one request.
type Pagination struct {
	Type        string // "", "none", "offset", "cursor", "link"
	MaxPages    int    // 1 to 25, default 10
	LimitParam  string
	PageSize    int // 0: none; else 1 to 1000
	OffsetParam string
	Start       int    // first offset or page number
	Step        string // "items" or "page"
	Total       *Source
	HasMore     *Source
	HasMoreWhen bool // default true
	Next        *Source
	CursorParam string // "*" merges an object's members
	In          string // "query", "body", "header"
	NextURL     *Source
	Rel         string // relation in a Link header, default "next"
}

// Paged reports whether the recipe asks for more than one request.
func (p Pagination) Paged() bool { return p.Type != "" && p.Type != "none" }

// A Source is where a pagination value comes from: a response header, or a
// path into the body.
type Source struct {
	Header string // "" : Path is set
	Path   Path
}

// RenderOptions are what a rendering needs from outside. The zero value works.
type RenderOptions struct {
	Name string // heading when the recipe has no title
}

// A Result is what Render makes of the pages.
type Result struct {
	Markdown  string
	Title     string  // the heading of Markdown as plain text; "" when it has none
	Records   []Value // Objects, or the raw items when neither record nor fields name keys
	Documents []Rendered
	Meta      Meta

	records []byte // Records as compact JSON; nil: not made yet
}

// RecordsJSON is Encode of Records, as an Array. The slice must not be changed.
func (r *Result) RecordsJSON() []byte {
	if r.records != nil {
		return r.records
	}
	return Encode(Array(append([]Value{}, r.Records...)))
}

// Rendered is one document of mode Documents.
type Rendered struct {
	Title    string // plain text
	Markdown string // without its heading
	Record   Value
}

// Meta is the account of a rendering.
type Meta struct {
	Mode        Mode
	Selected    int      // items before caps
	Rendered    int      // items after MaxItems; equals the number of records
	Shown       int      // items in the Markdown; below Rendered when MaxChars cut it
	Truncated   bool     //
	Reason      string   // "", "bytes", "items", "chars"
	EmptyFields []string // labels missing or null in every rendered item
	Warnings    []string
}
