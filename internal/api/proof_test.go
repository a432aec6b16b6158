package api_test

import (
	"net/netip"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

const token = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func nonce() []byte {
	n := make([]byte, api.NonceBytes)
	for i := range n {
		n[i] = byte(i)
	}
	return n
}

// Computed outside this code with another implementation of HMAC-SHA256.
func TestProof(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:4111")
	const want = "793c74ea77dec442873bb470dcf80802689fc4bbf95a323d8ab2e8731ee16c47"
	if got := api.Proof(token, at, nonce()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if mapped := netip.MustParseAddrPort("[::ffff:127.0.0.1]:4111"); api.Proof(token, mapped, nonce()) != want {
		t.Error("an IPv4 address in IPv6 clothing is another address")
	}
}

// A daemon that listens elsewhere on loopback cannot be used as an oracle by a
// program that holds the address a caller dials.
func TestProofIsForOneAddress(t *testing.T) {
	at := api.Proof(token, netip.MustParseAddrPort("127.0.0.1:4111"), nonce())
	for _, other := range []string{"127.0.0.2:4111", "[::1]:4111", "127.0.0.1:4112"} {
		if api.ProofEqual(at, api.Proof(token, netip.MustParseAddrPort(other), nonce())) {
			t.Errorf("%s has the same proof", other)
		}
	}
	if api.ProofEqual(at, api.Proof(token[1:]+"0", netip.MustParseAddrPort("127.0.0.1:4111"), nonce())) {
		t.Error("another token has the same proof")
	}
}
