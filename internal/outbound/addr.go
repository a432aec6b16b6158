package outbound

import (
	"net/netip"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A class says who may open an address: everybody, a person by a switch or the
// allow list, or nobody.
type class uint8

const (
	public class = iota
	private
	never
)

type span struct {
	prefix netip.Prefix
	why    string
}

// neverSpans are closed under every switch. Sources: the IANA special-purpose
// address registries for IPv4 and IPv6, and the metadata addresses of Amazon,
// Google, Microsoft, Oracle and Alibaba that lie outside 169.254.0.0/16.
var neverSpans = spans(
	"0.0.0.0/8", "this network (RFC 791)",
	"100.100.100.200/32", "a cloud metadata address",
	"168.63.129.16/32", "a cloud metadata address",
	"169.254.0.0/16", "link-local, where cloud metadata lives (RFC 3927)",
	"192.0.0.0/24", "protocol assignments (RFC 6890)",
	"192.0.2.0/24", "documentation (RFC 5737)",
	"192.31.196.0/24", "AS112 (RFC 7535)",
	"192.52.193.0/24", "AMT (RFC 7450)",
	"192.88.99.0/24", "6to4 relay (RFC 7526)",
	"192.175.48.0/24", "AS112 (RFC 7534)",
	"198.18.0.0/15", "benchmarking (RFC 2544)",
	"198.51.100.0/24", "documentation (RFC 5737)",
	"203.0.113.0/24", "documentation (RFC 5737)",
	"224.0.0.0/4", "multicast (RFC 5771)",
	"240.0.0.0/4", "reserved or broadcast (RFC 1112)",

	"::/96", "unspecified or an IPv4 address in IPv6 clothing (RFC 4291)",
	"::ffff:0:0:0/96", "an IPv4 address in IPv6 clothing (RFC 2765)",
	"64:ff9b:1::/48", "local IPv4 translation (RFC 8215)",
	"100::/64", "discard-only (RFC 6666)",
	"100:0:0:1::/64", "dummy prefix (RFC 9780)",
	"2001::/23", "protocol assignments, Teredo among them (RFC 2928)",
	"2001:db8::/32", "documentation (RFC 3849)",
	"2002::/16", "6to4, an IPv4 address in IPv6 clothing (RFC 3056)",
	"2620:4f:8000::/48", "AS112 (RFC 7534)",
	"3fff::/20", "documentation (RFC 9637)",
	"5f00::/16", "segment routing (RFC 9602)",
	"fd00:ec2::254/128", "a cloud metadata address",
	"fd20:ce::254/128", "a cloud metadata address",
	"fe80::/10", "link-local (RFC 4291)",
	"fec0::/10", "site-local (RFC 3879)",
	"ff00::/8", "multicast (RFC 4291)",
)

// privateSpans open with Policy.AllowPrivate, or one name at a time.
var privateSpans = spans(
	"127.0.0.0/8", "loopback (RFC 1122)",
	"10.0.0.0/8", "private (RFC 1918)",
	"172.16.0.0/12", "private (RFC 1918)",
	"192.168.0.0/16", "private (RFC 1918)",
	"100.64.0.0/10", "carrier-grade NAT (RFC 6598)",
	"fc00::/7", "unique local (RFC 4193)",
)

var (
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
	globalV6 = netip.MustParsePrefix("2000::/3")
)

func spans(pairs ...string) []span {
	var out []span
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, span{netip.MustParsePrefix(pairs[i]), pairs[i+1]})
	}
	return out
}

// classify judges one address and says why in a few words. An IPv4 address in
// its mapped form, or behind the well-known NAT64 prefix, is judged as that IPv4
// address: on IPv6-only networks every IPv4-only API lives behind that prefix.
// A network's own NAT64 prefix cannot be told from a public address.
func classify(a netip.Addr) (class, string) {
	if !a.IsValid() {
		return never, "not an address"
	}
	if a.Zone() != "" {
		return never, "an address with a zone identifier"
	}
	a = a.Unmap() // a prefix of IPv4 never contains a mapped address
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a == netip.IPv6Loopback() {
		return private, "loopback (RFC 4291)"
	}
	for _, s := range neverSpans {
		if s.prefix.Contains(a) {
			return never, s.why
		}
	}
	for _, s := range privateSpans {
		if s.prefix.Contains(a) {
			return private, s.why
		}
	}
	if a.Is6() && !globalV6.Contains(a) {
		return never, "outside the public IPv6 space"
	}
	return public, ""
}

// CheckAddr judges one address: nil, or a POLICY_PRIVATE_ADDRESS fault that
// names its class. It knows neither the allow list, which goes by name, nor the
// machine's own public addresses; [Client.Send] adds both.
func (p Policy) CheckAddr(a netip.Addr) error { return p.checkAddr(a, "") }

// checkAddr is CheckAddr with the port of the URL for the hint; "" is the
// scheme's own.
func (p Policy) checkAddr(a netip.Addr, port string) error {
	switch k, why := classify(a); {
	case k == never:
		return refuseNever(a.String(), "", why)
	case k == private && !p.AllowPrivate:
		return refusePrivate(a.String(), port, "", why)
	}
	return nil
}

// refusePrivate and refuseNever name the host, the address it has (empty if the
// host is the address) and the class. The port is for the hint alone.
func refusePrivate(host, port, addr, why string) *fault.Error {
	return fault.New("POLICY_PRIVATE_ADDRESS", "%s is %s", place(host, addr), why).
		With(fault.Field(urlField), fault.Hint("%s", privateHint(host, port)))
}

func refuseNever(host, addr, why string) *fault.Error {
	return refusePrivate(host, "", addr, why).With(fault.Hint(neverHint))
}

func place(host, addr string) string {
	if addr == "" || addr == host {
		return host
	}
	return host + " has the address " + addr + ", which"
}
