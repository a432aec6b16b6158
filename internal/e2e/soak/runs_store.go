package main

import "time"

// What happens to files: killed while writing, power cut, full disk, damage.
var storeRuns = []run{
	{"a store changed in all ways, killed at a random moment", "internal/store", "TestKilled", 30 * time.Minute},
	{"a store being made, killed at a random moment", "internal/store", "TestKilledAtCreation", 20 * time.Minute},
	{"audit rows written, killed at a random moment", "internal/audit", "TestKill", 40 * time.Minute},
	{"cortex indexing, killed at a random moment", "internal/cortex", "TestKilledWhileIndexing", 20 * time.Minute},
	{"a store after a power cut", "internal/store", "TestPowerCut", 30 * time.Minute},
	{"an audit trail after a power cut", "internal/store", "TestAuditPowerCut", 30 * time.Minute},
	{"a damaged file set aside, and a power cut", "internal/store", "TestRescuePowerCut", 10 * time.Minute},
	{"a full disk, at many sizes of the store", "internal/store", "TestDiskFull", 20 * time.Minute},
	{"each write, growth and sync fails once", "internal/store", "TestEachWriteFails", 30 * time.Minute},
	{"a full disk under the audit trail", "internal/audit", "TestFullDisk", 10 * time.Minute},
	{"a flipped bit in a store", "internal/store", "TestBitFlips", 20 * time.Minute},
	{"a store cut short", "internal/store", "TestCuts", 20 * time.Minute},
	{"a zeroed page of a store", "internal/store", "TestZeroedPages", 20 * time.Minute},
	{"a page of a store in the wrong place", "internal/store", "TestSwappedPages", 20 * time.Minute},
	{"a damaged audit file", "internal/audit", "TestDamageIsFound", 20 * time.Minute},
	{"one change of an audit trail", "internal/audit", "TestEveryMutationIsFound", 20 * time.Minute},
}
