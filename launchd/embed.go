// Package launchd holds the LaunchAgent of hbrestd, which `hbrestd service
// install` writes with the program's real path.
//
// It decides nothing; internal/autostart does. Start with [Agent].
package launchd

import _ "embed"

// Agent is the property list of the agent. The program, its log file and its
// environment are those of the example in it.
//
//go:embed com.github.hyperbolic-gateway.hbrestd.plist
var Agent string
