package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

// portOwner finds out who listens at a loopback address; not taken: nobody. What
// the daemon package cannot know without running a program, a program of the
// system says.
func (a *app) portOwner(ctx context.Context, addr string) (owner daemon.Owner, taken bool) {
	if !daemon.Listens(ctx, addr) {
		return owner, false
	}
	owner = daemon.PortOwner(ctx, addr)
	at, err := netip.ParseAddrPort(addr)
	if err != nil || owner.PID != 0 {
		return owner, true
	}
	switch a.goos {
	case "darwin":
		text, _ := runQuietly(ctx, "/usr/sbin/lsof", "-nP", "-iTCP:"+fmt.Sprint(at.Port()), "-sTCP:LISTEN", "-FpcL")
		owner.PID, owner.Name = lsofOwner(text)
	case "windows":
		text, _ := runQuietly(ctx, "netstat", "-ano", "-p", "TCP")
		if owner.PID = netstatOwner(text, at); owner.PID != 0 {
			text, _ = runQuietly(ctx, "tasklist", "/FI", fmt.Sprintf("PID eq %d", owner.PID), "/FO", "CSV", "/NH")
			owner.Name = tasklistName(text)
		}
	}
	return owner, true
}

// whoHas is the command with which a person finds the owner of a port.
func whoHas(goos string, port uint16) string {
	switch goos {
	case "darwin":
		return fmt.Sprintf("sudo lsof -nP -iTCP:%d -sTCP:LISTEN", port)
	case "windows":
		return fmt.Sprintf("netstat -ano | findstr LISTENING | findstr :%d", port)
	}
	return fmt.Sprintf("sudo ss -ltnp sport = :%d", port)
}

// lsofOwner reads the first process in what lsof -F prints: a line for each
// field, with its letter before it.
func lsofOwner(text string) (pid int, name string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "p") && pid == 0:
			pid, _ = strconv.Atoi(line[1:])
		case strings.HasPrefix(line, "p"):
			return pid, name
		case strings.HasPrefix(line, "c") && name == "":
			name = line[1:]
		}
	}
	return pid, name
}

// netstatOwner finds the process that listens at an address, or at all, in what
// netstat -ano prints. The state's word depends on the language of the system;
// that the other end is port 0 does not.
func netstatOwner(text string, at netip.AddrPort) int {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] != "TCP" || !strings.HasSuffix(f[2], ":0") {
			continue
		}
		local, err := netip.ParseAddrPort(f[1])
		if err != nil || local.Port() != at.Port() || local.Addr() != at.Addr() && !local.Addr().IsUnspecified() {
			continue
		}
		if pid, err := strconv.Atoi(f[len(f)-1]); err == nil {
			return pid
		}
	}
	return 0
}

// tasklistName is the program in the first line of tasklist /FO CSV /NH.
func tasklistName(text string) string {
	row, err := csv.NewReader(strings.NewReader(strings.TrimSpace(text))).Read()
	if err != nil || len(row) < 2 {
		return "" // "INFO: No tasks are running ..."
	}
	return row[0]
}
