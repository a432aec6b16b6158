package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// NonceBytes is the length of the nonce of GET /hello, sent as hex.
const NonceBytes = 32

// proofDomain keeps a proof from meaning anything elsewhere.
const proofDomain = "hbrestd-hello-1"

// Proof is the answer to a nonce that only a holder of the token can give:
// hex of HMAC-SHA256(token, "hbrestd-hello-1|PORT|NONCE"), NONCE in lower-case
// hex. The port is the one that was dialled, so a proof obtained from the
// daemon is of no use to another program on another port.
func Proof(token string, port int, nonce []byte) string {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte(proofDomain + "|" + strconv.Itoa(port) + "|" + hex.EncodeToString(nonce)))
	return hex.EncodeToString(m.Sum(nil))
}

// ProofEqual compares two proofs in constant time.
func ProofEqual(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
