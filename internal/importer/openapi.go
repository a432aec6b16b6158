package importer

import (
	"errors"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// OpenAPI reads an OpenAPI document of version 2.0, 3.0, 3.1 or later in JSON
// or YAML, and drafts a wrapper for each operation that the options let in.
// Drafts and refusals are in the order of the document. The same document and
// options always give the same result, and an operation's id depends on
// neither the options (the prefix aside) nor the order of the document.
//
// Errors are *fault.Error: IMPORT_INVALID when the text is no such document,
// IMPORT_NO_SERVER when it does not say where the API is and the options do
// not either.
func OpenAPI(data []byte, o Options) (*Result, error) {
	root, err := readDocument(data)
	if err != nil {
		return nil, err
	}
	d, err := newDocument(root)
	if err != nil {
		return nil, err
	}
	im := &openAPI{document: d, options: o, result: &Result{Title: brief(text(object(root, "info"), "title"), nameText)}}
	if err := im.base(); err != nil {
		return nil, err
	}
	im.security()
	ops := im.operations()
	if len(ops) == 0 {
		return nil, fault.New("IMPORT_INVALID", "the document has no operation")
	}
	im.name(ops)
	for _, op := range ops {
		if o.keep(op.method, op.tags, op.id, op.operationID, op.path, op.title()) {
			im.add(op)
		}
	}
	im.bindHosts()
	return im.result, nil
}

func newDocument(v recipe.Value) (*document, error) {
	root, ok := v.(recipe.Object)
	if !ok {
		return nil, fault.New("IMPORT_INVALID", "the document is no object with openapi or swagger in it")
	}
	d := &document{root: root, refs: map[string]found{}}
	openapi, swagger := text(root, "openapi"), text(root, "swagger")
	switch {
	case strings.HasPrefix(swagger, "2"):
		d.version = v2
	case openapi == "3.0" || strings.HasPrefix(openapi, "3.0."):
		d.version = v30
	case strings.HasPrefix(openapi, "3"):
		d.version = v31
	case has(root, "item") && has(root, "info"):
		return nil, fault.New("IMPORT_INVALID", "this is a Postman collection").With(fault.Hint("Import it with `hbrestd import postman FILE`."))
	case has(root, "log"):
		return nil, fault.New("IMPORT_INVALID", "this is a HAR file").With(fault.Hint("Import it with `hbrestd import har FILE`."))
	case openapi != "" || swagger != "":
		return nil, fault.New("IMPORT_INVALID", "OpenAPI %s is not read: 2.0, 3.0 and 3.1 are", cut(cleanText(openapi+swagger), 20))
	default:
		return nil, fault.New("IMPORT_INVALID", "the document says neither openapi nor swagger at its top")
	}
	return d, nil
}

// An openAPI is one run of OpenAPI.
type openAPI struct {
	*document
	options Options
	result  *Result
	server  server // of the document
	schemes *schemes
}

// An operation is one method of one path.
type operation struct {
	*openAPI
	method, path string
	item, op     recipe.Object
	operationID  string
	tags         []string
	id           string

	reader  *schemaReader
	notes   notes
	args    arguments
	query   recipe.Object
	headers recipe.Object
	secret  *Secret
	auth    string
	body    recipe.Value
	bodyAs  string // bodyType
	answer  *answer
	levels  int  // schemas inside each other
	exact   bool // patterns are kept
	props   int  // of the schemas written so far
	server  server
}

func (op *operation) title() string { return op.method + " " + op.path }

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// operations lists what the document describes, in its order.
func (im *openAPI) operations() []*operation {
	var out []*operation
	for _, p := range object(im.root, "paths") {
		if !strings.HasPrefix(p.Key, "/") {
			continue // an extension
		}
		if shown := cleanText(p.Key); shown != p.Key {
			im.drop("path %s", shown)
			im.refuse(shown, refuse("CREDENTIAL_PATH", "its path holds what looks like a credential"))
			continue
		}
		target, _, err := im.deref(p.Value)
		if err != nil {
			im.refuse(cleanText(p.Key), err)
			continue
		}
		item, _ := target.(recipe.Object)
		for _, m := range item {
			body, ok := m.Value.(recipe.Object)
			if !ok || !slices.Contains(methods, strings.ToLower(m.Key)) {
				continue
			}
			op := &operation{
				openAPI: im, method: strings.ToUpper(m.Key), path: p.Key, item: item, op: body,
				operationID: text(body, "operationId"),
			}
			for _, t := range array(body, "tags") {
				if s, ok := t.(string); ok {
					op.tags = append(op.tags, cut(cleanText(s), nameText))
				}
			}
			out = append(out, op)
		}
	}
	return out
}

// name gives each operation its id. Where two would be equal, both get one
// from method and path, so that neither depends on which comes first.
func (im *openAPI) name(ops []*operation) {
	count := map[string]int{}
	for _, op := range ops {
		op.id = fitID(im.options.prefixed(slug(cleanText(op.operationID))))
		if slug(op.operationID) == "" {
			op.id = ""
		}
		count[op.id]++
	}
	named := map[*operation]bool{}
	paths := map[string]int{}
	for _, op := range ops {
		if named[op] = op.id != "" && count[op.id] == 1; !named[op] {
			op.id = fitID(im.options.prefixed(pathSlug(op.method, op.path)))
			paths[op.id]++
		}
	}
	for _, op := range ops {
		if !named[op] && (paths[op.id] > 1 || count[op.id] == 1) {
			op.id += "-" + hash6(op.title())
		}
	}
}

func (im *openAPI) refuse(operation string, err error) {
	r := &refusal{"DOCUMENT", "it cannot be read"}
	errors.As(err, &r)
	im.result.Refused = append(im.result.Refused, Refusal{Operation: operation, Reason: r.reason, Code: r.code})
}

func (im *openAPI) drop(format string, args ...any) {
	s := sprintf(format, args...)
	if !slices.Contains(im.result.Dropped, s) {
		im.result.Dropped = append(im.result.Dropped, s)
	}
}

func (im *openAPI) note(format string, args ...any) {
	s := sprintf(format, args...)
	if !slices.Contains(im.result.Notes, s) {
		im.result.Notes = append(im.result.Notes, s)
	}
}

// add drafts one operation. Schemas that are too large for a wrapper are
// described less deeply, again and again, until they fit.
func (im *openAPI) add(op *operation) {
	var err error
	for _, try := range []struct {
		levels int
		exact  bool
	}{{schemaLevels, true}, {schemaLevels, false}, {5, true}, {3, true}, {2, false}, {1, false}, {0, false}} {
		attempt := *op
		attempt.levels, attempt.exact = try.levels, try.exact
		attempt.reader = &schemaReader{d: im.document, budget: schemaBudget}
		var draft *Draft
		if draft, err = attempt.draft(); err == nil {
			im.result.Drafts = append(im.result.Drafts, *draft)
			return
		}
		var tooBig *oversize
		if !errors.As(err, &tooBig) {
			break
		}
	}
	im.refuse(op.title(), err)
}

// An oversize error asks for another attempt with a smaller schema.
type oversize struct{ refusal }

func (op *operation) draft() (*Draft, error) {
	switch op.method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE":
	default:
		return nil, refuse("METHOD", "the method %s cannot be sent", op.method)
	}
	var err error
	if op.server, err = op.serverOf(); err != nil {
		return nil, err
	}
	params, err := op.parameters()
	if err != nil {
		return nil, err
	}
	if err := op.credentials(params); err != nil {
		return nil, err
	}
	address, err := op.address(params)
	if err != nil {
		return nil, err
	}
	if err := op.queryAndHeaders(params); err != nil {
		return nil, err
	}
	if err := op.requestBody(params); err != nil {
		return nil, err
	}
	if op.answer, err = op.answers(); err != nil {
		return nil, err
	}
	op.accept()
	response := op.recipe()
	return op.finish(address, response)
}

