// Package systemd holds the unit files of hbrestd: the one of a user, which
// `hbrestd service install` writes with the program's real path, and the one of
// a server. Each is a whole unit as it stands, ready to be packaged.
//
// It decides nothing; internal/autostart does. Start with [UserUnit].
package systemd

import _ "embed"

// UserUnit is hbrestd.service, for the service manager of a user. Its line
// ExecStart= names /usr/bin/hbrestd.
//
//go:embed hbrestd.service
var UserUnit string
