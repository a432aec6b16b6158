package daemon

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// whoCommand shows who has the port %s, where this program may not look.
const whoCommand = "sudo ss -ltnp sport = :%s"

// listener looks up who listens at addr.
func listener(addr string) Owner {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return Owner{}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		if inode, uid, ok := listening(string(data), at); ok {
			o := holder(inode)
			if uid != strconv.Itoa(os.Getuid()) {
				o.User = userName(uid)
			}
			return o
		}
	}
	return Owner{}
}

// listening finds the socket that keeps others from at in one of the kernel's
// tables: one that listens there, or at all addresses.
func listening(table string, at netip.AddrPort) (inode, uid string, ok bool) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != "0A" {
			continue
		}
		addr, port, _ := strings.Cut(f[1], ":")
		if n, err := strconv.ParseUint(port, 16, 16); err != nil || uint16(n) != at.Port() {
			continue
		}
		ip, ok := kernelAddr(addr)
		if ok && (ip == at.Addr() || ip.IsUnspecified() && (ip.Is6() || at.Addr().Is4())) {
			return f[9], f[7], true
		}
	}
	return "", "", false
}

// kernelAddr reads an address as the kernel prints it: words of four bytes in
// the machine's order, which is little-endian on all that we build for.
func kernelAddr(s string) (netip.Addr, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b)%4 != 0 {
		return netip.Addr{}, false
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(b)
	return ip.Unmap(), ok
}

// holder finds the process that has a socket open, if it is one that this
// process may look into.
func holder(inode string) Owner {
	want := "socket:[" + inode + "]"
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return Owner{}
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != want {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			continue
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return Owner{PID: pid, Name: string(bytes.TrimSpace(name))}
	}
	return Owner{}
}

func userName(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}
