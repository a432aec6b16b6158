package main

import "time"

// What happens to files: killed while writing, power cut, full disk, damage.
var storeRuns = []run{
	{"wrappers saved, killed at a random moment", "internal/store", "TestKilled", 20 * time.Minute},
}
