package autostart

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	units "github.com/hyperbolic-gateway/hb-rest/systemd"
)

const (
	unitName = "hbrestd.service"
	// execLine is the one line of the unit that differs between machines.
	execLine = "ExecStart=/usr/bin/hbrestd run\n"
	// written begins the first line of a unit that Install has written. The
	// digest after it tells an older version of ours from one that was edited.
	written = "# Written by hbrestd service install, digest "
)

// UnitText is the unit of the systemd user manager for a program at an absolute
// path, with HB_WRAP_HOME set to home unless that is empty. The error is
// SERVICE_FAILED: a path that cannot stand in a unit.
func UnitText(program, home string) (string, error) {
	if err := standable("the path of hbrestd", program); err != nil {
		return "", err
	}
	if strings.Contains(program, `\`) { // systemd: "Executable name contains special characters"
		return "", failed("the path of hbrestd has a backslash, which systemd takes in no path of a program: %q", program)
	}
	line := "ExecStart=" + quoteProgram(program) + " run\n"
	if home != "" {
		if err := standable("HB_WRAP_HOME", home); err != nil {
			return "", err
		}
		line = "Environment=" + quote("HB_WRAP_HOME="+home) + "\n" + line
	}
	return strings.Replace(units.UserUnit, execLine, line, 1), nil
}

// signed puts the line with the digest before a unit.
func signed(text string) string { return written + digest(text) + "\n" + text }

// edited reports whether a unit is not as Install has written it.
func edited(unit string) bool {
	first, rest, _ := strings.Cut(unit, "\n")
	sum, ours := strings.CutPrefix(first, written)
	return !ours || sum != digest(rest)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// standable refuses a path that cannot be written into a unit, a property list
// or a task without a doubt about what is read back.
func standable(what, path string) error {
	bad := ""
	switch {
	case !utf8.ValidString(path):
		bad = "is not UTF-8"
	case strings.ContainsFunc(path, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }):
		bad = "has a control character"
	case strings.ContainsAny(path, `"'`+"`"):
		bad = "has a quotation mark"
	default:
		return nil
	}
	return failed("%s %s, and cannot stand in a service's definition: %q", what, bad, path)
}

// quoteProgram writes the path of a program as systemd reads it back: in double
// quotes when it needs them, with C-style backslashes and % doubled. Variables
// are not replaced there, so $ stays.
func quoteProgram(path string) string { return quote(path) }

// quote writes one word of Environment= or of ExecStart=.
func quote(word string) string {
	word = strings.ReplaceAll(word, "%", "%%")
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-=+@%,:", r))
	}) {
		return word
	}
	return `"` + strings.ReplaceAll(word, `\`, `\\`) + `"`
}

// changes lists the lines that went and came, comments and empty lines aside.
func changes(before, after string) []string {
	count := map[string]int{}
	lines := func(text string) (list []string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, line)
			}
		}
		return list
	}
	for _, line := range lines(after) {
		count[line]++
	}
	var diff []string
	for _, line := range lines(before) {
		if count[line]--; count[line] < 0 {
			diff = append(diff, "- "+line)
		}
	}
	clear(count)
	for _, line := range lines(before) {
		count[line]++
	}
	for _, line := range lines(after) {
		if count[line]--; count[line] < 0 {
			diff = append(diff, "+ "+line)
		}
	}
	return diff
}
