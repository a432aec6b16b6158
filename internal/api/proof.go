package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
)

// NonceBytes is the length of the nonce of GET /hello, sent as hex.
const NonceBytes = 32

// proofDomain keeps a proof from meaning anything elsewhere.
const proofDomain = "hbrestd-hello-1"

// Proof is the answer to a nonce that only a holder of the token can give:
// hex of HMAC-SHA256(token, "hbrestd-hello-1|ADDRESS:PORT|NONCE"), NONCE in
// lower-case hex. The address and port are the ones that were dialled, so a
// proof that another program fetches from the daemon is of no use to it, on
// another port or on another loopback address.
func Proof(token string, dialled netip.AddrPort, nonce []byte) string {
	dialled = netip.AddrPortFrom(dialled.Addr().Unmap(), dialled.Port())
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte(proofDomain + "|" + dialled.String() + "|" + hex.EncodeToString(nonce)))
	return hex.EncodeToString(m.Sum(nil))
}

// ProofEqual compares two proofs in constant time.
func ProofEqual(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
