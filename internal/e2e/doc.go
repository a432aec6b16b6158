// Package e2e runs the installed programs the way people and MCP clients run
// them: scripts in testdata/script, real processes, a real HTTP upstream on
// loopback. It is for tests only. Start with e2e_test.go for the words of the
// script language, and with the scripts themselves for what is promised.
package e2e
