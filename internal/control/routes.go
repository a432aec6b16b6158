package control

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The paths, for both ends.
const (
	pathStatus   = "/control/status"
	pathManifest = "/control/manifest"
	pathWrapper  = "/control/wrapper"
	pathSecrets  = "/control/secrets"
	pathRun      = "/control/run"
	pathTest     = "/control/test"
	pathDerive   = "/control/derive"
	pathChange   = "/control/wrappers"
	pathAudit    = "/control/audit"
	pathApply    = "/control/apply"
	pathExpose   = "/control/expose"
	pathAllow    = "/control/allow"
	pathDisallow = "/control/disallow"
	pathSettings = "/control/settings"
	pathFollow   = "/control/audit/follow"
	pathVerify   = "/control/audit/verify"
	pathHead     = "/control/audit/head"
	pathReload   = "/control/reload"
	pathStop     = "/control/stop"

	// A person's view of credentials and their changes. pathSecrets is what
	// agents may see.
	pathSecretState  = "/control/secret"
	pathSecretCheck  = "/control/secret/check"
	pathSecretPut    = "/control/secret/put"
	pathSecretBind   = "/control/secret/bind"
	pathSecretDelete = "/control/secret/delete"
	pathSecretTest   = "/control/secret/test"
)

// A route has one method and one path. Its request has been read whole when
// serve is called: the query for a GET, the body for a POST.
type route struct {
	method, path string
	params       []string // of a GET
	limit        int64    // bytes of a POST's body
	waits        bool     // ends at once when the daemon stops
	serve        func(context.Context, request) (any, error)
}

// A request is what came, read but not understood.
type request struct {
	query url.Values
	body  []byte
}

func (h *handler) routes() []route {
	b := h.backend
	return []route{
		get(pathStatus, func(ctx context.Context, _ url.Values) (any, error) { return b.Status(ctx) }),
		waiting(get(pathManifest, h.manifest, "after")),
		get(pathWrapper, h.wrapper, "id"),
		get(pathSecrets, h.secrets),
		post(pathRun, checkRun, b.Run),
		post(pathTest, checkTest, h.test),
		post(pathDerive, checkDerive, b.Derive),
		post(pathChange, checkChange, b.Change),
		get(pathAudit, h.audit, "limit"),
		large(post(pathApply, checkApply, h.apply)),
		post(pathExpose, checkExpose, b.Expose),
		get(pathHistory, h.history, "id"),
		get(pathRemoved, h.removed),
		get(pathVersion, h.wrapperVersion, "id", "version"),
		post(pathRollback, checkRollback, b.Rollback),
		get(pathLint, h.lint, "id"),
		get(pathAllow, func(ctx context.Context, _ url.Values) (any, error) { return rules(b.Allowed(ctx)) }),
		post(pathAllow, checkRule, func(ctx context.Context, q *AllowRule) (any, error) { return rules(b.Allow(ctx, q)) }),
		post(pathDisallow, checkRule, func(ctx context.Context, q *AllowRule) (any, error) { return rules(b.Disallow(ctx, q)) }),
		get(pathSettings, func(ctx context.Context, _ url.Values) (any, error) { return settings(b.Settings(ctx)) }),
		post(pathSettings, checkSetting, func(ctx context.Context, q *SettingChange) (any, error) { return settings(b.SetSetting(ctx, q)) }),
		waiting(get(pathFollow, h.follow, "after", "limit")),
		post(pathVerify, nil, b.AuditVerify),
		get(pathHead, func(ctx context.Context, _ url.Values) (any, error) { return b.AuditHead(ctx) }),
		get(pathSecretState, h.secretState),
		wiping(post(pathSecretCheck, checkSecretCheck, func(ctx context.Context, q *SecretPut) (any, error) { return secretResult(b.CheckSecret(ctx, q)) })),
		wiping(post(pathSecretPut, checkSecretPut, h.putSecret)),
		post(pathSecretBind, checkSecretBind, func(ctx context.Context, q *SecretBind) (any, error) { return secretResult(b.BindSecret(ctx, q)) }),
		post(pathSecretDelete, checkSecretName, func(ctx context.Context, q *SecretName) (any, error) { return secretResult(b.DeleteSecret(ctx, q)) }),
		post(pathSecretTest, checkSecretTest, b.TestSecret),
		waiting(get(pathApprovals, h.approvals, "after")),
		get(pathApproval, h.approval, "id"),
		post(pathApprovalAnswer, checkApprovalAnswer, b.Answer),
		get(pathApprovalPolicies, func(ctx context.Context, _ url.Values) (any, error) { return approvalPolicies(b.ApprovalPolicies(ctx)) }),
		post(pathApprovalPolicy, checkApprovalPolicy, func(ctx context.Context, q *ApprovalPolicyChange) (any, error) {
			return approvalPolicies(b.SetApprovalPolicy(ctx, q))
		}),
		post(pathRecall, checkRecall, h.recall),
		get(pathCortexStats, func(ctx context.Context, _ url.Values) (any, error) { return cortexStats(b.CortexStats(ctx)) }),
		post(pathCortexForget, checkCortexForget, b.CortexForget),
		post(pathCortexRebuild, nil, func(ctx context.Context, _ *struct{}) (*CortexChange, error) { return b.CortexRebuild(ctx) }),
		post(pathFetch, checkFetch, b.Fetch),
		get(pathOrigins, func(ctx context.Context, _ url.Values) (any, error) { return origins(b.Origins(ctx)) }),
		post(pathBackup, checkBackup, h.backup),
		post(pathReload, nil, func(ctx context.Context, _ *struct{}) (*ReloadResult, error) { return b.Reload(ctx) }),
		post(pathStop, nil, func(ctx context.Context, _ *struct{}) (*stopped, error) { return &stopped{OK: true}, b.Stop(ctx) }),
	}
}

