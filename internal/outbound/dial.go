package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const (
	maxAddrs      = 16                     // addresses of one name that are tried; all are checked
	fallbackDelay = 250 * time.Millisecond // before the next address is tried beside a slow one (RFC 8305)

	// A host that does not take a connection, or does not finish its handshake,
	// within this time does not do it later either; net/http's own client waits
	// as long.
	connectTime   = 10 * time.Second
	handshakeTime = 10 * time.Second
)

// dial is the transport's only way to a connection: resolve once, check every
// answer, connect to the checked address itself.
func (c *Client) dial(ctx context.Context, _, hostport string) (net.Conn, error) {
	// The transport detaches the context of a dial from its request, so that
	// another request may use the connection. A request that failed takes its
	// dial along all the same: the place is more likely dead than wanted.
	ctx, cancel := context.WithTimeout(ctx, c.policy.MaxTimeout)
	defer cancel()
	w := wireOf(ctx)
	defer w.onFailure(cancel)()
	host, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, badURL("the URL has no usable host and port").With(fault.Cause(err))
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, badURL("the URL has no usable port").With(fault.Cause(err))
	}
	addrs, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	targets := make([]netip.AddrPort, 0, len(addrs))
	for _, a := range addrs {
		ap := netip.AddrPortFrom(a, uint16(port))
		if err := c.checkDial(host, ap); err != nil {
			return nil, err
		}
		targets = append(targets, ap)
	}
	conn, err := c.race(ctx, host, targets[:min(len(targets), maxAddrs)])
	if err == nil && w.tls {
		w.guard(conn)
	}
	return conn, err
}

// resolve returns the addresses of a canonical host, IPv4 in plain form, each once.
func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	found, err := c.opt.Lookup(ctx, host)
	if err == nil && len(found) == 0 {
		err = errors.New("no addresses")
	}
	if err != nil {
		return nil, dnsFault(host, err)
	}
	var addrs []netip.Addr
	for _, a := range found {
		if a = a.Unmap(); !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	return addrs, nil
}

func dnsFault(host string, err error) error {
	var d *net.DNSError
	if errors.As(err, &d) && d.IsNotFound {
		return fault.New("UPSTREAM_DNS", "the host name %s was not found", host).With(fault.Cause(err))
	}
	return fault.New("UPSTREAM_DNS", "the host name %s could not be resolved", host).With(fault.Cause(err))
}

// checkDial judges one address of a host just before it is dialled: what
// CheckAddr knows, plus the allow list, the machine's own addresses and the
// daemon's own ports.
func (c *Client) checkDial(host string, ap netip.AddrPort) error {
	a := ap.Addr()
	k, why := classify(a)
	if k == never {
		return refuseNever(host, a.String(), why)
	}
	own := a.Unmap().IsLoopback() || slices.Contains(c.opt.Interfaces(), a.Unmap())
	if own {
		for _, s := range c.opt.Self() {
			if s.Port() == ap.Port() {
				return refuseNever(host, ap.String(), "the daemon's own")
			}
		}
		if k == public {
			k, why = private, "an address of this machine"
		}
	}
	port := strconv.Itoa(int(ap.Port()))
	if k == private && !c.policy.AllowPrivate && c.policy.allowed(host, port) == nil {
		if port == defaultPort("https") { // the scheme is not known here; this one is the rule
			port = ""
		}
		return refusePrivate(host, port, a.String(), why)
	}
	return nil
}

// race connects to the addresses in turn, the next one starting when one fails
// or is slow, and keeps the first connection.
func (c *Client) race(ctx context.Context, host string, targets []netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(targets)) // room for all: nobody blocks on it
	running, next := 0, 0
	start := func() {
		ap := targets[next]
		next, running = next+1, running+1
		go func() {
			conn, err := c.dialOne(ctx, host, ap)
			results <- result{conn, err}
		}()
	}
	defer func() {
		cancel()
		for range running { // cancelled dials return at once; late winners are closed
			if r := <-results; r.conn != nil {
				_ = r.conn.Close()
			}
		}
	}()
	start()
	var first error
	for {
		var later <-chan time.Time
		var timer *time.Timer
		if next < len(targets) {
			timer = time.NewTimer(fallbackDelay)
			later = timer.C
		}
		select {
		case r := <-results:
			running--
			if r.err == nil {
				return r.conn, nil
			}
			if first == nil {
				first = r.err
			}
			if next < len(targets) && ctx.Err() == nil {
				start()
			}
		case <-later:
			start()
		}
		if timer != nil {
			timer.Stop()
		}
		if running == 0 {
			return nil, connectFault(host, first)
		}
	}
}

func (c *Client) dialOne(ctx context.Context, host string, ap netip.AddrPort) (net.Conn, error) {
	if c.opt.DialAddr != nil {
		return c.opt.DialAddr(ctx, ap)
	}
	d := net.Dialer{ControlContext: c.control(host), FallbackDelay: -1}
	return d.DialContext(ctx, "tcp", ap.String())
}

// control is the second net below dial: it sees the address that the socket is
// about to connect to, whatever happened above it.
func (c *Client) control(host string) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return badURL("the address %s cannot be checked", address).With(fault.Cause(err))
		}
		return c.checkDial(host, ap)
	}
}

// connectFault keeps a fault and a context's end as they are and calls the rest
// UPSTREAM_CONNECT, in the system's words without addresses.
func connectFault(host string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	words := "failed"
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		words = "failed (" + op.Err.Error() + ")"
	}
	return fault.New("UPSTREAM_CONNECT", "connecting to %s %s", host, words).With(fault.Cause(err))
}

// interfaces lists the machine's own addresses. Where the system does not tell
// (some sandboxes), there are none: the list is a second line behind the tables.
func interfaces() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, i := range list {
		if n, ok := i.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, a.Unmap())
			}
		}
	}
	return out
}
