package api

// An AuditRow is one outbound exchange or one change by a person: what was
// asked of which host and how it ended. Never headers, bodies, query strings,
// paths or credential names.
type AuditRow struct {
	Seq        uint64 `json:"seq"`
	Time       string `json:"time"`              // RFC 3339 with milliseconds, UTC: when the request began
	Kind       string `json:"kind"`              // run, test, derive, import, mint; change for what a person or an agent changed; audit for the trail itself; other
	Call       string `json:"call,omitempty"`    // shared by the intent and the result of one exchange
	Wrapper    string `json:"wrapper,omitempty"` // id
	Method     string `json:"method,omitempty"`
	Host       string `json:"host,omitempty"` // with the port unless it is the scheme's own
	Status     int    `json:"status,omitempty"`
	Bytes      int64  `json:"bytes"`
	DurationMs int64  `json:"durationMs"`
	Error      string `json:"error,omitempty"`   // a code of docs/errors.md
	Outcome    string `json:"outcome,omitempty"` // "unknown" for an intent without a result, "unreadable" for a damaged row
	Author     string `json:"author,omitempty"`  // for changes: human or agent
	Action     string `json:"action,omitempty"`  // for changes: wrapper created, credential changed, ...
}

// AuditPage answers GET /wrap/audit: rows newest last, intent and result merged.
type AuditPage struct {
	Rows []AuditRow `json:"rows"`
	Next uint64     `json:"next"` // the sequence to follow from
}
