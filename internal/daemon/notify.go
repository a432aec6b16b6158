package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// healthTimeout is how long the daemon's own bridge may take to answer it.
const healthTimeout = 10 * time.Second

// announce tells the service manager that the daemon is ready, and as long as
// it is well, that it still is. end waits for the last of it.
func (d *Daemon) announce(ctx context.Context, o Options) (end func()) {
	if o.Notify == nil {
		return func() {}
	}
	said := d.statusText(ctx)
	o.Notify("READY=1\nSTATUS=" + said)
	if o.Watchdog <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(d.ending) // once Stop begins, the bridge no longer answers
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(o.Watchdog / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := d.healthy(ctx); err != nil {
				if ctx.Err() == nil {
					d.log.Error("the daemon does not answer itself", "cause", err)
				}
				continue
			}
			state := "WATCHDOG=1"
			if now := d.statusText(ctx); now != said {
				said = now
				state += "\nSTATUS=" + now
			}
			o.Notify(state)
		}
	}()
	return func() { cancel(); <-done }
}

// statusText is one line for the service manager's own status.
func (d *Daemon) statusText(ctx context.Context) string {
	st, err := d.Status(ctx)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("listening on http://%s, %d wrappers", st.Address, st.Wrappers)
	if st.Damaged > 0 {
		text += fmt.Sprintf(" (%d damaged)", st.Damaged)
	}
	return text
}

// healthy asks the bridge over its port, as hb-rest does: a daemon that hangs
// anywhere on that way does not answer.
func (d *Daemon) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	_, err := hello(ctx, d.Addr())
	return err
}

// hello asks what listens at addr for its version. It sends nothing but a
// random number.
func hello(ctx context.Context, addr string) (version string, err error) {
	nonce := make([]byte, api.NonceBytes)
	_, _ = rand.Read(nonce)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/hello?nonce="+hex.EncodeToString(nonce), nil)
	if err != nil {
		return "", err
	}
	c := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}, // no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	return readHello(resp)
}
