// Package token makes, writes, reads and compares the bridge token: 64
// lower-case hex digits that hbrestd renews at every start and hb-rest reads
// before every call.
//
// It never logs a token, never puts one into an error, and never reads a file
// that another user could have written or could read. Start with [New] and
// [Write] in the daemon, [Read] in the client, [Holder] behind the bridge.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"sync/atomic"
)

// Length is the number of characters of a token: 32 random bytes in hex.
const Length = 64

// New makes a token from the system's random source. It cannot fail: without
// randomness crypto/rand ends the program.
func New() string {
	var b [Length / 2]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// wellFormed reports whether s is exactly Length lower-case hex digits.
func wellFormed(s string) bool {
	if len(s) != Length {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// A Holder keeps the daemon's current token for the bridge. The zero value
// holds none and accepts nothing. It may be used by many goroutines.
type Holder struct {
	now atomic.Pointer[held]
}

type held struct {
	token string
	sum   [sha256.Size]byte
}

// Set replaces the token; the one before it is refused from then on. An empty
// string takes the token away.
func (h *Holder) Set(tok string) {
	if tok == "" {
		h.now.Store(nil)
		return
	}
	h.now.Store(&held{token: tok, sum: sha256.Sum256([]byte(tok))})
}

// Check reports whether presented is the current token. It compares hashes, so
// that neither the place of the first wrong character nor the length shows in
// the time it takes.
func (h *Holder) Check(presented string) bool {
	sum := sha256.Sum256([]byte(presented))
	k := h.now.Load()
	if k == nil {
		return false
	}
	return subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1
}

// Current is the token that Check accepts, or "". The bridge signs its proof
// with it.
func (h *Holder) Current() string {
	if k := h.now.Load(); k != nil {
		return k.token
	}
	return ""
}
