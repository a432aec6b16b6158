package outbound

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
)

const (
	neverHint    = "Use a public host; no setting opens this address."
	refusedPlace = "Check request.url: the API sends its callers on to a place that is refused."
)

// rulePlace is the host as `hbrestd allow add` takes it; port "" or that of the
// scheme is left out. A name too long for a hint is not shown.
func rulePlace(host, port string) string {
	const shown = 60
	if place := hostname.Join(host, port); len(place) <= shown {
		return place
	}
	return "HOST[:PORT]"
}

// privateHint says how a person opens a private host; port "" is the scheme's.
func privateHint(host, port string) string {
	return fmt.Sprintf("For a host of your own: `hbrestd allow add %s`, or start hbrestd with HB_WRAP_ALLOW_PRIVATE=1. Else use a public one.", rulePlace(host, port))
}

// httpHint says how a person opens a host for plain http.
func httpHint(host, port string) string {
	if port == "80" {
		port = ""
	}
	switch reach := guess(host); reach {
	case never:
		return neverHint
	case private:
		return fmt.Sprintf("For a host of your own: `hbrestd allow add %s --http`, or start hbrestd with HB_WRAP_ALLOW_PRIVATE=1. Else use https.", rulePlace(host, port))
	}
	return fmt.Sprintf("Use https, or allow plain http: `hbrestd allow add %s --http`, or start hbrestd with HB_WRAP_ALLOW_HTTP=1.", rulePlace(host, port))
}

// guess says what a host probably is without asking a resolver. It chooses
// words, never what is allowed.
func guess(host string) class {
	if a, err := netip.ParseAddr(host); err == nil {
		k, _ := classify(a)
		return k
	}
	if !strings.Contains(host, ".") {
		return private
	}
	for _, end := range []string{".localhost", ".local", ".lan", ".home", ".home.arpa", ".internal", ".intranet", ".corp", ".test"} {
		if strings.HasSuffix(host, end) {
			return private
		}
	}
	return public
}

// timeoutHint is for a request whose time ended. A caller cannot ask for more
// than limit when that is all the policy gives.
func timeoutHint(limit, most time.Duration, write, sent bool) string {
	more := ""
	if limit < most {
		more = fmt.Sprintf(" request.timeoutMs in the wrapper (now %d, up to %d) gives the API more time.", limit.Milliseconds(), most.Milliseconds())
	}
	switch {
	case write && sent:
		return "The write may have been applied: check before you repeat it." + more
	case sent:
		return "Repeat the call later, or ask the API for less." + more
	case more == "":
		return "Repeat the call later: nothing was sent."
	}
	return "Repeat the call: nothing was sent." + more
}

// brokenHint is for an exchange that broke off after the request was sent.
func brokenHint(write bool) fault.Option {
	if write {
		return fault.Hint("The write may have been applied: check before you repeat it.")
	}
	return fault.Hint("Repeat the call.")
}
