package main

import "time"

// What docs/security.md promises, in numbers.
var promiseRuns = []run{
	{"wrong tokens do no work", "internal/bridge", "TestWrongTokensDoNoWork", 10 * time.Minute},
}
