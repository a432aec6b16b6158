package control

import (
	"context"
	"net/url"
	"slices"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The paths of approvals. What changes something is a POST.
const (
	pathApprovals        = "/control/approvals"
	pathApproval         = "/control/approval"
	pathApprovalAnswer   = "/control/approval/answer"
	pathApprovalPolicies = "/control/approval/policies"
	pathApprovalPolicy   = "/control/approval/policy"
)

// ApprovalList is the questions that wait for a person, and those whose answer
// has not been used or has not ended yet, oldest first.
type ApprovalList struct {
	Revision  uint64     `json:"revision"` // to wait for the next change
	Approvals []Approval `json:"approvals"`
}

// An Approval is the question whether one exact request may be sent. In a list
// it comes without headers and body.
type Approval struct {
	ID      string `json:"id"`
	State   string `json:"state"`   // pending, allowed, denied, used, expired
	Policy  string `json:"policy"`  // first or always: what allowing it once covers; off when nobody is asked any more
	Wrapper string `json:"wrapper"` // id
	Name    string `json:"name"`
	// Version says how the document of the question stands to the saved wrapper:
	// "saved" it is that, "other" that is another version now, "unsaved" there is
	// no wrapper of this id.
	Version  string `json:"version"`
	Document string `json:"document"` // SHA-256 of the document, in hex

	Method     string   `json:"method"`
	URL        string   `json:"url"` // credential-shaped values masked, as in headers
	Headers    []string `json:"headers,omitempty"`
	Body       string   `json:"body,omitempty"` // as it would be sent
	BodyType   string   `json:"bodyType,omitempty"`
	Credential string   `json:"credential,omitempty"` // its name
	Pages      int      `json:"pages"`                // requests that the call may send at most

	Asked   string `json:"asked"`             // RFC 3339
	Expires string `json:"expires,omitempty"` // when the question, or its answer, ends by itself
	Waiting int    `json:"waiting"`           // calls that wait at this moment
}

// The answers to an Approval.
const (
	AnswerAllow = "allow" // what it covers is the policy's to say
	AnswerTrust = "trust" // every request of this version of the wrapper, for good
	AnswerDeny  = "deny"
)

// ApprovalAnswer answers a question.
type ApprovalAnswer struct {
	ID     string `json:"id"`
	Answer string `json:"answer"`
}

// ApprovalPolicies is what holds for whom.
type ApprovalPolicies struct {
	Policy   string            `json:"policy"`   // the daemon's: off, first, always
	Origin   string            `json:"origin"`   // environment, stored, default
	Variable string            `json:"variable"` // HB_WRAP_APPROVAL
	Wrappers []WrapperApproval `json:"wrappers"` // those with a policy of their own, or trusted
}

// A WrapperApproval is what a person has said about one wrapper.
type WrapperApproval struct {
	Wrapper string `json:"wrapper"`
	Policy  string `json:"policy,omitempty"` // its own; empty: the daemon's holds
	Holds   string `json:"holds"`            // what holds for the saved version now
	// Edited: the policy asks less than the daemon's, and the wrapper has been
	// edited since it was set, so that the daemon's holds.
	Edited  bool `json:"edited,omitempty"`
	Trusted bool `json:"trusted,omitempty"` // the saved version is trusted: its writes ask nobody
	Stale   bool `json:"stale,omitempty"`   // only versions that are not the saved one are trusted
	Damaged bool `json:"damaged,omitempty"` // its policy cannot be read and counts as always
}

// ApprovalPolicyChange sets a policy, of one wrapper or of the daemon. It takes
// back the trust and the answers that a wrapper has.
type ApprovalPolicyChange struct {
	Wrapper string `json:"wrapper,omitempty"` // id; empty: the daemon's
	Policy  string `json:"policy"`            // off, first, always, default
}

func (h *handler) approvals(ctx context.Context, q url.Values) (any, error) {
	after, err := sequence(q, "after")
	if err != nil {
		return nil, err
	}
	l, err := h.backend.Approvals(ctx, after)
	if err != nil {
		return nil, err
	}
	c := *l // the backend may share l
	c.Approvals = filled(slices.Clone(l.Approvals))
	for i := range c.Approvals {
		c.Approvals[i].Headers, c.Approvals[i].Body = nil, ""
	}
	return &c, nil
}

func (h *handler) approval(ctx context.Context, q url.Values) (any, error) {
	id := q.Get("id")
	if id == "" {
		return nil, bad("query.id", "say which question, ?id=ID")
	}
	return h.backend.Approval(ctx, id)
}

func approvalPolicies(p *ApprovalPolicies, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c := *p
	c.Wrappers = filled(p.Wrappers)
	return &c, nil
}

func checkApprovalAnswer(q *ApprovalAnswer) *fault.Error {
	switch {
	case q.ID == "":
		return bad("body.id", "say which question")
	case q.Answer != AnswerAllow && q.Answer != AnswerTrust && q.Answer != AnswerDeny:
		return bad("body.answer", "must be allow, trust or deny")
	}
	return nil
}

func checkApprovalPolicy(q *ApprovalPolicyChange) *fault.Error {
	switch q.Policy {
	case "off", "first", "always", "default":
		return nil
	}
	return bad("body.policy", "must be off, first, always or default")
}

// Approvals lists the questions. When after is the current revision, it waits
// for the next change, for a while.
func (c *Client) Approvals(ctx context.Context, after uint64) (*ApprovalList, error) {
	if after == 0 {
		return ask[ApprovalList](ctx, c, pathApprovals, nil, lookTimeout)
	}
	return ask[ApprovalList](ctx, c, pathApprovals, url.Values{"after": {number(after)}}, waitTimeout)
}

// Approval is one question with its whole request. The error is
// APPROVAL_NOT_FOUND.
func (c *Client) Approval(ctx context.Context, id string) (*Approval, error) {
	return ask[Approval](ctx, c, pathApproval, url.Values{"id": {id}}, lookTimeout)
}

// Answer answers a question and returns it as it is then. The error is
// APPROVAL_NOT_FOUND, or APPROVAL_EXPIRED when nothing can be answered any more.
func (c *Client) Answer(ctx context.Context, q *ApprovalAnswer) (*Approval, error) {
	return send[Approval](ctx, c, pathApprovalAnswer, q, changeTimeout)
}

// ApprovalPolicies lists what holds for whom.
func (c *Client) ApprovalPolicies(ctx context.Context) (*ApprovalPolicies, error) {
	return ask[ApprovalPolicies](ctx, c, pathApprovalPolicies, nil, lookTimeout)
}

// SetApprovalPolicy sets a policy.
func (c *Client) SetApprovalPolicy(ctx context.Context, q *ApprovalPolicyChange) (*ApprovalPolicies, error) {
	return send[ApprovalPolicies](ctx, c, pathApprovalPolicy, q, changeTimeout)
}
