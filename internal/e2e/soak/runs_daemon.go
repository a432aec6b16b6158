package main

import "time"

// What happens to a daemon at work: load, restarts, what hangs.
var daemonRuns = []run{
	{"64 callers", "internal/e2e", "TestLoad", 10 * time.Minute},
	{"the daemon killed under creates and calls", "internal/e2e", "TestKillWhileSaving|TestKillDuringCreates|TestKillDuringCalls", 20 * time.Minute},
	{"token changed under callers", "internal/daemon", "TestTokenChangesUnderCalls|TestRestartsUnderCalls", 10 * time.Minute},
	{"daemon restarted under eight hb-rest", "internal/e2e", "TestRestartsUnderShims", 15 * time.Minute},
	{"SIGTERM under load", "internal/e2e", "TestTermUnderLoad", 15 * time.Minute},
	{"APIs that hang, drip and burst", "internal/e2e", "TestHungAmongHealthy|TestBrokenConnections", 10 * time.Minute},
	{"hb-rest ends with its client", "internal/e2e", "TestShimEndsWithItsClient", 10 * time.Minute},
}

// The longest, and so the last.
var longRuns = []run{
	{"half an hour at a gentle rate", "internal/e2e", "TestGentleLoad", 45 * time.Minute},
}