// finish puts the parts together and lets wrapper.Parse judge them.
func (op *operation) finish(address string, response recipe.Object) (*Draft, error) {
	schema := op.args.schema()
	if n := len(recipe.Encode(schema)); n > maxSchemaText {
		return nil, &oversize{refusal{"SCHEMA_TOO_LARGE", "its arguments cannot be described in a wrapper"}}
	}
	request := recipe.Object{{Key: "method", Value: op.method}, {Key: "url", Value: address}}
	for _, part := range []recipe.Member{{Key: "query", Value: op.query}, {Key: "headers", Value: op.headers}} {
		if len(part.Value.(recipe.Object)) > 0 {
			request = append(request, part)
		}
	}
	if op.body != nil {
		request = append(request, recipe.Member{Key: "body", Value: op.body})
		if op.bodyAs != wrapper.BodyJSON {
			request = append(request, recipe.Member{Key: "bodyType", Value: op.bodyAs})
		}
	}
	if op.auth != "" {
		request = append(request, recipe.Member{Key: "auth", Value: op.auth})
	}
	doc := recipe.Object{
		{Key: "schemaVersion", Value: one},
		{Key: "id", Value: op.id},
		{Key: "name", Value: op.label()},
		{Key: "description", Value: op.description()},
		{Key: "request", Value: request},
	}
	if len(op.args.list) > 0 {
		doc = append(doc, recipe.Member{Key: "inputSchema", Value: schema})
	}
	if response != nil {
		doc = append(doc, recipe.Member{Key: "response", Value: response})
	}
	w, report := wrapper.Parse(recipe.Encode(doc))
	if w == nil {
		return nil, judged(report)
	}
	return &Draft{
		ID: op.id, Document: w.Document(), Operation: op.title(), Notes: op.notes.all(), Tags: op.tags, Secret: op.secret,
	}, nil
}

