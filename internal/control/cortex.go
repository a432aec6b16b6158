package control

import (
	"context"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The paths of the index of what wrappers have read.
const (
	pathRecall        = "/control/cortex/search"
	pathCortexStats   = "/control/cortex/stats"
	pathCortexForget  = "/control/cortex/forget"
	pathCortexRebuild = "/control/cortex/rebuild"
)

// CortexStats is what the index holds.
type CortexStats struct {
	Path      string          `json:"path"`
	Documents int             `json:"documents"`
	Chunks    int             `json:"chunks"`
	Bytes     int64           `json:"bytes"`    // of the file
	MaxBytes  int64           `json:"maxBytes"` // above it the oldest documents go
	Oldest    string          `json:"oldest,omitempty"`
	Newest    string          `json:"newest,omitempty"` // RFC 3339, when they were read
	Wrappers  []CortexWrapper `json:"wrappers"`         // by id
	Recovered string          `json:"recovered,omitempty"`
}

// A CortexWrapper is what one wrapper has in the index.
type CortexWrapper struct {
	Wrapper   string `json:"wrapper"`
	Documents int    `json:"documents"`
	Newest    string `json:"newest"`
	Saved     bool   `json:"saved"` // false: the wrapper was removed
}

// CortexForget says what to take out of the index: what fits Wrapper and
// Before, one of which may be empty, or All.
type CortexForget struct {
	Wrapper string `json:"wrapper,omitempty"`
	Before  string `json:"before,omitempty"` // read before then: a day, a time (RFC 3339), or an age such as 30d
	All     bool   `json:"all,omitempty"`
}

// CortexChange answers a change of the index.
type CortexChange struct {
	OK        bool `json:"ok"`
	Documents int  `json:"documents"` // taken out, or kept by a rebuild
}

func (h *handler) recall(ctx context.Context, q *api.RecallRequest) (any, error) {
	r, err := h.backend.Recall(ctx, q)
	if err != nil {
		return nil, err
	}
	c := *r
	c.Documents = filled(r.Documents)
	return &c, nil
}

func cortexStats(s *CortexStats, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c := *s
	c.Wrappers = filled(s.Wrappers)
	return &c, nil
}

func checkRecall(q *api.RecallRequest) *fault.Error {
	switch {
	case q.Query == "":
		return bad("body.query", "say what to search for")
	case q.Limit < 0 || q.Limit > api.RecallMost:
		return bad("body.limit", "is %d, not a whole number from 1 to %d", q.Limit, api.RecallMost)
	}
	return nil
}

func checkCortexForget(q *CortexForget) *fault.Error {
	switch some := q.Wrapper != "" || q.Before != ""; {
	case !some && !q.All:
		return bad("body", "say what to forget: wrapper, before, or all")
	case some && q.All:
		return bad("body.all", "give all, or wrapper and before")
	}
	return nil
}

// Recall searches what wrappers have read before. The error is ARGS_INVALID,
// CORTEX_UNAVAILABLE or CORTEX_TIMEOUT.
func (c *Client) Recall(ctx context.Context, q *api.RecallRequest) (*api.RecallResult, error) {
	return send[api.RecallResult](ctx, c, pathRecall, q, lookTimeout)
}

// CortexStats counts what the index holds. The error is CORTEX_UNAVAILABLE or
// CORTEX_TIMEOUT.
func (c *Client) CortexStats(ctx context.Context) (*CortexStats, error) {
	return ask[CortexStats](ctx, c, pathCortexStats, nil, lookTimeout)
}

// CortexForget takes documents out of the index. The errors are those of
// Recall.
func (c *Client) CortexForget(ctx context.Context, q *CortexForget) (*CortexChange, error) {
	return send[CortexChange](ctx, c, pathCortexForget, q, verifyTimeout)
}

// CortexRebuild writes the index anew from what can be read of it.
func (c *Client) CortexRebuild(ctx context.Context) (*CortexChange, error) {
	return send[CortexChange](ctx, c, pathCortexRebuild, struct{}{}, verifyTimeout)
}
