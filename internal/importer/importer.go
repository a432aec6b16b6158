// Package importer turns what other people wrote about an API (an OpenAPI
// document, a curl line, a Postman collection, a HAR file) into wrapper drafts
// with notes.
//
// A draft sends exactly what its source prescribes; what cannot be sent
// exactly is refused with the reason, never approximated. Every draft has
// passed wrapper.Parse. The package fetches nothing, opens nothing, follows no
// reference out of the text it was given, and keeps no credential it finds:
// those are named by their place and offered as a command for a person.
//
// Start with OpenAPI, Curl, Postman or HAR; each returns a Result.
package importer

// Options narrow an import and say what its source leaves out. The zero value
// imports everything.
type Options struct {
	// Only lists patterns; an operation is imported when one of them matches its
	// id, its operationId, its path or its "METHOD /path" (see Match). Empty: all.
	Only []string
	// Tags lists tags, case aside; an operation needs one of them. Empty: all.
	Tags []string
	// Methods lists HTTP methods, case aside. Empty: all.
	Methods []string
	// Prefix begins every id ("github" makes "github.repos.list"); empty: none.
	Prefix string
	// BaseURL replaces the server that the source names, path included. It is an
	// absolute http or https URL.
	BaseURL string
}

// A Result is what an import found, in the order of its source.
type Result struct {
	Title   string    // of the document or collection; may be empty
	Drafts  []Draft   // what can be saved
	Refused []Refusal // what cannot be sent exactly, each with the reason
	// Dropped names the credentials that were found and left out, by place
	// ("header Authorization of GET /pets"), never by value.
	Dropped []string
	Notes   []string // about the source as a whole
}

// A Draft is one wrapper that has passed wrapper.Parse.
type Draft struct {
	ID        string
	Document  []byte   // wrapper JSON as wrapper.Parse normalised it
	Operation string   // what it was made from: "GET /pets/{id}"
	Notes     []string // what its reader should know before saving it
	Tags      []string
	Secret    *Secret // nil: the source names no credential
}

// A Secret is the credential a draft needs, as a suggestion for a person. It
// never holds a value.
type Secret struct {
	Name    string   // as in request.auth
	Hosts   []string // the hosts to bind it to
	Kind    string   // static, basic or oauth2
	Header  string   // "Authorization", "X-Api-Key"
	Prefix  string   // before the value: "Bearer "; may be empty
	Command string   // the `hbrestd secret set …` line that asks for the value
}

// A Refusal is an operation that is not imported.
type Refusal struct {
	Operation string // "POST /upload"
	Reason    string // one line: what cannot be sent, and why
	Code      string // MULTIPART, PARAM_STYLE, …: upper snake, stable
}