// stopped answers a stop.
type stopped struct {
	OK bool `json:"ok"`
}

func get(path string, serve func(context.Context, url.Values) (any, error), params ...string) route {
	return route{
		method: http.MethodGet, path: path, params: params,
		serve: func(ctx context.Context, q request) (any, error) { return serve(ctx, q.query) },
	}
}

// post makes a route whose body is a Q. check fills in and refuses; it may be
// nil. It is a function and not a method because of its type parameters.
func post[Q, A any](path string, check func(*Q) *fault.Error, serve func(context.Context, *Q) (A, error)) route {
	return route{method: http.MethodPost, path: path, limit: MaxBody, serve: func(ctx context.Context, r request) (any, error) {
		q := new(Q)
		if err := decode(r.body, q); err != nil {
			return nil, err
		}
		if check != nil {
			if err := check(q); err != nil {
				return nil, err
			}
		}
		return serve(ctx, q)
	}}
}

func waiting(r route) route { r.waits = true; return r }
func large(r route) route   { r.limit = MaxApply; return r }

func (h *handler) manifest(ctx context.Context, q url.Values) (any, error) {
	after, err := sequence(q, "after")
	if err != nil {
		return nil, err
	}
	m, err := h.backend.Manifest(ctx, after)
	if err != nil {
		return nil, err
	}
	c := *m // the backend may share m
	c.Wrappers = append([]api.ManifestEntry{}, m.Wrappers...)
	for i := range c.Wrappers {
		if c.Wrappers[i].Required == nil {
			c.Wrappers[i].Required = []string{}
		}
	}
	return &c, nil
}

func (h *handler) wrapper(ctx context.Context, q url.Values) (any, error) {
	id := q.Get("id")
	if id == "" {
		return nil, bad("query.id", "say which wrapper, ?id=ID")
	}
	return h.backend.Wrapper(ctx, id)
}

func (h *handler) secrets(ctx context.Context, _ url.Values) (any, error) {
	l, err := h.backend.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	c := *l
	c.Secrets = filled(l.Secrets)
	return &c, nil
}

func (h *handler) test(ctx context.Context, q *api.TestRequest) (any, error) {
	res, err := h.backend.Test(ctx, q)
	switch {
	case err != nil:
		return nil, err
	case res.Plan != nil: // not res itself: its marshaller would escape & and < a second time
		return res.Plan, nil
	}
	return res.Run, nil
}

func (h *handler) audit(ctx context.Context, q url.Values) (any, error) {
	limit, err := rowLimit(q)
	if err != nil {
		return nil, err
	}
	return rows(h.backend.Audit(ctx, limit))
}

func (h *handler) follow(ctx context.Context, q url.Values) (any, error) {
	after, err := sequence(q, "after")
	if err != nil {
		return nil, err
	}
	limit, err := rowLimit(q)
	if err != nil {
		return nil, err
	}
	return rows(h.backend.AuditFollow(ctx, after, limit))
}

func (h *handler) apply(ctx context.Context, q *ApplyRequest) (any, error) {
	r, err := h.backend.Apply(ctx, q)
	if err != nil {
		return nil, err
	}
	c := *r
	c.Changes = filled(r.Changes)
	return &c, nil
}

// The next three put an empty list where the backend has none: a reader gets [].

func rows(p *api.AuditPage, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c := *p
	c.Rows = filled(p.Rows)
	return &c, nil
}

func rules(l *AllowList, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return &AllowList{Rules: filled(l.Rules)}, nil
}

func settings(l *SettingList, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return &SettingList{Settings: filled(l.Settings)}, nil
}

func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// sequence is a query parameter that counts; 0 when it is absent.
func sequence(q url.Values, name string) (uint64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 64)
	if err != nil {
		return 0, bad("query."+name, "must be a whole number")
	}
	return n, nil
}

// rowLimit is the parameter limit; 0, the backend's own choice, when absent.
func rowLimit(q url.Values) (int, error) {
	n, err := sequence(q, "limit")
	if err != nil || n > MaxRows {
		return 0, bad("query.limit", "must be a whole number from 0 to %d", MaxRows)
	}
	return int(n), nil
}

