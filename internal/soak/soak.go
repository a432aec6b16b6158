// Package soak lets one test be quick with every change and long when somebody
// has time: few rounds under `make test`, many under `make soak`. It is for
// tests alone, measures nothing and decides nothing. Start with Rounds.
package soak

import (
	"os"
	"testing"
	"time"
)

// Variable is set to anything by `make soak`, and by whoever runs one test for long.
const Variable = "HB_SOAK"

// Long says whether this run is a long one.
func Long() bool { return os.Getenv(Variable) != "" }

// Rounds is how often a test repeats what it does: few, or many in a long run.
func Rounds(few, many int) int {
	if Long() {
		return many
	}
	return few
}

// Time is how long a test goes on: short, or long in a long run.
func Time(short, long time.Duration) time.Duration {
	if Long() {
		return long
	}
	return short
}

// Measured writes a figure where `make soak` and CI pick it up.
func Measured(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf("measured: "+format, args...)
}
