package shim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// messages reads in to its end and returns the messages as lines, and what was
// written meanwhile.
func messages(t *testing.T, in string) (got []string, out string) {
	t.Helper()
	var w bytes.Buffer
	c, err := NewStdio(strings.NewReader(in), &w).Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.Read(context.Background())
		if err == io.EOF {
			return got, w.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		line, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line))
	}
}

func TestReadLines(t *testing.T) {
	note := func(m string) string { return `{"jsonrpc":"2.0","method":"` + m + `"}` }
	refused := func(code, message string) string {
		return `{"jsonrpc":"2.0","id":null,"error":{"code":` + code + `,"message":"` + message + `"}}` + "\n"
	}
	tests := map[string]struct {
		in   string
		want []string
		out  string
	}{
		"lines":         {in: note("a") + "\n" + note("b") + "\n", want: []string{note("a"), note("b")}},
		"carriage":      {in: note("a") + "\r\n\r\n\n" + note("b"), want: []string{note("a"), note("b")}},
		"byte order":    {in: "\xef\xbb\xbf" + note("a") + "\n", want: []string{note("a")}},
		"batch":         {in: "[" + note("a") + "," + note("b") + "]\n" + note("c") + "\n", want: []string{note("a"), note("b"), note("c")}},
		"no JSON":       {in: "hello\n" + note("a") + "\n", want: []string{note("a")}, out: refused("-32700", "not JSON: syntax error")},
		"two in a line": {in: note("a") + note("b") + "\n", out: refused("-32700", "not JSON: syntax error")},
		"wrong version": {
			in: `{"jsonrpc":"1.0","method":"a"}` + "\n" + note("b"), want: []string{note("b")},
			out: refused("-32600", `not a JSON-RPC 2.0 message: invalid message version tag \"1.0\"; expected \"2.0\"`),
		},
		"part of a batch": {
			in: `[5,` + note("b") + "]\n", want: []string{note("b")},
			out: refused("-32600", "not a JSON-RPC 2.0 message: unmarshaling jsonrpc message: json: cannot unmarshal \\\"5\\\" into Go value of type jsonrpc2.wireDecode"),
		},
	}
	for name, tt := range tests {
		got, out := messages(t, tt.in)
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if name == "part of a batch" { // the rest of the text is a library's
			out, tt.out = out[:min(len(out), 85)], tt.out[:85]
		}
		if d := cmp.Diff(tt.out, out); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestLineLimit(t *testing.T) {
	head, tail := `{"jsonrpc":"2.0","method":"`, `"}`+"\n"
	fill := maxFrame - len(head) - len(tail)
	next := `{"jsonrpc":"2.0","method":"next"}`
	if got, out := messages(t, head+strings.Repeat("x", fill)+tail+next); len(got) != 2 || out != "" {
		t.Errorf("at the limit: %d messages, %s", len(got), out)
	}
	got, out := messages(t, head+strings.Repeat("x", fill+1)+tail+next)
	if d := cmp.Diff([]string{next}, got); d != "" || out != `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message over 16 MiB was not read"}}`+"\n" {
		t.Errorf("one over: %s\n%s", d, out)
	}
}

// TestManyCalls: a client that sends calls faster than it reads answers is not
// read further, but it is still seen to go away.
func TestManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in strings.Builder
		for i := range maxCalls + 1 {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
		}
		stdio := NewStdio(strings.NewReader(in.String()), io.Discard)
		c, err := stdio.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var first jsonrpc.ID
		for i := range maxCalls {
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = m.(*jsonrpc.Request).ID
			}
		}
		more := make(chan error, 1)
		go func() { _, err := c.Read(t.Context()); more <- err }()
		synctest.Wait()
		select {
		case err := <-more:
			t.Fatalf("one over the limit was read: %v", err)
		case <-stdio.EOF():
		default:
			t.Error("the end of input was not seen")
		}
		if err := c.Write(t.Context(), &jsonrpc.Response{ID: first, Result: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if err := <-more; err != nil {
			t.Errorf("after an answer: %v", err)
		}
	})
}

// TestReadAhead: what nobody takes is not read on for ever.
func TestReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, w := io.Pipe()
		c, err := NewStdio(in, io.Discard).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const size = 16 << 10
		line := []byte(`{"jsonrpc":"2.0","method":"` + strings.Repeat("x", size-30) + `"}` + "\n")
		var sent atomic.Int64
		go func() {
			for {
				if _, err := w.Write(line); err != nil {
					return
				}
				sent.Add(1)
			}
		}()
		synctest.Wait()
		full := sent.Load()
		if got := full * size; got < maxAhead-size || got > maxAhead+8*size { // the reader has a buffer of its own
			t.Errorf("%d bytes were read ahead", got)
		}
		for range 4 {
			if _, err := c.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := sent.Load(); got < full+3 {
			t.Errorf("%d lines, then %d", full, got)
		}
		_ = c.Close()
		_ = in.Close()
	})
}

// TestNeverRead: the end of a client that sends without end and reads nothing
// cannot be seen, so it is taken for gone. One that reads slowly is not.
func TestNeverRead(t *testing.T) {
	for name, tt := range map[string]struct {
		pause time.Duration // of the client between two lines
		ends  bool
	}{
		"slow":  {stuckTime - time.Second, false},
		"never": {24 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, w := io.Pipe()
				out := paused{tt.pause, make(chan struct{})}
				stdio := NewStdio(in, out)
				c, err := stdio.Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					for {
						if _, err := io.WriteString(w, "hello\n"); err != nil {
							return
						}
					}
				})
				wg.Go(func() { // refuses each line
					for {
						if _, err := c.Read(t.Context()); err != nil {
							return
						}
					}
				})
				start := time.Now()
				select {
				case <-stdio.EOF():
					if took := time.Since(start); !tt.ends || took > stuckTime+stuckTime/10 {
						t.Errorf("ended after %v", took)
					}
				case <-time.After(time.Minute):
					if tt.ends {
						t.Error("it did not end")
					}
				}
				_ = c.Close()
				_ = in.Close()
				close(out.end)
				wg.Wait()
			})
		})
	}
}

// paused is an output whose reader takes that long for each line.
type paused struct {
	long time.Duration
	end  chan struct{}
}

func (p paused) Write(b []byte) (int, error) {
	select {
	case <-time.After(p.long):
	case <-p.end:
	}
	return len(b), nil
}

func TestWriteLimit(t *testing.T) {
	var w bytes.Buffer
	c, err := NewStdio(strings.NewReader(""), &w).Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	id, err := jsonrpc.MakeID("call")
	if err != nil {
		t.Fatal(err)
	}
	write := func(n int) string { // a result of n bytes
		w.Reset()
		if err := c.Write(context.Background(), &jsonrpc.Response{ID: id, Result: []byte(`"` + strings.Repeat("x", n-2) + `"`)}); err != nil {
			t.Fatal(err)
		}
		return w.String()
	}
	rest := len(write(2)) - 2 // what the envelope and the line feed take
	if got := write(maxFrame - rest); len(got) != maxFrame {
		t.Errorf("at the limit: %d bytes", len(got))
	}
	want := `{"jsonrpc":"2.0","id":"call","error":{"code":-32603,"message":"the answer is over the 16 MiB that a line may have"}}` + "\n"
	if got := write(maxFrame - rest + 1); got != want {
		t.Errorf("one over: %.200s", got)
	}
}
