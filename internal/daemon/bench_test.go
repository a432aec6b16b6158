package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// An audited is a daemon with its trail on a real file, which can be made to
// call the API with nobody told of it.
type audited struct {
	tb          testing.TB
	d           *Daemon
	with, quiet *state
	call        func() // one read call over the bridge, checked
}

// newAudited starts a daemon before an API on loopback: an object of 1 KB as a
// document, without a credential.
func newAudited(tb testing.TB) *audited {
	tb.Helper()
	body := `{"id":9007199254740993,"status":"shipped","total":5.00,"notes":"` + strings.Repeat("Leave it at the door. ", 40) + `"}`
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	tb.Cleanup(apiServer.Close)
	env := map[string]string{"HB_WRAP_HOME": filepath.Join(tb.TempDir(), "home"), "HB_WRAP_ADDR": "127.0.0.1:0", "HB_WRAP_ALLOW_PRIVATE": "1"}
	cfg, _, err := config.LoadDaemon(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, "linux")
	if err != nil {
		tb.Fatal(err)
	}
	d, err := Start(context.Background(), Options{Config: cfg, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			tb.Error(err)
		}
	})

	// The second state is the first but for Observe, which has no row made.
	with := d.state.Load()
	around := d.surroundings()
	around.Observe = nil
	quiet := &state{cfg: with.cfg, out: outbound.New(with.policy(), around)}
	quiet.exec = executor.New(executor.Config{Send: quiet.out.Send, Check: quiet.policy().CheckURL, Now: d.now, Grant: d.vault.Grant, Allow: d.allow})
	tb.Cleanup(func() { // before the daemon stops
		d.state.Store(with)
		quiet.out.Close()
	})

	tok, err := token.Read(cfg.TokenPath)
	if err != nil {
		tb.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	tb.Cleanup(client.CloseIdleConnections)
	post := func(path, body, want string) {
		req, err := http.NewRequest(http.MethodPost, "http://"+d.Addr()+path, strings.NewReader(body))
		if err != nil {
			tb.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tok)
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			tb.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(got, []byte(want)) {
			tb.Fatalf("%s: %d %s, %v", path, resp.StatusCode, got, err)
		}
		if err := resp.Body.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	post("/wrap/wrappers", fmt.Sprintf(`{"action":"create","wrapper":{"schemaVersion":1,"id":"bench.object","name":"Order","request":{"method":"GET","url":"%s/objects/1"},`+
		`"response":{"schemaVersion":1,"mode":"document","fields":{"Id":"id","Status":"status","Total":"total","Notes":"notes"}}}}`, apiServer.URL), `"ok":true`)
	return &audited{tb: tb, d: d, with: with, quiet: quiet, call: func() {
		post("/wrap/run", `{"id":"bench.object"}`, `**Id:** 9007199254740993\n- **Status:** shipped\n- **Total:** 5.00`)
	}}
}

// block makes calls under a state, says what they took in the median and in the
// mean, in µs, and holds that so many rows came into the trail. When a file is full there are two more,
// of the trail itself; without a row there is none to fill it.
func (a *audited) block(s *state, calls, rows int) (median, mean float64) {
	a.d.state.Store(s)
	before, _ := a.d.audit.Head()
	took := make([]time.Duration, calls)
	for i := range took {
		begin := time.Now()
		a.call()
		took[i] = time.Since(begin)
		mean += float64(took[i]) / 1e3 / float64(calls)
	}
	if err := a.d.audit.Settle(context.Background()); err != nil { // the next block has no rows of this one to write
		a.tb.Fatal(err)
	}
	after, _ := a.d.audit.Head()
	if made := int(after - before); made < rows || made > rows && (rows == 0 || made > rows+2) {
		a.tb.Fatalf("%d calls made %d rows, want %d", calls, made, rows)
	}
	slices.Sort(took)
	return float64(took[calls/2]) / 1e3, mean
}

// What is compared differs in the trail: a row for each call, or none.
func TestAuditedBlocks(t *testing.T) {
	a := newAudited(t)
	a.block(a.with, 5, 5)
	a.block(a.quiet, 5, 0)
	a.block(a.with, 1, 1)
}

// What the audit trail adds to a read call: the whole call over the bridge,
// with its row on a real file, beside the same call without one. The two take
// turns by blocks of 400 calls, which is long enough for several commits;
// "with/without" is the median of the ratios of their medians, and its goal is
// 1.05. The ratio of the means has those calls in it that met a commit.
func BenchmarkAuditOfRead(b *testing.B) {
	const calls = 400
	a := newAudited(b)
	a.block(a.with, calls, calls) // warm
	a.block(a.quiet, calls, 0)
	var ratios, means, with, without []float64
	for n := 0; b.Loop(); n++ {
		var w, wMean, q, qMean float64
		if n%2 == 0 {
			w, wMean = a.block(a.with, calls, calls)
		}
		q, qMean = a.block(a.quiet, calls, 0)
		if n%2 == 1 {
			w, wMean = a.block(a.with, calls, calls)
		}
		ratios, means, with, without = append(ratios, w/q), append(means, wMean/qMean), append(with, w), append(without, q)
	}
	middle := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(middle(ratios), "with/without")
	b.ReportMetric(middle(means), "means-with/without")
	b.ReportMetric(middle(with), "µs-with")
	b.ReportMetric(middle(without), "µs-without")
	b.ReportMetric(0, "ns/op") // of a pair of blocks: says nothing
}
