package wrapper

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Bounds of a generated tool's name. Some clients count the name together with
// "mcp__hb-rest__" (14 characters) against 60 and drop a tool that is over.
const (
	maxToolName = 46
	cutToolName = 39 // before "_" and six hexadecimal digits
)

// Reserved returns the names of the tools that always exist, which no wrapper's
// tool may take.
func Reserved() []string {
	return []string{
		"wrap_list", "wrap_get", "wrap_derive", "wrap_secret_list", "wrap_create",
		"wrap_update", "wrap_delete", "wrap_run", "wrap_test", "wrap_reload",
		"recall_memory",
	}
}

// BaseToolName is "wrap_" and the id, every character outside [A-Za-z0-9_-]
// replaced by "_". The name that a tool gets is decided by ToolName.
func (w *Wrapper) BaseToolName() string { return baseToolName(w.ID) }

func baseToolName(id string) string {
	return "wrap_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
}

// ToolName chooses the name of the tool for a wrapper: the base name, or, when
// that is longer than 46 characters, reserved or taken, its first 39 characters
// with "_" and six hexadecimal digits of the SHA-256 of the id. The name is at
// most 46 characters of [A-Za-z0-9_-]. Assign it once and keep it: a name that
// was computed again could change when other wrappers come and go.
func ToolName(id string, taken func(name string) bool) string {
	name := baseToolName(id)
	if len(name) <= maxToolName && !isReserved(name) && !taken(name) {
		return name
	}
	name = name[:min(len(name), cutToolName)]
	for i := 0; ; i++ {
		text := id
		if i > 0 { // two ids with equal digits: 1 in 16 million, but never a shared name
			text = fmt.Sprintf("%s\n%d", id, i)
		}
		sum := sha256.Sum256([]byte(text))
		if full := name + "_" + hex.EncodeToString(sum[:3]); !taken(full) {
			return full
		}
	}
}

func isReserved(name string) bool {
	for _, r := range Reserved() {
		if r == name {
			return true
		}
	}
	return false
}
