package main

import "time"

// What docs/security.md promises, in numbers.
var promiseRuns = []run{
	{"wrong tokens do no work", "internal/bridge", "TestWrongTokensDoNoWork", 10 * time.Minute},
	{"wrong tokens dial nothing", "internal/daemon", "TestWrongTokensDialNothing", 10 * time.Minute},
	{"memory is out of reach of the same user", "internal/e2e", "TestMemoryIsOutOfReach", 5 * time.Minute},
	{"a second daemon", "internal/e2e", "TestSecondProgram", 10 * time.Minute},
	{"a blocked trail sends nothing", "internal/e2e", "TestBlockedAuditSendsNothing", 10 * time.Minute},
	{"killed while a token is renewed", "internal/e2e", "TestKillDuringRenewal", 15 * time.Minute},
	{"200 calls share one mint", "internal/daemon", "TestParallelCallsMintOnce", 10 * time.Minute},
	{"the service comes back (HB_E2E_SYSTEMD=1, root)", "internal/e2e", "TestService", 15 * time.Minute},
	{"credentials sent back in 16 encodings", "internal/daemon", "TestEchoedCredential", 30 * time.Minute},
	{"canaries in everything written or said", "internal/e2e", "TestCanary", 30 * time.Minute},
	{"agents write no credential by any route", "internal/daemon", "TestAgentsCannotWriteCredentials", 30 * time.Minute},
	{"what an agent with a shell can do", "internal/e2e", "TestShellAttacks", 10 * time.Minute},
	{"backups while six clients write", "internal/e2e", "TestBackupsUnderWrites", 10 * time.Minute},
	{"a restore killed at each call", "internal/e2e", "TestKilledDuringRestore", 10 * time.Minute},
	{"the token file rotates under readers", "internal/token", "TestRotation", 10 * time.Minute},
}
