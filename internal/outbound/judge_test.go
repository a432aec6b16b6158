package outbound_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// The judge sees the answer that Send returns, once, and its verdict is what is
// observed; redirects on the way and failures are not its business.
func TestJudge(t *testing.T) {
	w := newWorld(t)
	w.serve("https://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(rw, r, "/gone", http.StatusFound)
		case "/gone":
			rw.WriteHeader(410)
		case "/cut":
			rw.Header().Set("Content-Length", "9")
		}
	}))
	c := w.client(outbound.Policy{})
	for path, want := range map[string][]fault.Code{"/": {"RESPONSE_EMPTY"}, "/away": {"", "UPSTREAM_NOT_FOUND"}, "/cut": {"RESPONSE_INCOMPLETE"}} {
		w.seen = nil
		var judged []*outbound.Response
		r := outbound.NewRequest("GET", mustURL(t, origin0+path), nil)
		r.Judge = func(resp *outbound.Response) fault.Code {
			if len(w.exchanges()) != len(want)-1 {
				t.Errorf("%s: observed before it was judged", path)
			}
			if resp.Hops != len(want)-1 || resp.Duration <= 0 {
				t.Errorf("%s: %+v", path, resp)
			}
			judged = append(judged, resp)
			return want[len(want)-1]
		}
		resp, err := c.Send(context.Background(), r)
		var got []fault.Code
		for _, x := range w.exchanges() {
			got = append(got, x.Err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", path, d)
		}
		if err == nil && (len(judged) != 1 || judged[0] != resp) || err != nil && len(judged) != 0 {
			t.Errorf("%s: %v was judged, %v %v returned", path, judged, resp, err)
		}
	}
}

// A judge that takes its time holds no place and is in no duration; one that
// panics leaves a row all the same.
func TestSlowJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(time.Second)}
		var seen []string
		c := outbound.New(outbound.Policy{AllowHTTP: true}, outbound.Options{
			DialAddr: w.dial, Interfaces: func() []netip.Addr { return nil },
			Observe: func(_ context.Context, x outbound.Exchange) {
				seen = append(seen, fmt.Sprint(x.Tag.Call, " ", x.Duration, " ", x.Status, " ", x.Err))
			},
		})
		defer c.Close()
		send := func(call string, judge func(*outbound.Response) fault.Code) time.Duration {
			begin := time.Now()
			r := request(here, "/")
			r.Tag.Call, r.Concurrency, r.Judge, r.Timeout = call, 1, judge, 2*time.Second
			if _, err := c.Send(t.Context(), r); err != nil {
				t.Error(err)
			}
			return time.Since(begin)
		}
		took := send("a", func(*outbound.Response) fault.Code {
			if took := send("b", nil); took != time.Second {
				t.Errorf("b took %s", took)
			}
			time.Sleep(time.Minute)
			return "RESPONSE_NOT_JSON"
		})
		if took != 62*time.Second {
			t.Errorf("a took %s", took)
		}
		func() {
			defer func() { _ = recover() }()
			send("c", func(*outbound.Response) fault.Code { panic("c") })
		}()
		if took := send("d", nil); took != time.Second { // c has left its place
			t.Errorf("d took %s", took)
		}
		want := []string{"b 1s 200 ", "a 1s 200 RESPONSE_NOT_JSON", "c 1s 200 ", "d 1s 200 "}
		if d := cmp.Diff(want, seen); d != "" {
			t.Error(d)
		}
	})
}
