package control

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The paths of what wrappers were before, and of what is suspicious in them.
const (
	pathHistory  = "/control/wrapper/history"
	pathRemoved  = "/control/wrapper/removed"
	pathVersion  = "/control/wrapper/version"
	pathRollback = "/control/wrapper/rollback"
	pathLint     = "/control/wrapper/lint"
)

// WrapperHistory is the versions that are kept of one wrapper, oldest first.
type WrapperHistory struct {
	ID       string           `json:"id"`
	Saved    bool             `json:"saved"`           // false: it was removed, and only its versions are there
	Until    string           `json:"until,omitempty"` // RFC 3339; how long the versions of a removed one are kept
	Versions []WrapperVersion `json:"versions"`
}

// A WrapperVersion is what a wrapper was after one change.
type WrapperVersion struct {
	Version uint64 `json:"version"`          // from 1
	Time    string `json:"time,omitempty"`   // RFC 3339; empty: saved before versions were kept
	Author  string `json:"author,omitempty"` // human, agent; empty: not known
	Action  string `json:"action"`           // saved, removed, damaged
	Current bool   `json:"current"`          // it is what is stored now
	Bytes   int    `json:"bytes"`            // of the document
	SHA256  string `json:"sha256,omitempty"` // of the document, in hex
	Problem string `json:"problem,omitempty"`
	// Wrapper is the document; only in the answer about one version.
	Wrapper json.RawMessage `json:"wrapper,omitempty"`
}

// RemovedWrappers are wrappers that a rollback can bring back, the last one
// removed first.
type RemovedWrappers struct {
	Removed []RemovedWrapper `json:"removed"`
}

// A RemovedWrapper is not there any more, but its versions are.
type RemovedWrapper struct {
	ID    string `json:"id"`
	Time  string `json:"time,omitempty"`  // RFC 3339
	Until string `json:"until,omitempty"` // RFC 3339
}

// RollbackRequest saves an earlier version again.
type RollbackRequest struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
	DryRun  bool   `json:"dryRun,omitempty"`
}

// RollbackResult says what became, or with DryRun would become, of the wrapper.
type RollbackResult struct {
	OK          bool            `json:"ok"`
	DryRun      bool            `json:"dryRun"`
	ID          string          `json:"id"`
	Version     uint64          `json:"version"`          // whose document was taken
	Action      string          `json:"action"`           // created, updated, unchanged
	Before      json.RawMessage `json:"before,omitempty"` // the document that was stored, when it changes
	After       json.RawMessage `json:"after,omitempty"`
	Exposed     bool            `json:"exposed"`               // it is a tool of its own
	Tool        string          `json:"tool,omitempty"`        // its name; not known in a dry run that brings a wrapper back
	Quarantined string          `json:"quarantined,omitempty"` // why no client is shown that tool
	Trusted     bool            `json:"trusted,omitempty"`     // a person has said that this version's writes ask nobody
	Warnings    []api.Warning   `json:"warnings,omitempty"`
	Revision    uint64          `json:"revision"`
}

// LintReport is what is suspicious in wrappers.
type LintReport struct {
	Wrappers []LintedWrapper `json:"wrappers"` // all that were looked at, by id
}

// A LintedWrapper is one wrapper of a LintReport.
type LintedWrapper struct {
	ID       string        `json:"id"`
	Problem  string        `json:"problem,omitempty"` // why it cannot be used at all
	Warnings []api.Warning `json:"warnings"`
}

// Digest is a document's digest as ApplyDocument.Seen has it.
func Digest(sum [32]byte) string { return hex.EncodeToString(sum[:]) }

func (h *handler) history(ctx context.Context, q url.Values) (any, error) {
	id := q.Get("id")
	if id == "" {
		return nil, bad("query.id", "say which wrapper, ?id=ID")
	}
	r, err := h.backend.History(ctx, id)
	if err != nil {
		return nil, err
	}
	c := *r
	c.Versions = filled(r.Versions)
	return &c, nil
}

func (h *handler) removed(ctx context.Context, _ url.Values) (any, error) {
	r, err := h.backend.Removed(ctx)
	if err != nil {
		return nil, err
	}
	return &RemovedWrappers{Removed: filled(r.Removed)}, nil
}

func (h *handler) wrapperVersion(ctx context.Context, q url.Values) (any, error) {
	id := q.Get("id")
	if id == "" {
		return nil, bad("query.id", "say which wrapper, ?id=ID&version=N")
	}
	n, err := sequence(q, "version")
	if err != nil {
		return nil, err
	}
	return h.backend.Version(ctx, id, n)
}

func (h *handler) lint(ctx context.Context, q url.Values) (any, error) {
	r, err := h.backend.Lint(ctx, q.Get("id"))
	if err != nil {
		return nil, err
	}
	c := LintReport{Wrappers: filled(append([]LintedWrapper{}, r.Wrappers...))}
	for i := range c.Wrappers {
		c.Wrappers[i].Warnings = filled(c.Wrappers[i].Warnings)
	}
	return &c, nil
}

func checkRollback(q *RollbackRequest) *fault.Error {
	switch {
	case q.ID == "":
		return bad("body.id", "say which wrapper")
	case q.Version == 0:
		return bad("body.version", "say which version; they count from 1")
	}
	return nil
}

// History lists the versions of a wrapper, without their documents. The error is
// WRAPPER_NOT_FOUND when there is neither the wrapper nor a version of it.
func (c *Client) History(ctx context.Context, id string) (*WrapperHistory, error) {
	return ask[WrapperHistory](ctx, c, pathHistory, url.Values{"id": {id}}, lookTimeout)
}

// Removed lists the wrappers that a rollback can bring back.
func (c *Client) Removed(ctx context.Context) (*RemovedWrappers, error) {
	return ask[RemovedWrappers](ctx, c, pathRemoved, nil, lookTimeout)
}

// Version is one version with its document. The error is WRAPPER_NOT_FOUND,
// VERSION_NOT_FOUND or VERSION_UNREADABLE.
func (c *Client) Version(ctx context.Context, id string, version uint64) (*WrapperVersion, error) {
	return ask[WrapperVersion](ctx, c, pathVersion, url.Values{"id": {id}, "version": {strconv.FormatUint(version, 10)}}, lookTimeout)
}

// Rollback saves an earlier version again, as a new one; of a removed wrapper
// too.
func (c *Client) Rollback(ctx context.Context, q *RollbackRequest) (*RollbackResult, error) {
	return send[RollbackResult](ctx, c, pathRollback, q, changeTimeout)
}

// Lint says what is suspicious in one wrapper, or with "" in all.
func (c *Client) Lint(ctx context.Context, id string) (*LintReport, error) {
	if id == "" {
		return ask[LintReport](ctx, c, pathLint, nil, lookTimeout)
	}
	return ask[LintReport](ctx, c, pathLint, url.Values{"id": {id}}, lookTimeout)
}
