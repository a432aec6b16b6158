package control

import (
	"context"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The paths of what an import needs from the daemon.
const (
	pathFetch   = "/control/fetch"
	pathOrigins = "/control/origins"
)

// MaxFetch is the most bytes of a document that Fetch reads: GitHub's OpenAPI
// document has 13 MB.
const MaxFetch = 20 << 20

// fetchTimeout covers the daemon's own limit, 60 s, and the way back.
const fetchTimeout = 70 * time.Second

// A FetchRequest asks for a document at an address. It is read under the
// outbound policy, and no credential is sent.
type FetchRequest struct {
	URL string `json:"url"`
}

// A FetchResult is the document, in UTF-8.
type FetchResult struct {
	OK   bool   `json:"ok"`
	Body []byte `json:"body"` // at most MaxFetch bytes
}

// An ImportOrigin is what a wrapper is made from by an import.
type ImportOrigin struct {
	Kind      string `json:"kind"`             // openapi, curl, postman, har
	Source    string `json:"source,omitempty"` // the file or address, without what may be a credential
	Title     string `json:"title,omitempty"`  // of the document
	Operation string `json:"operation"`        // "GET /pets/{id}"
}

// OriginList is the imported wrappers that are saved, by id.
type OriginList struct {
	Origins []ImportedWrapper `json:"origins"`
}

// An ImportedWrapper is a saved wrapper with what it was made from.
type ImportedWrapper struct {
	ID string `json:"id"`
	ImportOrigin
	SHA256 string `json:"sha256"` // of the document as it was imported, in hex
	Edited bool   `json:"edited"` // it is not any more what was imported
}

func origins(l *OriginList, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return &OriginList{Origins: filled(l.Origins)}, nil
}

func checkFetch(q *FetchRequest) *fault.Error {
	if q.URL == "" {
		return bad("body.url", "say which address")
	}
	return nil
}

// Fetch reads a document to import. The error is what the policy, the network or
// the server made of it, or RESPONSE_TOO_LARGE.
func (c *Client) Fetch(ctx context.Context, q *FetchRequest) (*FetchResult, error) {
	return send[FetchResult](ctx, c, pathFetch, q, fetchTimeout)
}

// Origins lists the imported wrappers.
func (c *Client) Origins(ctx context.Context) (*OriginList, error) {
	return ask[OriginList](ctx, c, pathOrigins, nil, lookTimeout)
}
