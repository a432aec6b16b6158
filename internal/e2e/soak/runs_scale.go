package main

import "time"

// Ten thousand wrappers, a million audit rows, a keyring that does not answer.
var scaleRuns = []run{
	{"start with 10 000 wrappers", "internal/e2e", "TestScaleStart", 10 * time.Minute},
	{"lists and changes with 10 000 wrappers", "internal/e2e", "TestScaleList", 10 * time.Minute},
	{"a daemon with a million audit rows", "internal/e2e", "TestScaleAudit", 15 * time.Minute},
	{"an audit trail of a million rows", "internal/audit", "TestScale", 15 * time.Minute},
	{"200 calls while the keyring hangs", "internal/e2e", "TestHungKeyring", 5 * time.Minute},
}
