package control

import (
	"context"
	"path/filepath"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const pathBackup = "/control/backup"

// backupTimeout is for a slow disk.
const backupTimeout = time.Hour

// BackupFormat is the only form of a backup so far.
const BackupFormat = 1

// BackupManifest is the name of the file that describes a backup. It is written
// last: a folder without it is no whole backup.
const BackupManifest = "manifest.json"

// BackupRequest says where the daemon is to write a backup.
type BackupRequest struct {
	Dir string `json:"dir"` // absolute; not there yet, or empty
}

// A Backup is what the manifest says of a backup.
type Backup struct {
	Format       int          `json:"format"`
	Version      string       `json:"version"` // of the hbrestd that wrote it
	Time         string       `json:"time"`    // RFC 3339, UTC
	Revision     uint64       `json:"revision"`
	Wrappers     int          `json:"wrappers"`
	Credentials  int          `json:"credentials"`
	Key          string       `json:"key"` // where the key of the credentials is: "file", in the backup, or "keyring"
	AuditRows    uint64       `json:"auditRows"`
	AuditHead    string       `json:"auditHead"`              // "SEQ:HASH" of the newest row in it
	AuditProblem string       `json:"auditProblem,omitempty"` // what did not verify when it was written
	Files        []BackupFile `json:"files"`
}

// A BackupFile is one file of a backup.
type BackupFile struct {
	Name   string `json:"name"` // below the folder, with /
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hex
}

// BackupResult answers a backup that was written.
type BackupResult struct {
	OK  bool   `json:"ok"`
	Dir string `json:"dir"`
	Backup
}

func checkBackup(q *BackupRequest) *fault.Error {
	if !filepath.IsAbs(q.Dir) {
		return bad("body.dir", "must be an absolute path")
	}
	return nil
}

func (h *handler) backup(ctx context.Context, q *BackupRequest) (*BackupResult, error) {
	r, err := h.backend.Backup(ctx, q)
	if err != nil {
		return nil, err
	}
	c := *r
	c.Files = filled(r.Files)
	return &c, nil
}

// Backup writes a copy of what the daemon holds. The error is BAD_REQUEST for a
// folder that cannot be taken, STORE_FAILED, AUDIT_FAILED or BUSY.
func (c *Client) Backup(ctx context.Context, q *BackupRequest) (*BackupResult, error) {
	return send[BackupResult](ctx, c, pathBackup, q, backupTimeout)
}
