package tui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/tui"
)

// The value of a credential is asked for by name and host, reaches the daemon,
// is never written to the terminal, and is overwritten afterwards.
func TestValueIsNeverShown(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		fail       error
		asked      []string
		values     int
	}{
		{"new", `2 n "k" tab "h.example.com" ctrl+s`, nil, []string{"The credential k will be sent to h.example.com.\nValue for Authorization"}, 1},
		{"refused", `2 n "k" tab "h.example.com" ctrl+s`, errors.New("the store is full"), []string{"The credential k will be sent to h.example.com.\nValue for Authorization"}, 0},
		{"basic", `2 n "k" tab "h.example.com" tab right ctrl+s`, nil, []string{
			"The credential k will be sent to h.example.com.\nUser name", "The credential k:\nIt may be empty when the user name is a key.\nPassword",
		}, 2},
		{"rotated", `2 down r`, nil, []string{"The credential weather-key will be sent to api.example.com, files.example.com.\nValue for X-Api-Key"}, 1},
		{"edited with a new one", `2 down e tab tab tab right ctrl+s`, nil, []string{"The credential weather-key will be sent to api.example.com, files.example.com.\nAn empty entry keeps the saved one.\nValue for X-Api-Key"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := lively()
				d.fail["PutSecret"] = c.fail
				p := open(t, d, 80, 24)
				defer p.end()
				p.press(c.keys)
				if diff := cmp.Diff(c.asked, p.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				if strings.Contains(p.out.String(), string(p.value)) {
					t.Error("the value was written to the terminal")
				}
				if len(d.values) != c.values {
					t.Errorf("%d values came to the daemon, want %d", len(d.values), c.values)
				}
				for _, v := range append(d.values, p.given) {
					if !bytes.Equal(v, make([]byte, len(v))) {
						t.Errorf("a value was not overwritten: %q", v)
					}
				}
			})
		})
	}
}

// What came from outside cannot steer the terminal, on any tab or screen.
func TestOutsideTextIsHarmless(t *testing.T) {
	const evil = "x\x1b]0;owned\x07\x1b[2J\u009b31m\u202ey\x00z\r\n\x7f"
	d := newDaemon()
	d.entries = []api.ManifestEntry{{ID: evil, Name: evil, Host: evil, Method: evil, Description: evil, Secret: evil, Quarantined: evil, ExposeAsTool: true, Tool: evil, Drift: []api.Drift{{Field: evil, Since: evil}}, Verified: evil, Damaged: evil}}
	d.docs[evil], _ = json.Marshal(map[string]string{"name": evil})
	d.state = control.SecretState{State: evil, Reason: evil, Fix: evil, Detail: evil, Secrets: []control.SecretInfo{{Name: evil, Kind: evil, Headers: []control.SecretHeader{{Name: evil, Prefix: evil}}, AllowedHosts: []string{evil}, Updated: evil, Problem: evil, UsedBy: []string{evil}}}}
	d.pending = []control.Approval{{ID: evil, State: "pending", Policy: evil, Wrapper: evil, Name: evil, Version: evil, Method: evil, URL: evil, Headers: []string{evil}, Body: evil, BodyType: "text", Credential: evil, Expires: evil}}
	d.policies = control.ApprovalPolicies{Policy: evil, Origin: evil, Wrappers: []control.WrapperApproval{{Wrapper: evil, Policy: evil, Holds: evil, Edited: true}}}
	d.rows = []api.AuditRow{{Seq: 1, Time: evil, Kind: evil, Call: evil, Wrapper: evil, Method: evil, Host: evil, Error: evil, Outcome: evil, Author: evil, Action: evil}}
	d.fail["Test"] = errors.New(evil)
	synctest.Test(t, func(t *testing.T) {
		p := open(t, d, 120, 40)
		defer p.end()
		p.press(`enter esc e esc t d n p esc x 2 enter esc e esc r n esc d n 3 enter esc p esc 4 enter esc v / "x" esc`)
		out := p.out.String()
		for _, bad := range []string{"\x1b]0;owned", "\x1b[2J\u009b", "\u009b", "\u202e", "\x00", "\x07z", "\x7f"} {
			if strings.Contains(out, bad) {
				t.Errorf("%q came through to the terminal", bad)
			}
		}
		if !strings.Contains(out, "owned") {
			t.Error("the text was not shown at all: this test shows nothing")
		}
	})
}

