package control

import (
	"context"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// A statusOnly is a backend for tests that need little of it.
type statusOnly struct {
	Backend
	timeout int64
}

func (s *statusOnly) Status(context.Context) (*api.Status, error) {
	return &api.Status{OK: true, CallTimeout: s.timeout}, nil
}

func (s *statusOnly) AuditHead(context.Context) (*AuditHead, error) {
	return &AuditHead{Seq: 3, Hash: "ab", Head: "3:ab"}, nil
}
