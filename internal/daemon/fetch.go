package daemon

import (
	"context"
	"net/url"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// Fetch reads a document to import, under the same policy as any wrapper and
// never with a credential. Its limit of size is its own.
func (p person) Fetch(ctx context.Context, r *control.FetchRequest) (*control.FetchResult, error) {
	ctx, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	body, err := p.document(ctx, r.URL)
	if err != nil {
		return nil, aboutDocument(err)
	}
	return &control.FetchResult{OK: true, Body: body}, nil
}

func (d *Daemon) document(ctx context.Context, text string) ([]byte, error) {
	u, err := url.Parse(text)
	if err != nil { // it quotes the address, which may hold a credential
		return nil, fault.New("POLICY_URL", "the url cannot be read")
	}
	// Of its own: another limit is another policy. It lives for one request.
	policy := d.state.Load().policy()
	policy.MaxBytes = control.MaxFetch
	out := outbound.New(policy, d.surroundings())
	defer out.Close()
	if err := policy.CheckURL(u); err != nil {
		return nil, err
	}
	req := outbound.NewRequest("GET", u, nil)
	req.Header.Set("Accept", "application/json, application/yaml, text/yaml, */*;q=0.5")
	req.Timeout = outbound.MaxTimeout
	req.Tag = outbound.Tag{Kind: "import", Call: newCall()}
	var body []byte
	var f *fault.Error
	req.Judge = func(resp *outbound.Response) fault.Code {
		if f = executor.StatusFault("GET", resp, d.now()); f != nil {
			return f.Code
		}
		text, err := resp.UTF8()
		if err != nil {
			f = fault.From(err)
			return f.Code
		}
		body = text
		return ""
	}
	if _, err := out.Send(ctx, req); err != nil {
		return nil, err
	}
	if f != nil {
		return nil, f
	}
	return body, nil
}

// aboutDocument says what to do where the usual words are about a derive.
func aboutDocument(err error) error {
	f := fault.From(aboutURL(err))
	if f.Code == "RESPONSE_TOO_LARGE" || strings.Contains(f.Hint, "sample") {
		f.With(fault.Hint("Save the document to a file yourself, and import the file."))
	}
	return f
}

// Origins lists the imported wrappers that are saved.
func (p person) Origins(context.Context) (*control.OriginList, error) {
	list, err := p.store.Origins()
	if err != nil {
		return nil, err
	}
	out := &control.OriginList{}
	for _, o := range list {
		out.Origins = append(out.Origins, control.ImportedWrapper{
			ID: o.ID, SHA256: control.Digest(o.Doc), Edited: o.Edited,
			ImportOrigin: control.ImportOrigin{Kind: o.Kind, Source: o.Source, Title: o.Title, Operation: o.Operation},
		})
	}
	return out, nil
}
