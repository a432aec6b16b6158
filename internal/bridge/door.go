package bridge

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// helloPath is the only path that needs no token.
const helloPath = "/hello"

// A door decides whether a request may be looked at. The order matters: a web
// page must learn nothing about the token, and nobody without a token may cause
// any work.
type door struct{ token *token.Holder }

// check answers FORBIDDEN_ORIGIN for a Host that is not the bridge and for any
// header that only browsers send, then UNAUTHORIZED without the token.
func (d door) check(r *http.Request) *fault.Error {
	if !hostIsOurs(r) {
		return fault.New("FORBIDDEN_ORIGIN", "the request is not addressed to this bridge by its loopback address")
	}
	if name := browserHeader(r.Header); name != "" {
		return fault.New("FORBIDDEN_ORIGIN", "the request has the header %s, which web pages send", name)
	}
	if isHello(r) {
		return nil
	}
	return d.checkToken(r.Header)
}

func isHello(r *http.Request) bool { return r.URL.Path == helloPath && r.URL.RawPath == "" }

// hostIsOurs compares Host with the exact list of names for the address that
// the connection arrived at. A page that had its own name resolved to 127.0.0.1
// still sends that name. An absolute-form target or CONNECT asks for a proxy.
func hostIsOurs(r *http.Request) bool {
	if r.Host == "" || r.URL.Host != "" || r.Method == http.MethodConnect {
		return false
	}
	local, ok := localAddr(r)
	if !ok {
		return false
	}
	port := ":" + strconv.Itoa(int(local.Port()))
	switch r.Host {
	case "127.0.0.1" + port, "localhost" + port, "[::1]" + port:
		return true
	}
	// A daemon told to listen on, say, 127.0.0.2 is called by that name.
	return local.Addr().IsLoopback() && r.Host == local.String()
}

// localAddr is the address that the caller dialled, as the server saw it.
func localAddr(r *http.Request) (netip.AddrPort, bool) {
	var ap netip.AddrPort
	switch a := r.Context().Value(http.LocalAddrContextKey).(type) {
	case interface{ AddrPort() netip.AddrPort }: // a TCP address
		ap = a.AddrPort()
	case interface{ String() string }:
		ap, _ = netip.ParseAddrPort(a.String())
	}
	if !ap.IsValid() {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), true
}

// browserHeader names the first header present that curl and hb-rest never
// send. Sec-Fetch-Mode is not among them: Node's fetch sends it too.
func browserHeader(h http.Header) string {
	for _, name := range []string{"Origin", "Referer", "Sec-Fetch-Site"} {
		if _, ok := h[name]; ok {
			return name
		}
	}
	return ""
}

// checkToken wants at least one token and every one presented to be right, so
// that two spellings that differ are refused whichever is read first.
func (d door) checkToken(h http.Header) *fault.Error {
	presented := append([]string(nil), h[api.HeaderLegacyToken]...)
	for _, v := range h["Authorization"] {
		scheme, value, _ := strings.Cut(v, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			value = "" // another scheme is a wrong token
		}
		presented = append(presented, strings.TrimLeft(value, " "))
	}
	if len(presented) == 0 {
		return fault.New("UNAUTHORIZED", "the bridge token is missing")
	}
	ok := true
	for _, p := range presented {
		ok = d.token.Check(p) && p != "" && ok
	}
	if !ok {
		return fault.New("UNAUTHORIZED", "the bridge token is wrong, or from an earlier start of the daemon")
	}
	return nil
}