func checkRun(q *api.RunRequest) *fault.Error {
	if q.ID == "" {
		return bad("body.id", "say which wrapper to run")
	}
	return firstOf(object("args", &q.Args), format(q.Format), pages("max_pages", q.MaxPages))
}

func checkTest(q *api.TestRequest) *fault.Error {
	dropNull(&q.Sample) // nothing could be rendered from it
	if err := object("wrapper", &q.Wrapper); err != nil {
		return err
	}
	switch {
	case q.ID == "" && q.Wrapper == nil:
		return bad("body.id", "give the id of a saved wrapper, or a wrapper document")
	case q.ID != "" && q.Wrapper != nil:
		return bad("body.wrapper", "give id or wrapper, not both")
	}
	return firstOf(object("args", &q.Args), format(q.Format), pages("maxPages", q.MaxPages))
}

func checkDerive(q *api.DeriveRequest) *fault.Error {
	if q.URL != "" { // else a null is what the answer is about
		dropNull(&q.Sample)
	}
	const most = 20
	if n := q.MaxFields; n != nil && (*n < 1 || *n > most) {
		return fault.New("DERIVE_MAX_FIELDS", "max_fields is %d, not a whole number from 1 to %d", *n, most).With(fault.Field("body.max_fields"))
	}
	return nil
}

func checkChange(q *api.ChangeRequest) *fault.Error {
	if err := object("wrapper", &q.Wrapper); err != nil {
		return err
	}
	switch q.Action {
	case "create", "update":
		if q.Wrapper == nil {
			return bad("body.wrapper", "%s needs the whole document", q.Action)
		}
	case "delete", "get":
		if q.ID == "" {
			return bad("body.id", "%s needs the id of a wrapper", q.Action)
		}
		if q.Wrapper != nil {
			return bad("body.wrapper", "%s takes no document", q.Action)
		}
	default:
		return bad("body.action", "must be create, update, delete or get")
	}
	return nil
}

// checkApply leaves the documents alone, whatever they are: the backend's words
// about them name where each came from.
func checkApply(q *ApplyRequest) *fault.Error {
	if len(q.Documents) == 0 {
		return bad("body.documents", "give at least one document")
	}
	for i, d := range q.Documents {
		if len(d.Wrapper) == 0 {
			return bad("body.documents["+strconv.Itoa(i)+"].wrapper", "is missing")
		}
		if b, err := hex.DecodeString(d.Seen); err != nil || len(b) != 0 && len(b) != 32 {
			return bad("body.documents["+strconv.Itoa(i)+"].seen", "is no digest")
		}
		if o := d.Origin; (o == nil) != (q.Documents[0].Origin == nil) || o != nil && (o.Kind == "" || o.Operation == "" || d.Seen != "") {
			return bad("body.documents["+strconv.Itoa(i)+"].origin", "must be whole, of every document or of none, and without seen")
		}
	}
	return nil
}

func checkExpose(q *ExposeRequest) *fault.Error {
	const most = 1000
	switch {
	case q.ID == "":
		return bad("body.id", "say which wrapper")
	case q.Priority != nil && (*q.Priority < 0 || *q.Priority > most):
		return bad("body.priority", "is %d, not a whole number from 0 to %d", *q.Priority, most)
	}
	return nil
}

func checkRule(q *AllowRule) *fault.Error {
	if q.Host == "" {
		return bad("body.host", "say which host")
	}
	return nil
}

func checkSetting(q *SettingChange) *fault.Error {
	switch {
	case q.Name == "":
		return bad("body.name", "say which setting")
	case q.Unset && q.Value != "":
		return bad("body.value", "give a value or unset, not both")
	}
	return nil
}

func firstOf(errs ...*fault.Error) *fault.Error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// dropNull makes a null the same as nothing.
func dropNull(v *json.RawMessage) {
	if isNull(*v) {
		*v = nil
	}
}

// object is a member that must be an object, or nothing.
func object(name string, v *json.RawMessage) *fault.Error {
	dropNull(v)
	if *v != nil && (*v)[0] != '{' {
		return bad("body."+name, "must be an object; it is %s", kindOf(*v))
	}
	return nil
}

func format(f string) *fault.Error {
	switch f {
	case "", api.FormatMarkdown, api.FormatJSON, api.FormatBoth:
		return nil
	}
	return fault.New("FORMAT_INVALID", "format is %q", fault.Shorten(f, 40)).With(fault.Field("body.format"))
}

func pages(name string, n *int) *fault.Error {
	if n != nil && (*n < 1 || *n > api.MaxPagesCap) {
		return fault.New("MAX_PAGES_INVALID", "%s is %d, not a whole number from 1 to %d", name, *n, api.MaxPagesCap).With(fault.Field("body." + name))
	}
	return nil
}
