package recipe

// A Problem is one fault of a document, found by Parse and by the packages
// that check documents around a recipe.
type Problem struct {
	Field   string // "response.fields.Price.format"; labels that are not plain names in brackets: fields['Unit price']
	Code    string // a detail code of docs/errors.md, such as "FORMAT_UNKNOWN"
	Message string // lower case, no final period
	Hint    string // what to write instead; may be empty
}

// A Report lists everything that is wrong (Problems) or suspicious (Warnings)
// in a document, in document order, at most MaxProblems of each.
type Report struct {
	Problems []Problem
	Warnings []Problem
}

// MaxProblems bounds each list of a Report.
const MaxProblems = 50

// OK reports whether the document can be used.
func (r Report) OK() bool { return len(r.Problems) == 0 }
