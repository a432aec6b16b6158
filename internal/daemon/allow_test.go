package daemon_test

import (
	"net"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A rule that could never open anything is refused, so that nobody thinks it does.
func TestRulesThatNeverOpenAreRefused(t *testing.T) {
	w := newWorld(t, nil, outbound.Options{})
	_, own, err := net.SplitHostPort(w.d.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []control.AllowRule{
		{Host: "169.254.169.254"}, {Host: "0.0.0.0"}, {Host: "::"}, {Host: "fe80::1"}, {Host: "127.0.0.1", Port: own, HTTP: true},
	} {
		if _, err := w.d.Allow(t.Context(), &r); !fault.Is(err, "BAD_REQUEST") {
			t.Errorf("%+v: %v", r, err)
		}
	}
	list, err := w.d.Allow(t.Context(), &control.AllowRule{Host: "127.0.0.1", Port: "1", HTTP: true})
	if err != nil || len(list.Rules) != 1 {
		t.Errorf("an honest rule: %+v %v", list, err)
	}
}
