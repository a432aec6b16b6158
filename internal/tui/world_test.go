package tui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/vt"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/tui"
)

// A daemon is a scripted backend. A call that waits for news ends when
// something changes.
type daemon struct {
	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	revision uint64
	away     bool

	docs     map[string]json.RawMessage
	entries  []api.ManifestEntry
	state    control.SecretState
	confirm  string
	pending  []control.Approval
	policies control.ApprovalPolicies
	rows     []api.AuditRow
	fail     map[string]error // by the name of the call
	asked    []string         // changes, in JSON
	values   [][]byte         // of the last PutSecret, as it came
}

func newDaemon() *daemon {
	return &daemon{changed: make(chan struct{}), revision: 1, docs: map[string]json.RawMessage{}, fail: map[string]error{}}
}

// change does something that the panel hears of.
func (d *daemon) change(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	d.revision++
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *daemon) begin(call string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return fault.New("BRIDGE_UNREACHABLE", "no daemon: nothing listens at /run/user/1000/hbrestd/control.sock")
	}
	return d.fail[call]
}

func (d *daemon) note(call string, q any) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(q)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, call+" "+strings.TrimSpace(b.String()))
}

// wait waits until have reports news, the daemon stops, or ctx ends.
func (d *daemon) wait(ctx context.Context, have func() bool) error {
	for {
		if err := d.begin("wait"); err != nil {
			return err
		}
		d.mu.Lock()
		changed, done := d.changed, have()
		d.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (d *daemon) Manifest(ctx context.Context, after uint64) (*api.Manifest, error) {
	if err := d.wait(ctx, func() bool { return after != d.revision }); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &api.Manifest{Revision: d.revision, Wrappers: slices.Clone(d.entries)}, nil
}

func (d *daemon) Wrapper(_ context.Context, id string) (json.RawMessage, error) {
	if err := d.begin("Wrapper"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if doc, ok := d.docs[id]; ok {
		return doc, nil
	}
	return nil, fault.New("WRAPPER_NOT_FOUND", "no wrapper %q", id)
}

func (d *daemon) Secrets(context.Context) (*api.SecretList, error) {
	if err := d.begin("Secrets"); err != nil {
		return nil, err
	}
	l := &api.SecretList{Available: true}
	for _, s := range d.state.Secrets {
		l.Secrets = append(l.Secrets, api.Secret{Name: s.Name, AllowedHosts: s.AllowedHosts})
	}
	return l, nil
}

func (d *daemon) Test(_ context.Context, q *api.TestRequest) (*api.TestResult, error) {
	d.note("test", q)
	if err := d.begin("Test"); err != nil {
		return nil, err
	}
	if q.Sample != nil {
		md := "## Weather\n\n| City | Temp |\n| --- | --- |\n| Oslo | -3.50 |\n"
		return &api.TestResult{Run: &api.RunResult{OK: true, Markdown: &md, Meta: api.Meta{Mode: "table", Selected: 1, Rendered: 1}}}, nil
	}
	return &api.TestResult{Plan: &api.Plan{
		OK: true, DryRun: true, Secret: "weather-key", MaxPages: 1,
		Request:  api.Request{Method: "GET", URL: "https://api.example.com/v1/weather?city=Oslo", Headers: json.RawMessage(`{"Accept":"application/json"}`)},
		Refused:  []api.Refusal{{Code: "POLICY_PRIVATE", Message: "api.example.com is private", Hint: "hbrestd allow add api.example.com"}},
		Warnings: []api.Warning{{Field: "args.x", Code: "UNKNOWN", Message: "no such argument"}},
	}}, nil
}

func (d *daemon) Change(_ context.Context, q *api.ChangeRequest) (*api.ChangeResult, error) {
	d.note("change", q)
	if err := d.begin("Change"); err != nil {
		return nil, err
	}
	id := q.ID
	if q.Action == "create" {
		var doc struct{ ID string }
		_ = json.Unmarshal(q.Wrapper, &doc)
		id = doc.ID
	}
	d.change(func() {
		i := slices.IndexFunc(d.entries, func(e api.ManifestEntry) bool { return e.ID == id })
		switch {
		case q.Action == "delete":
			d.entries = slices.Delete(slices.Clone(d.entries), i, i+1)
		case i < 0:
			d.entries = append(slices.Clone(d.entries), api.ManifestEntry{ID: id, Name: "Saved", Method: "GET", Host: "api.example.com"})
			fallthrough
		default:
			d.docs[id] = q.Wrapper
		}
	})
	return &api.ChangeResult{OK: true, ID: id, Wrapper: q.Wrapper, Revision: d.revision}, nil
}

func (d *daemon) Expose(_ context.Context, q *control.ExposeRequest) (*control.ExposeResult, error) {
	d.note("expose", q)
	if err := d.begin("Expose"); err != nil {
		return nil, err
	}
	d.change(func() {
		d.entries = slices.Clone(d.entries)
		for i := range d.entries {
			if d.entries[i].ID == q.ID {
				d.entries[i].ExposeAsTool = !q.Hide
			}
		}
	})
	return &control.ExposeResult{OK: true, ID: q.ID, Exposed: !q.Hide, Tool: "wrap_" + q.ID, Rank: 3}, nil
}

func (d *daemon) SecretState(context.Context) (*control.SecretState, error) {
	if err := d.begin("SecretState"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.state
	st.Secrets = slices.Clone(st.Secrets)
	return &st, nil
}

func (d *daemon) CheckSecret(_ context.Context, q *control.SecretPut) (*control.SecretResult, error) {
	d.note("check", q)
	if err := d.begin("CheckSecret"); err != nil {
		return nil, err
	}
	s := &control.SecretInfo{Name: q.Name, Kind: q.Kind, AllowedHosts: q.AllowedHosts}
	if d.confirm != "" && !slices.Contains(q.Confirm, "token-host") {
		return &control.SecretResult{Confirm: "token-host", Message: d.confirm, Secret: s}, nil
	}
	return &control.SecretResult{OK: true, Secret: s}, nil
}

func (d *daemon) PutSecret(_ context.Context, q *control.SecretPut) (*control.SecretResult, error) {
	shown := *q
	shown.Values = nil
	d.note(fmt.Sprintf("put with %d values", len(q.Values)), shown)
	if err := d.begin("PutSecret"); err != nil {
		return nil, err
	}
	info := control.SecretInfo{Name: q.Name, Kind: q.Kind, Headers: q.Headers, AllowedHosts: q.AllowedHosts, OAuth: q.OAuth, Updated: "2026-12-01T10:00:00Z"}
	d.change(func() {
		d.values = q.Values
		d.state.Secrets = slices.DeleteFunc(slices.Clone(d.state.Secrets), func(s control.SecretInfo) bool { return s.Name == q.Name })
		d.state.Secrets = append(d.state.Secrets, info)
	})
	return &control.SecretResult{OK: true, Secret: &info}, nil
}

func (d *daemon) DeleteSecret(_ context.Context, q *control.SecretName) (*control.SecretResult, error) {
	d.note("forget", q)
	d.change(func() {
		d.state.Secrets = slices.DeleteFunc(slices.Clone(d.state.Secrets), func(s control.SecretInfo) bool { return s.Name == q.Name })
	})
	return &control.SecretResult{OK: true}, d.begin("DeleteSecret")
}

func (d *daemon) TestSecret(_ context.Context, q *control.SecretTest) (*api.RunResult, error) {
	d.note("try", q)
	if err := d.begin("TestSecret"); err != nil {
		return nil, err
	}
	status, md := 200, "## Weather\n\nFine.\n"
	return &api.RunResult{OK: true, Status: &status, DurationMs: 12, Markdown: &md, Meta: api.Meta{Selected: 1, Rendered: 1}}, nil
}

func (d *daemon) Approvals(ctx context.Context, after uint64) (*control.ApprovalList, error) {
	if err := d.wait(ctx, func() bool { return after != d.revision }); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &control.ApprovalList{Revision: d.revision, Approvals: slices.Clone(d.pending)}, nil
}

func (d *daemon) Approval(_ context.Context, id string) (*control.Approval, error) {
	if err := d.begin("Approval"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.pending {
		if q.ID == id {
			return &q, nil
		}
	}
	return nil, fault.New("APPROVAL_NOT_FOUND", "there is no question %q", id)
}

func (d *daemon) Answer(ctx context.Context, q *control.ApprovalAnswer) (*control.Approval, error) {
	d.note("answer", q)
	if err := d.begin("Answer"); err != nil {
		return nil, err
	}
	d.change(func() {
		d.pending = slices.Clone(d.pending)
		for i := range d.pending {
			if d.pending[i].ID == q.ID {
				d.pending[i].State = map[string]string{"allow": "used", "trust": "used", "deny": "denied"}[q.Answer]
			}
		}
	})
	return d.Approval(ctx, q.ID)
}

func (d *daemon) ApprovalPolicies(context.Context) (*control.ApprovalPolicies, error) {
	if err := d.begin("ApprovalPolicies"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.policies
	return &p, nil
}

func (d *daemon) SetApprovalPolicy(_ context.Context, q *control.ApprovalPolicyChange) (*control.ApprovalPolicies, error) {
	d.note("policy", q)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.policies.Policy, d.policies.Origin = q.Policy, "stored"
	p := d.policies
	return &p, nil
}

func (d *daemon) Audit(context.Context, int) (*api.AuditPage, error) {
	if err := d.begin("Audit"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &api.AuditPage{Rows: slices.Clone(d.rows), Next: uint64(len(d.rows))}, nil
}

func (d *daemon) AuditFollow(ctx context.Context, after uint64, _ int) (*api.AuditPage, error) {
	if err := d.wait(ctx, func() bool { return uint64(len(d.rows)) > after }); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &api.AuditPage{Rows: slices.Clone(d.rows[after:]), Next: uint64(len(d.rows))}, nil
}

func (d *daemon) AuditVerify(context.Context, *control.AuditVerifyRequest) (*control.AuditReport, error) {
	return &control.AuditReport{OK: true, Rows: 3, First: 1, Head: "3:0a1b"}, d.begin("AuditVerify")
}

// A panel is a running panel in front of a terminal of x/vt, in a synctest
// bubble: its clock moves only when everything waits.
type panel struct {
	t      *testing.T
	d      *daemon
	emu    *vt.SafeEmulator
	in     *io.PipeWriter
	out    *recorder
	done   chan error
	cancel context.CancelFunc
	w, h   int
	value  []byte // what is answered to the question for a value
	given  []byte // the slice that was handed out
	asked  []string
	edited string // what the editor makes of each file
	opened []string
}

// A recorder keeps what the program writes, beside showing it.
type recorder struct {
	mu  sync.Mutex
	all bytes.Buffer
	emu *vt.SafeEmulator
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	r.all.Write(p)
	r.mu.Unlock()
	// For an input that is no terminal the renderer counts on one that is not in
	// raw mode, whose driver does this.
	if _, err := r.emu.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// open starts a panel; call it inside a bubble. end ends it.
func open(t *testing.T, d *daemon, w, h int, environ ...string) *panel {
	t.Helper()
	p := &panel{t: t, d: d, emu: vt.NewSafeEmulator(w, h), done: make(chan error, 1), w: w, h: h, value: []byte("value-1234567890")}
	p.out = &recorder{emu: p.emu}
	d.changed = make(chan struct{}) // of this bubble, wherever d was made
	r, in := io.Pipe()
	p.in = in
	go func() { _, _ = io.Copy(in, p.emu) }() // the terminal's answers to questions
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		p.done <- tui.Run(ctx, tui.Options{
			Backend: d, Header: header, Input: r, Output: p.out,
			Environ: append([]string{"TERM=xterm-256color", "NO_COLOR=1"}, environ...),
			Now:     func() time.Time { return time.Now().UTC() },
			Edit:    func(path string) tui.Command { return &editor{p: p, path: path} },
			Ask: func(prompt string) ([]byte, error) {
				p.asked = append(p.asked, prompt)
				if p.value == nil {
					return nil, errors.New("nothing was changed")
				}
				p.given = bytes.Clone(p.value)
				return p.given, nil
			},
		})
	}()
	p.settle()
	p.resize(w, h)
	return p
}

func header(text string) (control.SecretHeader, error) {
	name, prefix, _ := strings.Cut(text, ":")
	if len(prefix) > 12 {
		return control.SecretHeader{}, errors.New("--header " + name + ": what follows the colon looks like a value")
	}
	if prefix != "" {
		prefix += " "
	}
	return control.SecretHeader{Name: name, Prefix: prefix}, nil
}

// settle lets everything that is under way end: only calls for news wait.
func (p *panel) settle() {
	synctest.Wait()
	time.Sleep(time.Second) // of the bubble: a few frames, the time of a lone escape, and that of giving a terminal away
	synctest.Wait()
}

// resize is what a terminal reports that has become another size.
func (p *panel) resize(w, h int) {
	p.w, p.h = w, h
	p.emu.Resize(w, h)
	_, _ = fmt.Fprintf(p.in, "\x1b[48;%d;%d;%d;%dt", h, w, h*16, w*8)
	p.settle()
}

// later lets the time pass after which the panel looks for a daemon again.
func (p *panel) later() {
	time.Sleep(3 * time.Second) // of the bubble
	synctest.Wait()
}

func (p *panel) end() {
	p.cancel()
	_ = p.in.Close()
	_ = p.emu.Close()
	synctest.Wait()
}

var keys = map[string]string{
	"enter": "\r", "esc": "\x1b", "tab": "\t", "shift+tab": "\x1b[Z", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
	"pgup": "\x1b[5~", "pgdown": "\x1b[6~", "home": "\x1b[H", "end": "\x1b[F", "backspace": "\x7f", "delete": "\x1b[3~", "space": " ",
	"ctrl+s": "\x13", "ctrl+c": "\x03", "ctrl+u": "\x15", "ctrl+w": "\x17", "ctrl+a": "\x01", "ctrl+e": "\x05", "ctrl+k": "\x0b",
}

// press sends keys: names, single characters, or text in quotes.
func (p *panel) press(line string) {
	p.t.Helper()
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		var word string
		if line[0] == '"' {
			var ok bool
			if word, line, ok = strings.Cut(line[1:], `"`); !ok {
				p.t.Fatalf("a quote is not closed: %s", word)
			}
		} else {
			word, line, _ = strings.Cut(line, " ")
			if seq, ok := keys[word]; ok {
				word = seq
			} else if len([]rune(word)) != 1 {
				p.t.Fatalf("no key %q", word)
			}
		}
		_, _ = io.WriteString(p.in, word)
		p.settle()
	}
}

// screen is what the person sees, without blanks at the end of lines.
func (p *panel) screen() string {
	var b strings.Builder
	for y := range p.h {
		var line strings.Builder
		for x := 0; x < p.w; {
			c := p.emu.CellAt(x, y)
			if c == nil || c.Width == 0 {
				line.WriteByte(' ')
				x++
				continue
			}
			line.WriteString(c.Content)
			x += c.Width
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// An editor replaces what is in its file.
type editor struct {
	p    *panel
	path string
}

func (e *editor) Run() error {
	data, err := os.ReadFile(e.path)
	if err != nil {
		return err
	}
	e.p.opened = append(e.p.opened, string(data))
	if e.p.edited == "" {
		return nil
	}
	return os.WriteFile(e.path, []byte(e.p.edited), 0o600)
}

func (e *editor) SetStdin(io.Reader)  {}
func (e *editor) SetStdout(io.Writer) {}
func (e *editor) SetStderr(io.Writer) {}
