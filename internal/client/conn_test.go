package client

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipeEnd is an idle connection and whether it has been closed.
func pipeEnd(t *testing.T) (p *provenConn, closed func() bool) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	return &provenConn{Conn: near}, func() bool {
		_ = far.SetReadDeadline(time.Now().Add(time.Nanosecond))
		_, err := far.Read(make([]byte, 1))
		return err == io.EOF
	}
}

// Connections wait for the next call for ninety seconds, the last used is taken
// first, and a retired line keeps none.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{token: "t"}
		first, firstClosed := pipeEnd(t)
		second, secondClosed := pipeEnd(t)
		l.put(first)
		time.Sleep(idleTimeout / 2)
		l.put(second)
		if got := l.take(); got != second {
			t.Error("the last used one was not taken first")
		}
		l.put(second)
		time.Sleep(idleTimeout/2 - time.Second)
		synctest.Wait()
		if firstClosed() {
			t.Error("closed a second too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !firstClosed() || secondClosed() {
			t.Errorf("after ninety seconds: %v, the other %v", firstClosed(), secondClosed())
		}
		time.Sleep(idleTimeout / 2)
		synctest.Wait()
		if !secondClosed() || len(l.idle) != 0 || l.sweeper != nil {
			t.Errorf("at last: %v, %d idle", secondClosed(), len(l.idle))
		}

		kept, keptClosed := pipeEnd(t)
		late, lateClosed := pipeEnd(t)
		l.put(kept)
		l.close()
		l.put(late)
		if !keptClosed() || !lateClosed() || l.take() != nil {
			t.Errorf("a retired line: %v, %v", keptClosed(), lateClosed())
		}
	})
}

func TestMostIdleConnections(t *testing.T) {
	l := &line{token: "t"}
	defer l.close()
	var ends []func() bool
	for range maxIdle + 1 {
		p, closed := pipeEnd(t)
		l.put(p)
		ends = append(ends, closed)
	}
	if ends[maxIdle-1]() || !ends[maxIdle]() || len(l.idle) != maxIdle {
		t.Errorf("at the limit closed %v, one over closed %v, %d idle", ends[maxIdle-1](), ends[maxIdle](), len(l.idle))
	}
}

// The header of an answer is bounded; a body does not count.
func TestAnswerHeaderLimit(t *testing.T) {
	answer := func(header, body int) error {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			defer far.Close()
			_, _ = far.Read(make([]byte, 1000))
			fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX: %s\r\n\r\n%s", body, strings.Repeat("x", header), strings.Repeat("y", body))
		}()
		p := &provenConn{Conn: near}
		r, _, again, err := p.exchange([]byte("GET / HTTP/1.1\r\n\r\n"))
		if err == nil && (len(r.body) != body || !again) {
			t.Errorf("%d bytes of %d, again %v", len(r.body), body, again)
		}
		return err
	}
	around := len("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\nX: \r\n\r\n")
	if err := answer(maxHeader-around, 10_000_000); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if err := answer(maxHeader-around+1, 10_000_000); err == nil {
		t.Error("one over was read")
	}
}
