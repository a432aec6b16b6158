package daemon_test

import (
	"context"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A caller whose list is of another opening of the store does not wait for news,
// although its revision is this one's: the store may have been put back and have
// come to the same number on another way.
func TestStrangeMarkDoesNotWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	w.create(`{"schemaVersion":1,"id":"a","name":"A","request":{"url":"https://a.example.com/"},"exposeAsTool":true}`)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second) // the daemon holds a call for 25
	defer cancel()
	mark := func() string {
		m, err := w.bridgeClient().Select(ctx, &api.ManifestQuery{Tools: true})
		if err != nil {
			t.Fatal(err)
		}
		return m.Mark
	}
	before := mark()
	w.stop()
	w.start()
	for _, since := range []string{before, "nonsense"} {
		m, err := w.bridgeClient().Select(ctx, &api.ManifestQuery{After: w.d.Revision(), Tools: true, Since: since})
		if err != nil {
			t.Fatalf("since %q: %v", since, err)
		}
		if got := inShort(m); got != "[a] 0 of 1, removed []" || m.Since != "" || m.Mark != mark() {
			t.Errorf("since %q: %s since %q", since, got, m.Since)
		}
	}
	// One that is known waits as ever.
	short, end := context.WithTimeout(ctx, 100*time.Millisecond)
	defer end()
	if m, err := w.bridgeClient().Select(short, &api.ManifestQuery{After: w.d.Revision(), Tools: true, Since: mark()}); err == nil {
		t.Errorf("it did not wait: %s", inShort(m))
	}
}
