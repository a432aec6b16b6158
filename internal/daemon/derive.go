package daemon

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// deriveTimeout bounds the one request of a derive by URL.
const deriveTimeout = 15 * time.Second

// Derive makes a first recipe from a sample or from a URL, which is fetched
// under the same policy as any wrapper and never with a credential.
func (d *Daemon) Derive(ctx context.Context, r *api.DeriveRequest) (*api.DeriveResult, error) {
	ctx, done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	hasSample := len(r.Sample) > 0
	if hasSample == (r.URL != "") {
		return nil, fault.New("DERIVE_NO_INPUT", "send either sample or url").With(fault.Field("body.sample"))
	}
	n := 0
	if r.MaxFields != nil {
		if n = *r.MaxFields; n < 1 || n > 20 {
			return nil, fault.New("DERIVE_MAX_FIELDS", "max_fields is %d", n).With(fault.Field("body.max_fields"))
		}
	}
	var v recipe.Value
	source := "sample"
	if hasSample {
		v, err = deriveSample(r.Sample)
	} else {
		source = r.URL
		if v, err = d.fetch(ctx, r.URL); err != nil {
			err = aboutURL(err)
		}
	}
	if err != nil {
		return nil, err
	}
	rec, notes := recipe.Derive(v, recipe.DeriveOptions{MaxFields: n, Name: r.Name, Skip: redact.CredentialKey})
	if rec == nil {
		return nil, nothing(hasSample, notes)
	}
	out := &api.DeriveResult{OK: true, Source: source, Recipe: recipe.Encode(rec.Document())}
	for _, note := range notes {
		if note.Code == "paging_hint" {
			out.Hints = &api.DeriveHints{Pagination: json.RawMessage(note.Message)}
			continue
		}
		out.Warnings = append(out.Warnings, note.Message)
	}
	return out, nil
}

// nothing says why no recipe could be made.
func nothing(hasSample bool, notes []recipe.Note) *fault.Error {
	field, why := "body.url", "there is nothing to show in it"
	if hasSample {
		field = "body.sample"
	}
	for _, note := range notes {
		if note.Code != "paging_hint" {
			why = note.Message
		}
	}
	return fault.New("DERIVE_NOTHING", "no recipe could be made: %s", why).With(fault.Field(field))
}

func deriveSample(raw []byte) (recipe.Value, error) {
	v, err := recipe.Decode(raw, recipe.DecodeLimits{})
	if s, isString := v.(string); err == nil && isString {
		v, err = recipe.Decode([]byte(s), recipe.DecodeLimits{})
	}
	if err != nil {
		return nil, fault.New("DERIVE_SAMPLE_NOT_JSON", "the sample is not usable: %v", err).With(fault.Field("body.sample"))
	}
	return v, nil
}

// urlHints are what is said where the usual words are about a wrapper and its
// arguments: a derive has neither.
var urlHints = map[fault.Code]string{
	"POLICY_URL":               "Fix the url.",
	"POLICY_REDIRECT":          "Send the url that the redirects lead to, if it is one that may be called.",
	"POLICY_REQUEST_TOO_LARGE": "Send a shorter url.",
	"AUTH_REQUIRED":            "The API wants a credential, and none is sent here: send a sample of its answer instead.",
	"UPSTREAM_BAD_REQUEST":     "Compare the url with the API's documentation, or send a sample of its answer instead.",
	"UPSTREAM_FORBIDDEN":       "The API refuses callers without a credential, or everyone: send a sample of its answer instead.",
	"UPSTREAM_NOT_FOUND":       "Check the url; the endpoint may have moved.",
	"UPSTREAM_METHOD":          "The API does not offer GET there: send a sample of its answer instead.",
	"UPSTREAM_NOT_ACCEPTABLE":  "The API offers no JSON there: check the url.",
	"UPSTREAM_CONFLICT":        "Send a sample of the answer instead.",
	"UPSTREAM_UNPROCESSABLE":   "Change what the API's message names in the url, or send a sample of its answer instead.",
	"UPSTREAM_RATE_LIMITED":    "Wait, then repeat the call; or send a sample of the answer instead.",
	"UPSTREAM_CLIENT_ERROR":    "Compare the url with the API's documentation, or send a sample of its answer instead.",
	"UPSTREAM_REDIRECT":        "Send the url that the redirect leads to.",
	"UPSTREAM_TIMEOUT":         "Repeat the call later, ask for less in the url, or send a sample of the answer instead.",
	"UPSTREAM_DNS":             "Check the host in the url, or this machine's network connection.",
	"UPSTREAM_CONNECT":         "Check that the API is up, and the host and port in the url; then repeat the call.",
	"UPSTREAM_TLS":             "Check the API's certificate, or the host in the url.",
	"UPSTREAM_PROTOCOL":        "Check the scheme and port in the url.",
	"CALL_DEADLINE":            "Repeat the call later, or send a sample of the answer instead.",
}

// aboutURL says where the fault of fetching a url sits, and what to do without
// a wrapper.
func aboutURL(err error) error {
	f := fault.From(err)
	if f.Code == "INTERNAL" || f.Code == "CALL_CANCELLED" || f.Code == "AUDIT_FAILED" || f.Code == "BUSY" {
		return f
	}
	if !strings.HasPrefix(f.Field, "upstream:") { // the API named the place itself
		f.With(fault.Field("body.url"))
	}
	if hint, ok := urlHints[f.Code]; ok {
		f.With(fault.Hint("%s", hint))
	}
	return f
}

func (d *Daemon) fetch(ctx context.Context, text string) (recipe.Value, error) {
	st := d.state.Load()
	u, err := url.Parse(text)
	if err != nil {
		return nil, fault.New("POLICY_URL", "the url cannot be read").With(fault.Cause(err))
	}
	if err := st.policy().CheckURL(u); err != nil {
		return nil, err
	}
	req := outbound.NewRequest("GET", u, nil)
	req.Header.Set("Accept", "application/json")
	req.Timeout = deriveTimeout
	req.Tag = outbound.Tag{Kind: "derive", Call: newCall()}
	var v recipe.Value
	var f *fault.Error
	req.Judge = func(resp *outbound.Response) fault.Code {
		if f = executor.StatusFault("GET", resp, d.now()); f == nil {
			v, f = executor.Decode(resp)
		}
		if f != nil {
			return f.Code
		}
		return ""
	}
	if _, err := st.out.Send(ctx, req); err != nil {
		return nil, err
	}
	if f != nil {
		return nil, f
	}
	return v, nil
}
