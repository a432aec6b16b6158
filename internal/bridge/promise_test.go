package bridge_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/bridge"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// No token, no work: of 100,000 wrong tokens, each wrong in one place, none
// reaches what is behind the door, which is the bridge's only way to the store
// and to a connection (daemon.TestWrongTokensDialNothing sees both ends). How long a refusal takes does not
// say where the token is wrong: the medians for the first and for the last
// character are less than 1 µs apart. The handler is called directly; what a
// connection adds would only hide a difference.
func TestWrongTokensDoNoWork(t *testing.T) {
	f := &fake{}
	h := &token.Holder{}
	h.Set(testToken)
	handler := bridge.New(f, h, bridge.Options{})
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, addr("127.0.0.1:4111"))

	// refused is how long the refusal takes of a token that is wrong at one place.
	refused := func(method, path string, place int, with byte) time.Duration {
		wrong := []byte(testToken)
		if wrong[place] == with {
			with = 'x'
		}
		wrong[place] = with
		r := httptest.NewRequestWithContext(ctx, method, path, http.NoBody)
		r.Host = "127.0.0.1:4111"
		r.Header.Set("Authorization", "Bearer "+string(wrong))
		w := httptest.NewRecorder()
		at := time.Now()
		handler.ServeHTTP(w, r)
		took := time.Since(at)
		if w.Code != http.StatusUnauthorized {
			t.Fatalf("%s %s with %s: %d", method, path, wrong, w.Code)
		}
		return took
	}
	targets := []struct{ method, path string }{
		{"GET", "/wrap/status"},
		{"GET", "/wrap/manifest"},
		{"GET", "/wrap/wrapper?id=a"},
		{"GET", "/wrap/secrets"},
		{"GET", "/wrap/audit"},
		{"GET", "/wrap/recall?query=a"},
		{"POST", "/wrap/run"},
		{"POST", "/wrap/test"},
		{"POST", "/wrap/derive"},
		{"POST", "/wrap/wrappers"},
		{"GET", "/"},
	}
	tries := soak.Rounds(10_000, 100_000)
	for i := range tries {
		target := targets[i%len(targets)]
		refused(target.method, target.path, i%token.Length, "0123456789abcdefg"[(i/token.Length)%17])
	}
	// The two are measured in turn, in an order by chance, so that whatever else
	// the machine does falls on both.
	pairs := soak.Rounds(5000, 100_000)
	random := rand.New(rand.NewPCG(7, 7))
	took := [2][]time.Duration{}
	for range pairs {
		first := random.IntN(2)
		for _, side := range []int{first, 1 - first} {
			took[side] = append(took[side], refused("GET", "/wrap/status", side*(token.Length-1), 'x'))
		}
	}
	median := func(side int) time.Duration { slices.Sort(took[side]); return took[side][pairs/2] }
	apart := median(0) - median(1)
	if apart.Abs() >= time.Microsecond {
		t.Errorf("a token wrong at its first character is refused in %v, at its last in %v", median(0), median(1))
	}
	calls, revision := f.asked()
	if len(calls) != 0 || revision != 0 {
		t.Errorf("the backend was asked: %d calls, revision %d times", len(calls), revision)
	}
	soak.Measured(t, "%d wrong tokens, %d of them with work behind the door; refused in %v (first character wrong) and %v (last), %v apart",
		tries+2*pairs, len(calls)+revision, median(0), median(1), apart.Abs())
}