var colour = regexp.MustCompile(`\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m`)

// NO_COLOR is kept to; without it there are colours.
func TestNoColor(t *testing.T) {
	for _, c := range []struct {
		no   string
		want bool
	}{{"NO_COLOR=1", false}, {"NO_COLOR=", true}} {
		synctest.Test(t, func(t *testing.T) {
			p := open(t, lively(), 80, 24, c.no, "CLICOLOR_FORCE=1")
			defer p.end()
			p.press("4")
			if got := colour.MatchString(p.out.String()); got != c.want {
				t.Errorf("%s: colours %t, want %t", c.no, got, c.want)
			}
		})
	}
}

// However the panel ends, the terminal is as it was: the first screen, with a
// cursor, and no mode of the keyboard left on.
func TestEndsClean(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(p *panel)
		want error
	}{
		{"q", func(p *panel) { p.press("q") }, nil},
		{"ctrl+c", func(p *panel) { p.press("ctrl+c") }, nil},
		{"ctrl+c in a form", func(p *panel) { p.press("n ctrl+c") }, nil},
		{"the context", func(p *panel) { p.cancel() }, context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := open(t, lively(), 80, 24)
			defer p.end()
			if !p.emu.IsAltScreen() {
				t.Fatalf("%s: the panel is not on a screen of its own", c.name)
			}
			c.end(p)
			p.settle()
			select {
			case err := <-p.done:
				if !errors.Is(err, c.want) {
					t.Errorf("%s: error %v, want %v", c.name, err, c.want)
				}
			default:
				t.Fatalf("%s: the panel still runs", c.name)
			}
			out := p.out.String()
			for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h", "\x1b[?2004h": "\x1b[?2004l"} {
				if strings.LastIndex(out, on) > strings.LastIndex(out, off) {
					t.Errorf("%s: %q was not taken back", c.name, on)
				}
			}
		})
	}
}

// With thousands of wrappers the panel stays quick and keeps the choice where
// it was when the list changes.
func TestManyWrappers(t *testing.T) {
	d := newDaemon()
	for i := range 5000 {
		d.entries = append(d.entries, api.ManifestEntry{ID: fmt.Sprintf("w%04d", i), Name: "Name", Method: "GET", Host: "api.example.com", ExposeAsTool: true, Tool: fmt.Sprintf("wrap_w%04d", i)})
	}
	synctest.Test(t, func(t *testing.T) {
		p := open(t, d, 80, 24)
		defer p.end()
		p.press("end up")
		if s := p.screen(); !strings.Contains(s, "> w4998") || !strings.Contains(s, "over ca") {
			t.Fatalf("not on the last but one, over the cap:\n%s", s)
		}
		d.change(func() { d.entries = d.entries[1:] })
		p.settle()
		if s := p.screen(); !strings.Contains(s, "> w4998") {
			t.Errorf("the choice went elsewhere:\n%s", s)
		}
	})
}

// The panel asks the keyring for nothing before somebody looks at credentials.
func TestKeyringIsLeftAlone(t *testing.T) {
	d := lively()
	d.fail["SecretState"] = errors.New("asked")
	synctest.Test(t, func(t *testing.T) {
		p := open(t, d, 80, 24)
		defer p.end()
		p.press("3 4 1")
		if s := p.screen(); strings.Contains(s, "asked") {
			t.Errorf("the keyring was asked:\n%s", s)
		}
		p.press("2")
		if s := p.screen(); !strings.Contains(s, "FAILED: asked") {
			t.Errorf("it was not asked then:\n%s", s)
		}
	})
}

// A daemon that answers at once that there is nothing new is not asked in a
// tight loop.
func TestPollsCalmly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &hasty{daemon: lively()}
		r, w := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- tui.Run(ctx, tui.Options{Backend: d, Input: r, Output: io.Discard, Environ: []string{"TERM=xterm"}})
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := d.asked; n < 10 || n > 30 {
			t.Errorf("asked %d times in 10 s", n)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		_ = w.Close()
	})
}

// hasty never waits for news.
type hasty struct {
	*daemon
	asked int
}

func (h *hasty) Manifest(context.Context, uint64) (*api.Manifest, error) {
	h.asked++
	return &api.Manifest{Revision: 1}, nil
}
