package bridge

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A route has one method and one path, and answers a value to encode.
type route struct {
	method, path string
	serve        func(w http.ResponseWriter, r *http.Request) (any, error)
}

// secretsPath is where an agent may look, and only look.
const secretsPath = "/wrap/secrets"

// maxFields is the largest max_fields of derive.
const maxFields = 20

func (h *handler) routes() []route {
	return []route{
		{http.MethodGet, helloPath, h.hello},
		{http.MethodGet, "/wrap/status", h.status},
		{http.MethodGet, "/wrap/manifest", h.manifest},
		{http.MethodGet, "/wrap/wrapper", h.wrapper},
		{http.MethodGet, secretsPath, h.secrets},
		{http.MethodGet, "/wrap/audit", h.audit},
		{http.MethodGet, "/wrap/recall", h.recall},
		{http.MethodPost, "/wrap/run", h.run},
		{http.MethodPost, "/wrap/test", h.test},
		{http.MethodPost, "/wrap/derive", h.derive},
		{http.MethodPost, "/wrap/wrappers", h.change},
	}
}

// hello proves that this daemon holds the token, to a caller that has not shown
// it. The proof covers the address that was dialled.
func (h *handler) hello(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := readQuery(r, "nonce")
	if err != nil {
		return nil, err
	}
	nonce, err := hex.DecodeString(q.Get("nonce"))
	if err != nil || len(nonce) != api.NonceBytes {
		return nil, fault.New("BAD_REQUEST", "query.nonce: must be %d hexadecimal characters", 2*api.NonceBytes).With(fault.Field("query.nonce"))
	}
	t := h.door.token.Current()
	if t == "" { // a proof under an empty key would be anyone's
		return nil, fault.New("BUSY", "the daemon is starting")
	}
	local, _ := localAddr(r) // the door has read it already
	return api.Hello{Proof: api.Proof(t, local, nonce), Version: h.version}, nil
}

func (h *handler) status(_ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	return h.backend.Status(r.Context())
}

func (h *handler) manifest(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := manifestQuery(r)
	if err != nil {
		return nil, err
	}
	var m *api.Manifest
	if q.Chooses() {
		m, err = h.backend.Select(r.Context(), q)
	} else {
		m, err = h.backend.Manifest(r.Context(), q.After)
	}
	if err != nil {
		return nil, err
	}
	return listed(m), nil
}

func manifestQuery(r *http.Request) (*api.ManifestQuery, error) {
	p, err := readQuery(r, "after", "limit", "query", "since", "tools")
	if err != nil {
		return nil, err
	}
	bad := func(name, format string, args ...any) error {
		return fault.New("BAD_REQUEST", "query."+name+": "+format, args...).With(fault.Field("query." + name))
	}
	q := &api.ManifestQuery{Query: p.Get("query"), Since: p.Get("since"), Tools: p.Has("tools")}
	if p.Has("after") {
		if q.After, err = strconv.ParseUint(p.Get("after"), 10, 64); err != nil {
			return nil, bad("after", "must be a revision, a whole number")
		}
	}
	if p.Has("limit") {
		if q.Limit, err = strconv.Atoi(p.Get("limit")); err != nil || q.Limit < 1 || q.Limit > api.MaxListed {
			return nil, bad("limit", "must be a whole number from 1 to %d", api.MaxListed)
		}
	}
	switch {
	case q.Tools && p.Get("tools") != "1":
		return nil, bad("tools", "must be 1, or absent")
	case p.Has("since") && !q.Tools:
		return nil, bad("since", "goes together with tools=1 only")
	case q.Tools && (p.Has("query") || p.Has("limit")):
		return nil, bad("tools", "does not go together with query and limit")
	}
	return q, nil
}

// listed is m with empty lists where it has none. The backend may share m, so
// it is not changed.
func listed(m *api.Manifest) *api.Manifest {
	missing := func(e api.ManifestEntry) bool { return e.Required == nil }
	if m.Wrappers != nil && !slices.ContainsFunc(m.Wrappers, missing) {
		return m
	}
	c := *m
	c.Wrappers = append([]api.ManifestEntry{}, m.Wrappers...)
	for i := range c.Wrappers {
		if missing(c.Wrappers[i]) {
			c.Wrappers[i].Required = []string{}
		}
	}
	return &c
}

// Rows of one answer of the audit trail.
const (
	defaultRows = 50
	maxRows     = 1000
)

func (h *handler) audit(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := readQuery(r, "limit")
	if err != nil {
		return nil, err
	}
	limit := defaultRows
	if q.Has("limit") {
		if limit, err = strconv.Atoi(q.Get("limit")); err != nil || limit < 1 || limit > maxRows {
			return nil, fault.New("BAD_REQUEST", "query.limit: must be a whole number from 1 to %d", maxRows).With(fault.Field("query.limit"))
		}
	}
	p, err := h.backend.Audit(r.Context(), limit)
	if err == nil && p.Rows == nil {
		p = &api.AuditPage{Rows: []api.AuditRow{}, Next: p.Next}
	}
	return p, err
}

func (h *handler) recall(_ http.ResponseWriter, r *http.Request) (any, error) {
	p, err := readQuery(r, "query", "wrapper", "since", "limit")
	if err != nil {
		return nil, err
	}
	q := &api.RecallRequest{Query: p.Get("query"), Wrapper: p.Get("wrapper"), Since: p.Get("since")}
	if q.Query == "" {
		return nil, fault.New("BAD_REQUEST", "query.query: say what to search for, ?query=WORDS").With(fault.Field("query.query"))
	}
	if p.Has("limit") {
		if q.Limit, err = strconv.Atoi(p.Get("limit")); err != nil || q.Limit < 1 || q.Limit > api.RecallMost {
			return nil, fault.New("BAD_REQUEST", "query.limit: must be a whole number from 1 to %d", api.RecallMost).With(fault.Field("query.limit"))
		}
	}
	found, err := h.backend.Recall(r.Context(), q)
	if err == nil && found.Documents == nil {
		c := *found
		c.Documents = []api.RecallDocument{}
		found = &c
	}
	return found, err
}

