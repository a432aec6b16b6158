package daemon

import (
	"context"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
)

// CortexStats counts what the index holds.
func (p person) CortexStats(ctx context.Context) (*control.CortexStats, error) {
	ctx, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := p.cortex.Stats(ctx)
	if err != nil {
		return nil, recallFailed(err)
	}
	out := &control.CortexStats{
		Path: s.Path, Documents: s.Pages, Chunks: s.Chunks, Bytes: s.Bytes, MaxBytes: s.MaxBytes,
		Oldest: moment(s.Oldest), Newest: moment(s.Newest), Recovered: s.Recovered,
	}
	for _, w := range s.Wrappers {
		out.Wrappers = append(out.Wrappers, control.CortexWrapper{Wrapper: w.Wrapper, Documents: w.Pages, Newest: moment(w.Newest), Saved: p.has(w.Wrapper)})
	}
	return out, nil
}

// CortexForget takes documents out of the index. It may take longer than a
// call, and ends when its caller goes.
func (p person) CortexForget(ctx context.Context, r *control.CortexForget) (*control.CortexChange, error) {
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	before, err := pointInTime("before", r.Before, p.now())
	if err != nil {
		return nil, err
	}
	n, err := p.cortex.Forget(ctx, cortex.Filter{Wrapper: r.Wrapper, Before: before, All: r.All})
	if n > 0 {
		p.log.Info("documents forgotten", "wrapper", r.Wrapper, "before", moment(before), "all", r.All, "documents", n)
	}
	if err != nil {
		return nil, recallFailed(err)
	}
	return &control.CortexChange{OK: true, Documents: n}, nil
}

// CortexRebuild writes the index anew. It may take longer than a call, and ends
// when its caller goes.
func (p person) CortexRebuild(ctx context.Context) (*control.CortexChange, error) {
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	n, err := p.cortex.Rebuild(ctx)
	if err != nil {
		return nil, recallFailed(err)
	}
	p.log.Info("index rebuilt", "documents", n)
	return &control.CortexChange{OK: true, Documents: n}, nil
}