// judged makes a refusal of what wrapper.Parse found. Problems of size are
// worth another attempt.
func judged(report recipe.Report) error {
	if len(report.Problems) == 0 {
		return refuse("WRAPPER_INVALID", "the wrapper is not valid")
	}
	p := report.Problems[0]
	r := refusal{p.Code, cut(cleanText(strings.TrimPrefix(p.Field, "wrapper.")+": "+p.Message), 300)}
	if strings.Contains(p.Field, "inputSchema") {
		return &oversize{r}
	}
	return &r
}

func (op *operation) label() string {
	if s := brief(text(op.op, "summary"), nameText); s != "" {
		return s
	}
	if s := brief(text(op.item, "summary"), nameText); s != "" {
		return s
	}
	if op.operationID != "" {
		return strings.ReplaceAll(strings.ReplaceAll(slug(cleanText(op.operationID)), "-", " "), ".", ": ")
	}
	return cut(cleanText(op.title()), nameText)
}

// description is for a model that chooses among tools: what it does, in a few
// sentences, without repeating itself.
func (op *operation) description() string {
	summary := brief(text(op.op, "summary"), wrapperText)
	about := brief(text(op.op, "description"), wrapperText)
	if about == "" {
		about = brief(text(op.item, "description"), wrapperText)
	}
	if summary != "" && about != "" {
		a, b := strings.ToLower(strings.TrimRight(summary, ".")), strings.ToLower(about)
		if !strings.HasPrefix(b, a) {
			about = brief(sentence(summary)+" "+about, wrapperText)
		}
	}
	if about == "" {
		about = summary
	}
	if about == "" {
		about = cut(cleanText(op.title()), nameText)
	}
	if flag(op.op, "deprecated") {
		about = "Deprecated. " + about
	}
	return about
}
