package control

import (
	"net"
	"sync"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A Listener accepts the connections of its owner, and of nobody else. It is a
// net.Listener; [Listen] makes one, [Serve] serves on it.
type Listener struct {
	inner net.Listener
	path  string
	// admit says why a connection must be refused; nil where the system has
	// decided that before Accept (Windows: the pipe's access list).
	admit func(net.Conn) error
	// release takes the name out of the file system; nil where closing does.
	release func() error
	// refused is told of each refusal; set by Serve before the first Accept.
	refused func(error)

	once sync.Once
	err  error // of the first Close
}

// Accept waits for the next connection of the owner. One of somebody else is
// closed before a byte of it is read.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.inner.Accept()
		if err != nil {
			return nil, err
		}
		if l.admit == nil {
			return c, nil
		}
		why := l.admit(c)
		if why == nil {
			return c, nil
		}
		c.Close()
		if l.refused != nil {
			l.refused(why)
		}
	}
}

// Close stops accepting. It removes the socket file, but only while the file is
// still the one that Listen made. Closing twice is closing once.
func (l *Listener) Close() error {
	l.once.Do(func() {
		// The name goes first: as long as the socket is open, the file system
		// cannot give its identity to another file.
		if l.release != nil {
			l.err = l.release()
		}
		if err := l.inner.Close(); err != nil {
			l.err = err
		}
	})
	return l.err
}

// Addr is the address of the socket or pipe.
func (l *Listener) Addr() net.Addr { return address(l.path) }

// Path is the path of the socket, or the name of the pipe.
func (l *Listener) Path() string { return l.path }

// An address is the path that was asked for: the system knows the socket under
// the name that it was made with.
type address string

func (a address) Network() string { return network }
func (a address) String() string  { return string(a) }

// cannotListen is every fault of Listen. The catalogue's hint is about the
// store, so each has its own.
func cannotListen(hint, format string, args ...any) *fault.Error {
	return fault.New("STORE_FAILED", format, args...).With(fault.Hint("%s", hint), fault.Retryable(false))
}

// alreadyRunning: somebody answers where we want to listen.
func alreadyRunning(path string) *fault.Error {
	return cannotListen("`hbrestd status` shows the one that runs. Stop it first, or give this one another home with HB_WRAP_HOME.",
		"another hbrestd is already running: it answers on %s", path)
}
