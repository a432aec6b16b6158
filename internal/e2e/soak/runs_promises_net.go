package main

import "time"

// What docs/security.md promises of addresses, origins, pages, schemas and
// numbers, in numbers.
var promiseNetRuns = []run{
	{"special addresses by every way to the dialler", "internal/outbound", "TestNoSpecialAddressByAnyWay", 10 * time.Minute},
	{"special addresses by every way into a daemon", "internal/daemon", "TestNoWayToASpecialAddress", 10 * time.Minute},
	{"a name that flips, answers that are mixed", "internal/outbound", "TestRebinding|TestMixedAnswers", 10 * time.Minute},
	{"hosts in builds with cgo and without", "internal/outbound", "TestSameVerdictInEveryBuild", 20 * time.Minute},
	{"strict and permissive calls in turn", "internal/outbound", "TestPoliciesDoNotCross", 10 * time.Minute},
	{"calls with a rule and without, in turn", "internal/daemon", "TestRulesDoNotOutliveTheirCalls", 10 * time.Minute},
	{"headers over changes of the origin", "internal/outbound", "TestRedirectHeaders", 10 * time.Minute},
	{"what web pages send", "internal/bridge", "TestBrowserRequestsAreForbidden", 10 * time.Minute},
	{"pages in Chromium", "internal/bridge", "TestChromiumPages", 10 * time.Minute},
	{"another user squats the port", "internal/client", "TestAnotherUserSquats", 10 * time.Minute},
	{"the public schema suite, hostile schemas under strace", "internal/schema", "TestSuite|TestHostileSchemasOpenNothing", 10 * time.Minute},
	{"numbers on the wire", "internal/daemon", "TestNumbersArriveExact", 10 * time.Minute},
	{"bombs, endless headers, one byte a second", "internal/outbound", "TestBombs|TestEndlessHeader|TestTimeouts", 15 * time.Minute},
}
