package shim

import (
	"context"
	"encoding/json"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// maxQuery is how many bytes of a query go into a URL, whose length the bridge
// bounds. What a longer one finds is looked up here.
const maxQuery = 2000

// The methods below are the ten tools: read the arguments, ask the daemon,
// present what it said.

func (s *Server) list(ctx context.Context, a *arguments) (*answer, error) {
	query, err := a.text("query")
	if err != nil {
		return nil, err
	}
	limit, err := a.whole("limit")
	if err != nil {
		return nil, err
	}
	n := 100
	if limit != nil {
		if n = *limit; n < 1 || n > 1000 {
			return nil, badArgument("limit", "limit must be a whole number from 1 to 1000, not %d", n).With(fault.Hint("Use 1 to 1000."))
		}
	}
	q := &api.ManifestQuery{Query: query, Limit: n}
	if len(query) > maxQuery {
		q = &api.ManifestQuery{}
	}
	m, err := s.client.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	marks := s.listMarks(ctx, m)
	if m.Total == 0 { // it is all of them, or there are none
		return textAnswer(presentList(m.Wrappers, marks, query, n)), nil
	}
	return textAnswer(presentFound(m, marks, query)), nil
}

func (s *Server) get(ctx context.Context, a *arguments) (*answer, error) {
	id, err := a.required("id")
	if err != nil {
		return nil, err
	}
	doc, err := s.client.Wrapper(ctx, id)
	if err != nil {
		return nil, err
	}
	return textAnswer(compact(doc)), nil
}

func (s *Server) secretList(ctx context.Context, _ *arguments) (*answer, error) {
	l, err := s.client.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	return textAnswer(presentSecrets(l)), nil
}

func (s *Server) derive(ctx context.Context, a *arguments) (*answer, error) {
	req := &api.DeriveRequest{Sample: a.sample()}
	err := a.texts(map[string]*string{"url": &req.URL, "id": &req.ID, "name": &req.Name, "description": &req.Description})
	if err == nil {
		req.MaxFields, err = a.whole("max_fields")
	}
	if err != nil {
		return nil, err
	}
	r, err := s.client.Derive(ctx, req)
	if err != nil {
		return nil, err
	}
	return textAnswer(presentDerived(r)), nil
}

func (s *Server) create(ctx context.Context, a *arguments) (*answer, error) {
	return s.save(ctx, a, "create", "Created")
}

func (s *Server) update(ctx context.Context, a *arguments) (*answer, error) {
	return s.save(ctx, a, "update", "Replaced")
}

func (s *Server) save(ctx context.Context, a *arguments, action, done string) (*answer, error) {
	req := &api.ChangeRequest{Action: action}
	var err error
	if req.Wrapper, err = a.object("wrapper"); err != nil {
		return nil, err
	}
	if req.Wrapper == nil {
		return nil, badArgument("wrapper", "%s needs wrapper", a.tool.name).With(fault.Hint("%s", a.tool.known()))
	}
	if req.ID, err = a.text("id"); err != nil {
		return nil, err
	}
	r, err := s.client.Change(ctx, req)
	if err != nil {
		return nil, err
	}
	wants, indexing := wantsTool(r.Wrapper)
	return textAnswer(presentSaved(r, done, s.toolNote(s.changed(ctx, r, wants, indexing), r))), nil
}

func (s *Server) remove(ctx context.Context, a *arguments) (*answer, error) {
	id, err := a.required("id")
	if err != nil {
		return nil, err
	}
	r, err := s.client.Change(ctx, &api.ChangeRequest{Action: "delete", ID: id})
	if err != nil {
		return nil, err
	}
	s.changed(ctx, r, false, false)
	return textAnswer(presentDeleted(r)), nil
}

func (s *Server) run(ctx context.Context, a *arguments) (*answer, error) {
	req := &api.RunRequest{}
	var err error
	if req.ID, err = a.required("id"); err != nil {
		return nil, err
	}
	if req.Args, err = a.object("args"); err != nil {
		return nil, err
	}
	if req.Format, err = a.format(); err != nil {
		return nil, err
	}
	if req.MaxPages, err = a.whole("max_pages"); err != nil {
		return nil, err
	}
	if req.MaxItems, err = a.whole("max_items"); err != nil {
		return nil, err
	}
	if req.Fields, err = a.list("fields"); err != nil {
		return nil, err
	}
	r, err := s.client.Run(ctx, req)
	if err != nil {
		return nil, err
	}
	return presentRun(r, req.Format, ask{maxItems: req.MaxItems}), nil
}

func (s *Server) test(ctx context.Context, a *arguments) (*answer, error) {
	req := &api.TestRequest{Sample: a.sample()}
	var err error
	if req.ID, err = a.text("id"); err != nil {
		return nil, err
	}
	if req.Wrapper, err = a.object("wrapper"); err != nil {
		return nil, err
	}
	if req.Args, err = a.object("args"); err != nil {
		return nil, err
	}
	if req.DryRun, err = a.flag("dryRun"); err != nil {
		return nil, err
	}
	if req.Format, err = a.format(); err != nil {
		return nil, err
	}
	if req.MaxPages, err = a.whole("maxPages"); err != nil {
		return nil, err
	}
	if req.MaxItems, err = a.whole("maxItems"); err != nil {
		return nil, err
	}
	if req.Fields, err = a.list("fields"); err != nil {
		return nil, err
	}
	r, err := s.client.Test(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case r.Plan != nil:
		return textAnswer(presentPlan(r.Plan, req.Wrapper != nil)), nil
	}
	return presentRun(r.Run, req.Format, ask{maxItems: req.MaxItems}), nil
}

func (s *Server) reload(ctx context.Context, _ *arguments) (*answer, error) {
	m, err := s.manifest(ctx)
	if err != nil {
		return nil, err
	}
	return textAnswer(presentReload(m, s.marks(m.Wrappers))), nil
}

// wantsTool reads of a stored document what changes the list of tools.
func wantsTool(doc json.RawMessage) (tool, indexing bool) {
	var w struct {
		ExposeAsTool bool
		Response     struct{ Index string }
	}
	err := json.Unmarshal(doc, &w)
	return err == nil && w.ExposeAsTool, err == nil && w.Response.Index != ""
}

// sample is any JSON value, as it came. An empty string is how some models
// leave out an optional string.
func (a *arguments) sample() json.RawMessage {
	if raw := a.members["sample"]; string(raw) != `""` {
		return raw
	}
	return nil
}

// texts reads several string members at once.
func (a *arguments) texts(into map[string]*string) error {
	for _, name := range a.tool.args {
		p, ok := into[name]
		if !ok {
			continue
		}
		var err error
		if *p, err = a.text(name); err != nil {
			return err
		}
	}
	return nil
}

// format is the format argument, by default Markdown. Its values are the
// bridge's to judge.
func (a *arguments) format() (string, error) {
	f, err := a.text("format")
	if f == "" {
		f = api.FormatMarkdown
	}
	return f, err
}
