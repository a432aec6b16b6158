// Package control is the person's face of hbrestd: HTTP over a local socket
// that only its owner can open (a unix socket of mode 0600 in a directory of
// mode 0700 whose peer's user id is checked at accept; on Windows a named pipe
// that only the user's own SID may open).
//
// It is where things happen that an agent must not be able to do. It never
// listens on TCP, and shares no code with the bridge but the wire types. Start
// with [Backend] for what a person can do, [Serve] for the daemon's side and
// [Client] for the commands' side.
package control

import (
	"context"
	"encoding/json"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// Backend is everything that a person can do with the running daemon.
type Backend interface {
	// The use cases that agents have too.
	Status(context.Context) (*api.Status, error)
	Manifest(ctx context.Context, after uint64) (*api.Manifest, error)
	Wrapper(ctx context.Context, id string) (json.RawMessage, error)
	Secrets(context.Context) (*api.SecretList, error)
	Run(context.Context, *api.RunRequest) (*api.RunResult, error)
	Test(context.Context, *api.TestRequest) (*api.TestResult, error)
	Derive(context.Context, *api.DeriveRequest) (*api.DeriveResult, error)
	Change(context.Context, *api.ChangeRequest) (*api.ChangeResult, error)
	Recall(context.Context, *api.RecallRequest) (*api.RecallResult, error)
	Audit(ctx context.Context, limit int) (*api.AuditPage, error)

	// What only a person may do.
	Apply(context.Context, *ApplyRequest) (*ApplyResult, error)
	Expose(context.Context, *ExposeRequest) (*ExposeResult, error)
	History(ctx context.Context, id string) (*WrapperHistory, error)
	Removed(context.Context) (*RemovedWrappers, error)
	Version(ctx context.Context, id string, version uint64) (*WrapperVersion, error)
	Rollback(context.Context, *RollbackRequest) (*RollbackResult, error)
	Lint(ctx context.Context, id string) (*LintReport, error) // "": all
	Allowed(context.Context) (*AllowList, error)
	Allow(context.Context, *AllowRule) (*AllowList, error)
	Disallow(context.Context, *AllowRule) (*AllowList, error)
	Settings(context.Context) (*SettingList, error)
	SetSetting(context.Context, *SettingChange) (*SettingList, error)
	AuditFollow(ctx context.Context, after uint64, limit int) (*api.AuditPage, error)
	AuditVerify(context.Context, *AuditVerifyRequest) (*AuditReport, error)
	AuditHead(context.Context) (*AuditHead, error)
	SecretState(context.Context) (*SecretState, error)
	CheckSecret(context.Context, *SecretPut) (*SecretResult, error) // the call has no values
	PutSecret(context.Context, *SecretPut) (*SecretResult, error)
	BindSecret(context.Context, *SecretBind) (*SecretResult, error)
	DeleteSecret(context.Context, *SecretName) (*SecretResult, error)
	TestSecret(context.Context, *SecretTest) (*api.RunResult, error)
	Approvals(ctx context.Context, after uint64) (*ApprovalList, error)
	Approval(ctx context.Context, id string) (*Approval, error)
	Answer(context.Context, *ApprovalAnswer) (*Approval, error)
	ApprovalPolicies(context.Context) (*ApprovalPolicies, error)
	SetApprovalPolicy(context.Context, *ApprovalPolicyChange) (*ApprovalPolicies, error)
	CortexStats(context.Context) (*CortexStats, error)
	CortexForget(context.Context, *CortexForget) (*CortexChange, error)
	CortexRebuild(context.Context) (*CortexChange, error)
	Fetch(context.Context, *FetchRequest) (*FetchResult, error)
	Origins(context.Context) (*OriginList, error)
	Backup(context.Context, *BackupRequest) (*BackupResult, error)
	Reload(context.Context) (*ReloadResult, error)
	Stop(context.Context) error
}

// ApplyRequest saves many wrappers in one transaction: all or nothing.
type ApplyRequest struct {
	Documents []ApplyDocument `json:"documents"` // at most 1000
	DryRun    bool            `json:"dryRun,omitempty"`
}

// An ApplyDocument is one wrapper with the name of the place it came from, for
// messages.
type ApplyDocument struct {
	Source  string          `json:"source"` // "orders.json", "-", "orders.json[2]"
	Wrapper json.RawMessage `json:"wrapper"`
	// Seen is the Digest of the stored document that this one was made from:
	// refuse when another one is stored now. Empty: whatever is stored.
	Seen string `json:"seen,omitempty"`
	// Origin makes it an import: it overwrites no wrapper that was not imported,
	// or that was edited since, and changes no wrapper's exposure. Every document
	// of a request has one, without Seen, or none has.
	Origin *ImportOrigin `json:"origin,omitempty"`
}

// ApplyResult says what was, or with DryRun would be, changed.
type ApplyResult struct {
	OK       bool          `json:"ok"`
	DryRun   bool          `json:"dryRun"`
	Revision uint64        `json:"revision"`
	Changes  []ApplyChange `json:"changes"` // in the order of the documents
}

// An ApplyChange is what becomes of one document.
type ApplyChange struct {
	Source   string          `json:"source"`
	ID       string          `json:"id"`
	Action   string          `json:"action"`           // created, updated, unchanged
	Before   json.RawMessage `json:"before,omitempty"` // the stored document, when it changes
	After    json.RawMessage `json:"after,omitempty"`  // the normalised document, when it changes
	Warnings []api.Warning   `json:"warnings,omitempty"`
}

// ExposeRequest turns a wrapper into a tool of its own, or back.
type ExposeRequest struct {
	ID       string `json:"id"`
	Hide     bool   `json:"hide,omitempty"`
	Priority *int   `json:"priority,omitempty"` // 0 to 1000, higher first under the cap; nil keeps it
}

// ExposeResult is the state afterwards.
type ExposeResult struct {
	OK          bool   `json:"ok"`
	ID          string `json:"id"`
	Exposed     bool   `json:"exposed"`
	Tool        string `json:"tool,omitempty"`
	Priority    int    `json:"priority"`
	Rank        int    `json:"rank,omitempty"` // 1 is first; shown as a tool when within the client's cap
	Quarantined string `json:"quarantined,omitempty"`
	Revision    uint64 `json:"revision"`
}

// An AllowRule lets one name be reached although it is private (decision 10).
type AllowRule struct {
	Host string `json:"host"`           // canonical
	Port string `json:"port,omitempty"` // "": any
	HTTP bool   `json:"http,omitempty"` // plain http too
}

// AllowList is every rule.
type AllowList struct {
	Rules []AllowRule `json:"rules"`
}

// SettingList is every setting with where its value comes from.
type SettingList struct {
	Settings []Setting `json:"settings"`
}

// A Setting of the daemon. Precedence: flag, environment, stored, default.
type Setting struct {
	Name        string `json:"name"` // "allow-private"
	Value       string `json:"value"`
	Origin      string `json:"origin"`           // environment, stored, default
	Stored      string `json:"stored,omitempty"` // the stored value, also when another one wins
	Default     string `json:"default"`
	Variable    string `json:"variable"`              // HB_WRAP_ALLOW_PRIVATE
	NeedsStart  bool   `json:"needsRestart"`          // takes effect at the next start
	Pending     bool   `json:"pending,omitempty"`     // stored, but not in effect before the next start
	Description string `json:"description,omitempty"` // one line
}

// SettingChange stores a value; Unset forgets the stored one.
type SettingChange struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Unset bool   `json:"unset,omitempty"`
}

// AuditVerifyRequest may name a head that was noted elsewhere.
type AuditVerifyRequest struct {
	Head string `json:"head,omitempty"` // "SEQ:HASH" as `hbrestd audit head` prints it
}

// AuditReport is the verdict on the chain.
type AuditReport struct {
	OK       bool   `json:"ok"`
	Rows     uint64 `json:"rows"`
	First    uint64 `json:"first,omitempty"` // sequence of the oldest row kept
	Head     string `json:"head"`            // "SEQ:HASH"
	BadSeq   uint64 `json:"badSeq,omitempty"`
	Problem  string `json:"problem,omitempty"` // what is wrong, for a person
	HeadSeen bool   `json:"headSeen,omitempty"`
	// Recovered is the newest row that says that a damaged file was set aside.
	Recovered uint64 `json:"recovered,omitempty"`
}

// AuditHead is the end of the chain, to be noted elsewhere.
type AuditHead struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"` // hex
	Head string `json:"head"` // "SEQ:HASH"
}

// ReloadResult answers a reload.
type ReloadResult struct {
	OK       bool   `json:"ok"`
	Revision uint64 `json:"revision"`
	Wrappers int    `json:"wrappers"`
	Damaged  int    `json:"damaged"`
}