func (h *handler) wrapper(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := readQuery(r, "id")
	if err != nil {
		return nil, err
	}
	if q.Get("id") == "" {
		return nil, fault.New("BAD_REQUEST", "query.id: say which wrapper, ?id=ID").With(fault.Field("query.id"))
	}
	return h.backend.Wrapper(r.Context(), q.Get("id"))
}

func (h *handler) secrets(_ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	l, err := h.backend.Secrets(r.Context())
	if err != nil {
		return nil, err
	}
	if l.Secrets == nil {
		c := *l
		c.Secrets = []api.Secret{}
		l = &c
	}
	return l, nil
}

func (h *handler) run(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := readBody(w, r, "id", "args", "format", "max_pages", "maxPages", "max_items", "maxItems", "fields")
	if err != nil {
		return nil, err
	}
	q := &api.RunRequest{
		ID:       b.required("id", "say which wrapper to run"),
		Args:     b.object("args"),
		Format:   b.format(),
		MaxPages: b.whole("max_pages", "maxPages", api.MaxPagesCap, "MAX_PAGES_INVALID"),
		MaxItems: b.whole("max_items", "maxItems", api.MaxItemsCap, "MAX_ITEMS_INVALID"),
		Fields:   b.texts("fields", api.MaxNames),
	}
	if b.err != nil {
		return nil, b.err
	}
	return h.backend.Run(r.Context(), q)
}

func (h *handler) test(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := readBody(w, r, "id", "wrapper", "args", "sample", "dryRun", "format", "maxPages", "max_pages", "maxItems", "max_items", "fields")
	if err != nil {
		return nil, err
	}
	q := &api.TestRequest{
		ID:       b.text("id"),
		Wrapper:  b.object("wrapper"),
		Args:     b.object("args"),
		Sample:   b.raw("sample"), // null is "no sample": nothing could be rendered from it
		DryRun:   b.flag("dryRun"),
		Format:   b.format(),
		MaxPages: b.whole("maxPages", "max_pages", api.MaxPagesCap, "MAX_PAGES_INVALID"),
		MaxItems: b.whole("maxItems", "max_items", api.MaxItemsCap, "MAX_ITEMS_INVALID"),
		Fields:   b.texts("fields", api.MaxNames),
	}
	switch {
	case q.ID == "" && q.Wrapper == nil:
		b.fail("body.id", "give the id of a saved wrapper, or a wrapper document")
	case q.ID != "" && q.Wrapper != nil:
		b.fail("body.wrapper", "give id or wrapper, not both")
	}
	if b.err != nil {
		return nil, b.err
	}
	res, err := h.backend.Test(r.Context(), q)
	switch {
	case err != nil:
		return nil, err
	case res.Plan != nil: // not res itself: its marshaller would escape & and < a second time
		return res.Plan, nil
	}
	return res.Run, nil
}

func (h *handler) derive(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := readBody(w, r, "sample", "url", "id", "name", "description", "max_fields", "maxFields")
	if err != nil {
		return nil, err
	}
	q := &api.DeriveRequest{
		Sample:      b.raw("sample"),
		URL:         b.text("url"),
		ID:          b.text("id"),
		Name:        b.text("name"),
		Description: b.text("description"),
		MaxFields:   b.whole("max_fields", "maxFields", maxFields, "DERIVE_MAX_FIELDS"),
	}
	if b.err != nil {
		return nil, b.err
	}
	if q.Sample == nil && q.URL == "" {
		q.Sample = b.members["sample"] // a null, so that the answer is about it
	}
	return h.backend.Derive(r.Context(), q)
}

func (h *handler) change(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := readBody(w, r, "action", "id", "wrapper")
	if err != nil {
		return nil, err
	}
	q := &api.ChangeRequest{Action: b.text("action"), ID: b.text("id"), Wrapper: b.object("wrapper")}
	switch q.Action {
	case "create", "update":
		if q.Wrapper == nil {
			b.fail("body.wrapper", q.Action+" needs the whole document")
		}
	case "delete", "get":
		if q.ID == "" {
			b.fail("body.id", q.Action+" needs the id of a wrapper")
		}
		if q.Wrapper != nil {
			b.fail("body.wrapper", q.Action+" takes no document")
		}
	default:
		b.fail("body.action", "must be create, update, delete or get")
	}
	if b.err != nil {
		return nil, b.err
	}
	return h.backend.Change(r.Context(), q)
}

// readQuery reads the query string; known are the parameters of the route, each
// at most once.
func readQuery(r *http.Request, known ...string) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.New("BAD_REQUEST", "query: cannot be read").With(fault.Field("query"), fault.Cause(err))
	}
	var names []string
	for name := range q {
		names = append(names, name)
	}
	slices.Sort(names) // the same request gives the same words
	for _, name := range names {
		field := "query." + fault.Shorten(name, 60)
		if !slices.Contains(known, name) {
			knows := "none"
			if len(known) > 0 {
				knows = strings.Join(known, ", ")
			}
			return nil, fault.New("BAD_REQUEST", "%s: no such parameter; this route knows %s", field, knows).With(fault.Field(field))
		}
		if len(q[name]) > 1 {
			return nil, fault.New("BAD_REQUEST", "%s: it is given twice", field).With(fault.Field(field))
		}
	}
	return q, nil
}
