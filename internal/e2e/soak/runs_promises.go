package main

import "time"

// What docs/security.md promises, in numbers.
var promiseRuns = []run{
	{"wrong tokens do no work", "internal/bridge", "TestWrongTokensDoNoWork", 10 * time.Minute},
	{"wrong tokens dial nothing", "internal/daemon", "TestWrongTokensDialNothing", 10 * time.Minute},
	{"memory is out of reach of the same user", "internal/e2e", "TestMemoryIsOutOfReach", 5 * time.Minute},
	{"the token file rotates under readers", "internal/token", "TestRotation", 10 * time.Minute},
}
