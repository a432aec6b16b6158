package shim

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func ptr[T any](v T) *T { return &v }

func TestPresentError(t *testing.T) {
	tests := map[string]struct {
		e    *fault.Error
		want string
	}{
		"plain": {
			&fault.Error{Code: "WRAPPER_NOT_FOUND", Message: "no wrapper a.b", Hint: "Call wrap_list."},
			"WRAPPER_NOT_FOUND: no wrapper a.b\nHint: Call wrap_list.\nRetryable: no",
		},
		"no hint": {&fault.Error{Code: "X", Message: "m", Retryable: true}, "X: m\nRetryable: yes"},
		"status and wait": {
			&fault.Error{Code: "UPSTREAM_RATE_LIMITED", Message: "slow down", Status: 429, Hint: "Wait.", Retryable: true, RetryAfter: 4200 * time.Millisecond},
			"UPSTREAM_RATE_LIMITED (status 429): slow down\nHint: Wait.\nRetryable: yes, after 5 s",
		},
		"a wait without retry says nothing": {&fault.Error{Code: "X", Message: "m", RetryAfter: time.Second}, "X: m\nRetryable: no"},
		"field": {
			&fault.Error{Code: "UPSTREAM_UNPROCESSABLE", Message: "is taken", Status: 422, Field: "upstream:email"},
			"UPSTREAM_UNPROCESSABLE (status 422): is taken\nField: upstream:email\nRetryable: no",
		},
		"field that the message names": {&fault.Error{Code: "X", Message: "args.city: is required", Field: "args.city"}, "X: args.city: is required\nRetryable: no"},
		"details": {
			&fault.Error{Code: "WRAPPER_INVALID", Message: "2 problems", Field: "id", Details: []fault.Detail{
				{Field: "id", Message: "is required"}, {Field: "request.url", Message: "no host", Hint: "https://HOST/"},
			}},
			"WRAPPER_INVALID: 2 problems\nRetryable: no\n- id: is required\n- request.url: no host (https://HOST/)",
		},
		"details that the message repeats": {
			&fault.Error{Code: "WRAPPER_INVALID", Message: "the wrapper has 2 problems: id: is required; url: no h…", Details: []fault.Detail{
				{Field: "id", Message: "is required"}, {Field: "url", Message: "no host"},
			}},
			"WRAPPER_INVALID: the wrapper has 2 problems\nRetryable: no\n- id: is required\n- url: no host",
		},
		"one detail that the message repeats": {
			fault.OneProblem("ARGS_INVALID", "REQUIRED", "args.city", "is required").With(fault.Hint("Fix it.")),
			"ARGS_INVALID: args.city: is required\nHint: Fix it.\nRetryable: no",
		},
		"one detail with a hint of its own": {
			&fault.Error{Code: "WRAPPER_INVALID", Message: `request.method: unknown method "FETCH"`, Field: "request.method", Hint: "Fix it.", Details: []fault.Detail{
				{Field: "request.method", Message: `unknown method "FETCH"`, Hint: "use GET or POST"},
			}},
			"WRAPPER_INVALID: request.method: unknown method \"FETCH\" (use GET or POST)\nHint: Fix it.\nRetryable: no",
		},
		"one detail with the hint of the whole": {
			&fault.Error{Code: "X", Message: "a: is odd", Hint: "Fix it.", Details: []fault.Detail{{Field: "a", Message: "is odd", Hint: "Fix it."}}},
			"X: a: is odd\nHint: Fix it.\nRetryable: no",
		},
		"one detail that the message cuts": {
			&fault.Error{Code: "X", Message: "a: is very o…", Details: []fault.Detail{{Field: "a", Message: "is very odd"}}},
			"X: a: is very odd\nRetryable: no",
		},
		"one detail that the message does not say": {
			&fault.Error{Code: "X", Message: "the recipe cannot be used", Details: []fault.Detail{{Field: "a", Message: "is odd", Hint: "even it"}}},
			"X: the recipe cannot be used\nRetryable: no\n- a: is odd (even it)",
		},
	}
	for name, tt := range tests {
		if d := cmp.Diff(tt.want, presentError(tt.e)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestFooter(t *testing.T) {
	type (
		meta   = api.Meta
		paging = api.Paging
	)
	tests := map[string]struct {
		r    api.RunResult
		want []string
		k    ask
	}{
		"complete": {r: api.RunResult{Meta: meta{Mode: "table", Selected: 3, Rendered: 3}}},
		"redirected": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 3, Rendered: 3}, Request: &api.Request{FinalURL: "https://b.test/v2/items?q=x"}},
			want: []string{"redirected to https://b.test/v2/items?q=x"},
		},
		"complete with pages": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 30, Rendered: 30}, Paging: &paging{Pages: 3, Cap: 10, Items: 30, Stopped: "short_page"}},
			want: []string{"pages 3/10"},
		},
		"item limit": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 137, Rendered: 50, Truncated: true, Reason: "items"}},
			want: []string{"showing 50 of 137 (limits.maxItems of the recipe: wrap_update raises it, at most 1000)"},
		},
		"character limit": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 40, Rendered: 40, Shown: ptr(12), Truncated: true, Reason: "chars"}},
			want: []string{"showing 12 of 40 (limits.maxChars of the recipe: fewer fields or format json get more)"},
		},
		"byte limit": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 40, Rendered: 30, Truncated: true, Reason: "bytes"}},
			want: []string{"showing 30 of 40 (limit of bytes: fewer fields get more)"},
		},
		"first of several": {
			r:    api.RunResult{Meta: meta{Mode: "document", Selected: 3, Rendered: 1, Truncated: true}},
			want: []string{"showing 1 of 3 (mode document shows the first item)"},
		},
		"page limit": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 100, Rendered: 100, Truncated: true}, Paging: &paging{Pages: 10, Cap: 10, Items: 100, More: true, Stopped: "page_cap"}},
			want: []string{"pages 10/10 (+more): raise max_pages, at most 25", "showing 100 of 100+"},
		},
		"page limit at its maximum": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 250, Rendered: 250}, Paging: &paging{Pages: 25, Cap: 25, Items: 250, More: true, Stopped: "page_cap"}},
			want: []string{"pages 25/25 (+more)"},
		},
		"paging not built": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 10, Rendered: 10}, Paging: &paging{Pages: 1, Cap: 10, Items: 10, More: true, Stopped: "page_cap"}},
			want: []string{"pages 1/10 (+more)"},
		},
		"known total": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 30, Rendered: 30}, Paging: &paging{Pages: 3, Cap: 3, Items: 30, Total: ptr(int64(194)), More: true, Stopped: "page_cap"}},
			want: []string{"pages 3/3 (+more): raise max_pages, at most 25", "showing 30 of 194"},
		},
		"later page failed": {
			r: api.RunResult{Meta: meta{Mode: "table", Selected: 20, Rendered: 20, Truncated: true}, Paging: &paging{
				Pages: 2, Cap: 10, Items: 20, More: true, Stopped: "error",
				Error: &api.Short{Code: "UPSTREAM_RATE_LIMITED", Status: 429, Retryable: true},
			}},
			want: []string{"pages 2/10 (+more): page 3 failed: UPSTREAM_RATE_LIMITED (status 429) (retryable)", "showing 20 of 20+"},
		},
		"later page was told to wait": {
			r: api.RunResult{Meta: meta{Mode: "table", Selected: 20, Rendered: 20, Truncated: true}, Paging: &paging{
				Pages: 2, Cap: 10, Items: 20, More: true, Stopped: "error",
				Error: &api.Short{Code: "UPSTREAM_RATE_LIMITED", Status: 429, Retryable: true, RetryAfterMs: 29_001},
			}},
			want: []string{"pages 2/10 (+more): page 3 failed: UPSTREAM_RATE_LIMITED (status 429) (retryable after 30 s)", "showing 20 of 20+"},
		},
		"foreign next page": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 5, Rendered: 5}, Paging: &paging{Pages: 1, Cap: 10, Items: 5, More: true, Stopped: "cross_origin"}},
			want: []string{"pages 1/10 (+more): the next page is on another host and was not fetched"},
		},
		"deadline": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 5, Rendered: 5}, Paging: &paging{Pages: 1, Cap: 10, More: true, Stopped: "deadline"}},
			want: []string{"pages 1/10 (+more): stopped at the call's time limit"},
		},
		"deadline, as the daemon says it": {
			r: api.RunResult{Meta: meta{Mode: "table", Selected: 5, Rendered: 5, Truncated: true}, Paging: &paging{
				Pages: 1, Cap: 10, Items: 5, More: true, Stopped: "deadline", Error: &api.Short{Code: "CALL_DEADLINE", Retryable: true, Message: "the call took longer than 50 s"},
			}},
			want: []string{"pages 1/10 (+more): stopped at the call's time limit", "showing 5 of 5+"},
		},
		"policy": {
			r: api.RunResult{Meta: meta{Mode: "table", Selected: 5, Rendered: 5, Truncated: true}, Paging: &paging{
				Pages: 1, Cap: 10, Items: 5, More: true, Stopped: "policy", Error: &api.Short{Code: "POLICY_SCHEME", Message: "plain http is off"},
			}},
			want: []string{"pages 1/10 (+more): page 2 failed: POLICY_SCHEME: plain http is off", "showing 5 of 5+"},
		},
		"loop": {
			r: api.RunResult{
				Meta: meta{Mode: "table", Selected: 20, Rendered: 20}, Paging: &paging{Pages: 2, Cap: 10, Items: 20, Stopped: "loop"},
				Warnings: []api.Warning{{Field: "response.pagination", Code: "PAGING_NEXT", Message: `two pages in a row are the same: does the API know "skip"?`}},
			},
			want: []string{
				"pages 2/10: stopped because the API repeated a page; this may not be all",
				`warning: response.pagination: two pages in a row are the same: does the API know "skip"?`,
			},
		},
		"max_items": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 137, Rendered: 5, Truncated: true, Reason: "items"}},
			k:    ask{maxItems: ptr(5)},
			want: []string{"showing 5 of 137 (max_items)"},
		},
		"max_items over the recipe's": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 137, Rendered: 50, Truncated: true, Reason: "items"}},
			k:    ask{maxItems: ptr(51)},
			want: []string{"showing 50 of 137 (limits.maxItems of the recipe: wrap_update raises it, at most 1000)"},
		},
		"max_items at the end of a page": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 10, Rendered: 10, Truncated: true, Reason: "items"}, Paging: &paging{Pages: 1, Cap: 10, Items: 10, More: true, Stopped: "item_cap"}},
			k:    ask{maxItems: ptr(10)},
			want: []string{"pages 1/10 (+more): stopped at max_items"},
		},
		"the recipe's items at the end of a page": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 50, Rendered: 50, Truncated: true, Reason: "items"}, Paging: &paging{Pages: 5, Cap: 10, Items: 50, More: true, Stopped: "item_cap"}},
			want: []string{"pages 5/10 (+more): stopped at limits.maxItems of the recipe: wrap_update raises it, at most 1000"},
		},
		"999 items": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 1200, Rendered: 999, Truncated: true, Reason: "items"}},
			want: []string{"showing 999 of 1200 (limits.maxItems of the recipe: wrap_update raises it, at most 1000)"},
		},
		"1000 items, the most there is": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 1200, Rendered: 1000, Truncated: true, Reason: "items"}},
			want: []string{"showing 1000 of 1200 (limits.maxItems of the recipe)"},
		},
		"items inside a page are said once": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 60, Rendered: 50, Truncated: true, Reason: "items"}, Paging: &paging{Pages: 3, Cap: 10, Items: 60, More: true, Stopped: "item_cap"}},
			want: []string{"pages 3/10 (+more)", "showing 50 of 60+ (limits.maxItems of the recipe: wrap_update raises it, at most 1000)"},
		},
		"more pages would not help a text that is cut": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 40, Rendered: 40, Shown: ptr(12), Truncated: true, Reason: "chars"}, Paging: &paging{Pages: 2, Cap: 2, Items: 40, More: true, Stopped: "page_cap"}},
			want: []string{"pages 2/2 (+more)", "showing 12 of 40+ (limits.maxChars of the recipe: fewer fields or format json get more)"},
		},
		"one long document": {
			r:    api.RunResult{Meta: meta{Mode: "document", Selected: 1, Rendered: 1, Truncated: true, Reason: "chars"}},
			want: []string{"cut by limits.maxChars of the recipe: fewer fields or format json get more"},
		},
		"a generated tool has none of these arguments": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 40, Rendered: 40, Shown: ptr(12), Truncated: true, Reason: "chars"}},
			k:    ask{generated: true},
			want: []string{"showing 12 of 40 (limits.maxChars of the recipe: fewer fields of wrap_run or format json get more)"},
		},
		"pages of a generated tool": {
			r:    api.RunResult{Meta: meta{Mode: "table", Selected: 30, Rendered: 30}, Paging: &paging{Pages: 3, Cap: 3, Items: 30, More: true, Stopped: "page_cap"}},
			k:    ask{generated: true},
			want: []string{"pages 3/3 (+more): raise max_pages of wrap_run, at most 25"},
		},
		"indexed":     {r: api.RunResult{Indexed: &api.Indexed{Documents: 4}}, want: []string{"indexed 4 docs"}},
		"indexed one": {r: api.RunResult{Indexed: &api.Indexed{Documents: 1}}, want: []string{"indexed 1 doc"}},
		"index failed": {
			r:    api.RunResult{Indexed: &api.Indexed{Error: &api.Short{Code: "CORTEX_UNAVAILABLE", Retryable: true, Message: "not in this version"}}},
			want: []string{"index failed: CORTEX_UNAVAILABLE: not in this version (retryable)"},
		},
		"indexed in part": {
			r:    api.RunResult{Indexed: &api.Indexed{Documents: 2, Error: &api.Short{Code: "CORTEX_PARTIAL"}}},
			want: []string{"indexed 2 docs; index failed: CORTEX_PARTIAL"},
		},
		"nothing was to be indexed": {
			r:    api.RunResult{Indexed: &api.Indexed{Skipped: "the result is not complete"}},
			want: []string{"not indexed: the result is not complete"},
		},
		"drift and warnings": {
			r: api.RunResult{
				Meta:     meta{Selected: 1, Rendered: 1, EmptyFields: []string{"Rating", "Brand"}, Warnings: []string{"select matched nothing"}},
				Warnings: []api.Warning{{Field: "args.citty", Code: "UNKNOWN_FIELD", Message: "unknown argument args.citty was ignored", Hint: "known: city"}, {Field: "x", Message: "m"}},
			},
			want: []string{
				"empty in every item: Rating, Brand - null, a wrong path, or has the API changed? (wrap_get shows the paths)", "note: select matched nothing",
				"warning: unknown argument args.citty was ignored (known: city)", "warning: x: m",
			},
		},
	}
	for name, tt := range tests {
		if d := cmp.Diff(tt.want, footer(&tt.r, tt.k)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// texts are the text blocks of an answer and its structured part.
func blocks(a *answer) (texts []string, structured string) {
	r := a.result()
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	if r.StructuredContent != nil {
		structured = string(r.StructuredContent.(json.RawMessage))
	}
	return texts, structured
}

// The size of a sample's page is what was asked for, seldom what the API gives.
func TestPresentDerived(t *testing.T) {
	const recipe, next = "{\"select\":\"$\"}\n\n", "Next: check the columns, then wrap_create with this as \"response\"."
	const guess = "paging guess, to add as \"pagination\" if the API pages this way: "
	for _, tt := range []struct{ hint, want string }{
		{"", recipe + next},
		{`{"type":"cursor"}`, recipe + guess + "{\"type\":\"cursor\"}\n" + next},
		{
			`{"type":"offset","pageSize":3}`, recipe + guess + "{\"type\":\"offset\",\"pageSize\":3}\n" +
				"pageSize is only what this sample had: raise it as far as the API is known to allow. It is sent in place of an argument for the same parameter.\n" + next,
		},
	} {
		r := api.DeriveResult{Recipe: json.RawMessage(`{"select":"$"}`), Hints: &api.DeriveHints{Pagination: json.RawMessage(tt.hint)}}
		if d := cmp.Diff(tt.want, presentDerived(&r)); d != "" {
			t.Errorf("%s: %s", tt.hint, d)
		}
	}
}

func TestPresentRun(t *testing.T) {
	cut := func() *api.RunResult {
		return &api.RunResult{
			Status: ptr(200), Markdown: ptr("## A\n\ntext\n"), Records: json.RawMessage(`[{"n":30.00},{"n":1e5}]`),
			Meta: api.Meta{Mode: "table", Selected: 9, Rendered: 2, Truncated: true, Reason: "items"},
		}
	}
	footer := "showing 2 of 9 (limits.maxItems of the recipe: wrap_update raises it, at most 1000)"
	tests := map[string]struct {
		r          *api.RunResult
		format     string
		texts      []string
		structured string
	}{
		"markdown": {cut(), "markdown", []string{"## A\n\ntext\n\n" + footer}, ""},
		"json":     {cut(), "json", []string{`[{"n":30.00},{"n":1e5}]`, footer}, ""},
		"both": {
			cut(), "both",
			[]string{"## A\n\ntext\n\n" + footer},
			`{"records":[{"n":30.00},{"n":1e5}],"meta":{"mode":"table","selected":9,"rendered":2,"truncated":true,"reason":"items"}}`,
		},
		"no content":           {&api.RunResult{Status: ptr(204), Markdown: ptr("")}, "markdown", []string{"No content (status 204)."}, ""},
		"no content of sample": {&api.RunResult{}, "markdown", []string{"No content."}, ""},
		"no records":           {&api.RunResult{Status: ptr(204)}, "json", []string{"[]"}, ""},
		"null records, both": {
			&api.RunResult{Markdown: ptr("x"), Records: json.RawMessage("null"), Paging: &api.Paging{Pages: 1, Cap: 1, Stopped: "end"}, Indexed: &api.Indexed{Documents: 1}}, "both",
			[]string{"x\n\npages 1/1\nindexed 1 doc"},
			`{"records":[],"meta":{"mode":"","selected":0,"rendered":0,"truncated":false},"paging":{"pages":1,"cap":1,"items":0,"more":false,"stopped":"end"},"indexed":{"documents":1}}`,
		},
	}
	for name, tt := range tests {
		texts, structured := blocks(presentRun(tt.r, tt.format, ask{}))
		if d := cmp.Diff(tt.texts, texts); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(tt.structured, structured); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestCapText(t *testing.T) {
	atLimit := strings.Repeat("x", maxText)
	if capText(atLimit) != atLimit {
		t.Error("a text at the limit was cut")
	}
	if got, want := capText(atLimit+"y"), atLimit+"\n\n[cut: the first 1048576 of 1048577 bytes; ask for fewer items or pages]"; got != want {
		t.Errorf("one over: ...%q", got[len(got)-90:])
	}
	// The limit falls into the second é (two bytes each).
	got := capText(strings.Repeat("x", maxText-1) + "éé")
	if !utf8.ValidString(got) || !strings.HasPrefix(got, strings.Repeat("x", maxText-1)+"\n\n[cut: the first 1048575 ") {
		t.Errorf("cut inside a character: ...%q", got[maxText-10:])
	}
	// Whole lines are kept.
	got = capText(strings.Repeat("123456789\n", maxText/10+1))
	if !strings.Contains(got, "123456789\n\n[cut: the first 1048569 of 1048580 bytes") {
		t.Errorf("cut inside a line: ...%q", got[len(got)-100:])
	}
}

func TestCapRecords(t *testing.T) {
	item := `"` + strings.Repeat("r", 1022) + `"` // 1024 bytes
	list := func(n int) json.RawMessage {
		return json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]")
	}
	// n items take 1025 n + 1 bytes: 1023 are 1 048 576, exactly the limit.
	if kept, note := capRecords(list(1023)); note != "" || len(kept) != maxText {
		t.Errorf("at the limit: %d bytes, %q", len(kept), note)
	}
	kept, note := capRecords(list(1024))
	if note != "records: 1023 of 1024 (limit 1048576 bytes)" || len(kept) != maxText || !json.Valid(kept) {
		t.Errorf("one over: %d bytes, %q", len(kept), note)
	}
	// One huge item leaves an empty array, and what follows is not moved up.
	kept, note = capRecords(json.RawMessage(`["` + strings.Repeat("r", maxText) + `",1]`))
	if string(kept) != "[]" || note != "records: 0 of 2 (limit 1048576 bytes)" {
		t.Errorf("huge item: %.20s, %q", kept, note)
	}
}

func TestPresentPlan(t *testing.T) {
	plan := api.Plan{
		Wrapper: api.WrapperRef{ID: "orders.create", Name: "Create order"},
		Args:    json.RawMessage(`{"customer_id": "c1", "n":30.00}`),
		Request: api.Request{
			Method: "POST", URL: "https://api.example.com/v1/orders",
			Headers: json.RawMessage(`{"Content-Type":"application/json","X-Trace":"1","Authorization":"[redacted]"}`),
			Body:    json.RawMessage(`{"customer":"c1", "n":30.00}`),
		},
		Secret: "orders-key", Mutating: true,
	}
	want := `Dry run of orders.create: nothing was sent.

POST https://api.example.com/v1/orders
Content-Type: application/json
X-Trace: 1
Authorization: [redacted]

{"customer":"c1","n":30.00}

args with defaults: {"customer_id":"c1","n":30.00}
credential: orders-key
mutating: yes
Next: wrap_run with the same id and args.`
	if d := cmp.Diff(want, presentPlan(&plan, false)); d != "" {
		t.Error(d)
	}
	for _, tt := range []struct{ body, bodyType, want string }{
		{`"a=x+%26&b=<"`, "form", "a=x+%26&b=<"},
		{`"plain"`, "text", "plain"},
		{`"a=1&b"`, "", `"a=1&b"`}, // JSON: the quotes are sent
	} {
		if got := requestBody(&api.Request{Body: json.RawMessage(tt.body), BodyType: tt.bodyType}); got != tt.want {
			t.Errorf("%s body %s is shown as %s", tt.bodyType, tt.body, got)
		}
	}
	refused := api.Plan{
		Wrapper: api.WrapperRef{ID: "x"}, Args: json.RawMessage(`{}`),
		Request:  api.Request{Method: "GET", URL: "http://127.0.0.1/", Headers: json.RawMessage(`{}`)},
		Refused:  []api.Refusal{{Code: "POLICY_SCHEME", Message: "plain http is off", Hint: "Use https."}},
		Warnings: []api.Warning{{Field: "timeoutMs", Message: "is clipped"}},
	}
	want = `Dry run of x: nothing was sent.

GET http://127.0.0.1/

args with defaults: {}
mutating: no
would be refused: POLICY_SCHEME: plain http is off (Use https.)
warning: timeoutMs: is clipped`
	if d := cmp.Diff(want, presentPlan(&refused, true)); d != "" {
		t.Error(d)
	}
	refused.Refused, refused.Warnings = nil, nil
	if got := presentPlan(&refused, true); !strings.HasSuffix(got, "\nNext: wrap_create with this wrapper.") {
		t.Errorf("unsaved: %q", got)
	}
}
