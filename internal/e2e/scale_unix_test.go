//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// scaleDocument is a wrapper of about 1 KiB, a usual size.
func scaleDocument(i int, exposed bool) string {
	return fmt.Sprintf(`{"schemaVersion":1,"id":"service%d.operation%d","name":"Operation %d of service %d","description":%q,
	 "request":{"url":"https://api%d.example.com/v1/items/{{id}}","query":{"limit":"{{limit}}"}},
	 "inputSchema":{"type":"object","properties":{"id":{"type":"string"},"limit":{"type":"integer","default":20}},"required":["id"],"additionalProperties":false},
	 "response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"Id":{"path":"id"},"Name":{"path":"name"}}},"exposeAsTool":%v}`,
		i%97, i, i, i%97, strings.TrimSpace(strings.Repeat("words ", 80)), i%97, exposed)
}

// scaleHome is a home whose store has n wrappers, the first ones as tools.
func scaleHome(t testing.TB, n, exposed int) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.MkdirAll(filepath.Join(home, "wrap"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(home, "wrap", "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ws []*wrapper.Wrapper
	for i := range n {
		w, report := wrapper.Parse([]byte(scaleDocument(i, i < exposed)))
		if !report.OK() {
			t.Fatal(report.Problems)
		}
		ws = append(ws, w)
	}
	for part := range slices.Chunk(ws, store.MaxApply) {
		if _, _, err := s.By(store.Human).Apply(part, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return home
}

// startTime is from the start of the program to the answer of /hello.
func startTime(t testing.TB, program, home string) time.Duration {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "run")
	cmd.Env = []string{"HB_WRAP_HOME=" + home, "HB_WRAP_ADDR=" + addr}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error("hbrestd ended:", err)
		}
	}()
	for time.Since(begun) < 30*time.Second {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		_ = conn.Close()
		resp, err := http.Get("http://" + addr + "/hello?nonce=" + strings.Repeat("ab", 32))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		took := time.Since(begun)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(body), `"proof"`) {
			t.Fatalf("%v: %s", err, body)
		}
		return took
	}
	t.Fatal("nobody accepts a connection in 30 s")
	return 0
}

// A daemon answers soon after its start, however many wrappers it has: within
// 60 ms with 100, and within 300 ms with 10 000. All that other work does is to
// add, so that the quickest of the starts counts.
func TestScaleStart(t *testing.T) {
	dir, err := packed()
	if err != nil {
		t.Fatal(err)
	}
	n, limits, room := soak.Rounds(1000, 10_000), [2]time.Duration{60 * time.Millisecond, 300 * time.Millisecond}, 1.0
	if !soak.Long() {
		limits[1], room = 90*time.Millisecond, 3 // 60 ms and a tenth of what 10 000 may take more
	}
	var said []string
	for i, n := range []int{100, n} {
		home := scaleHome(t, n, min(n, 200))
		var took []time.Duration
		for range soak.Rounds(4, 30) {
			took = append(took, startTime(t, filepath.Join(dir, "hbrestd"), home))
		}
		least := slices.Min(took)
		said = append(said, fmt.Sprintf("%d wrappers: %d starts, quickest %v, median %v", n, len(took), least.Round(time.Millisecond/10), middle(took).Round(time.Millisecond/10)))
		if limit := time.Duration(float64(limits[i]) * room); least > limit {
			t.Errorf("with %d wrappers it takes %v from the start to the answer of /hello, at most %v", n, least, limit)
		}
	}
	soak.Measured(t, "%s", strings.Join(said, "; "))
}

// fetched is what a manifest costs: the bytes of the answer and the time to it.
func (p *process) fetched(t *testing.T, home, query string) (size int, took time.Duration) {
	t.Helper()
	tok, err := os.ReadFile(filepath.Join(home, "wrap", "token"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodGet, p.url+"/wrap/manifest"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(tok)))
	at := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	took = time.Since(at)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v: %d %.300s", err, resp.StatusCode, body)
	}
	return len(body), took
}

// With 10 000 wrappers, 200 of them tools, nobody waits longer than with a few:
// hb-rest shows the first page of the list, and of a search in it, within 200 ms,
// its tools are at hand, a change of one wrapper is told to a connected client
// and costs a few kilobytes, and saving takes as long as with 100.
func TestScaleList(t *testing.T) {
	dir, err := packed()
	if err != nil {
		t.Fatal(err)
	}
	n, room := soak.Rounds(1000, 10_000), time.Duration(soak.Rounds(3, 1))
	const exposed, cap = 200, 128
	home, few := scaleHome(t, n, exposed), scaleHome(t, 100, 0)
	p, small := startProgram(t, filepath.Join(dir, "hbrestd"), home), startProgram(t, filepath.Join(dir, "hbrestd"), few)
	limit := func(what string, took, most time.Duration) {
		t.Helper()
		if most *= room; took > most {
			t.Errorf("%s takes %v, at most %v", what, took, most)
		}
	}

	// All documents are parsed after the start, whether or not somebody asks.
	if m, err := p.client.Select(t.Context(), &api.ManifestQuery{Tools: true}); err != nil || m.Total != n || len(m.Wrappers) != exposed {
		t.Fatalf("%v, %d of %d", err, len(m.Wrappers), m.Total)
	}

	shim := exec.Command(filepath.Join(dir, "hb-rest"))
	shim.Env = []string{"HB_WRAP_HOME=" + home, "HB_WRAP_URL=" + p.url, fmt.Sprintf("HB_WRAP_MAX_TOOLS=%d", cap)}
	c, err := stdio.Start(shim, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	tools := func() time.Duration {
		t.Helper()
		at := time.Now()
		raw, err := c.Request("tools/list", json.RawMessage("{}"))
		took := time.Since(at)
		var list struct {
			Result struct{ Tools []struct{ Name string } }
		}
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if got := len(list.Result.Tools); err != nil || got != 10+cap {
			t.Fatalf("%d tools, %v", got, err)
		}
		return took
	}
	firstTools := tools()
	list := func(args, first, last string) time.Duration {
		t.Helper()
		var took []time.Duration
		for range soak.Rounds(3, 50) {
			at := time.Now()
			r, err := c.Call("wrap_list", json.RawMessage(args))
			took = append(took, time.Since(at))
			if err != nil || r.IsError || !strings.HasPrefix(r.Text(), first) || !strings.HasSuffix(r.Text(), last) {
				t.Fatalf("wrap_list %s: %v, %.200s … %s", args, err, r.Text(), r.Text()[max(0, len(r.Text())-100):])
			}
		}
		return middle(took)
	}
	page := list(`{}`, "service0.operation0 - words", fmt.Sprintf("... and %d more: narrow with query, or raise limit", n-100))
	query := `{"query":"api13.example"}` // a host
	matches := n / 97
	if n%97 > 13 {
		matches++
	}
	end := ""
	if matches > 100 {
		end = fmt.Sprintf("... and %d more: narrow with query, or raise limit", matches-100)
	}
	search := list(query, "service13.operation", end)
	limit("the first page", page, 200*time.Millisecond)
	limit("a search", search, 200*time.Millisecond)
	limit("the first tools/list", firstTools, 200*time.Millisecond)

	// One change, as a connected hb-rest hears of it.
	change := func(p *process, i int, exposed bool, round int) time.Duration {
		t.Helper()
		doc := strings.Replace(scaleDocument(i, exposed), "Operation", fmt.Sprintf("Changed %d: operation", round), 1)
		at := time.Now()
		_, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "update", Wrapper: json.RawMessage(doc)})
		took := time.Since(at)
		if err != nil {
			t.Fatal(err)
		}
		return took
	}
	tools() // the client has seen the list as it is
	m, err := p.client.Select(t.Context(), &api.ManifestQuery{Tools: true})
	if err != nil {
		t.Fatal(err)
	}
	change(p, 0, true, 0) // the first by id, so one of those that are shown
	changed := time.Now()
	for told := false; !told; {
		if _, err := c.Request("ping", json.RawMessage("{}")); err != nil {
			t.Fatal(err)
		}
		select {
		case note := <-c.Notes:
			told = note == "notifications/tools/list_changed"
		case <-time.After(time.Millisecond):
		}
		if time.Since(changed) > 30*time.Second {
			t.Fatal("the client is not told of a change")
		}
	}
	notice := time.Since(changed)
	raw, err := c.Request("tools/list", json.RawMessage("{}"))
	if err != nil || !strings.Contains(string(raw), "Changed 0: operation 0") {
		t.Errorf("%v: the list does not have the change", err)
	}
	size, took := p.fetched(t, home, "?tools=1&since="+m.Mark)
	memory := resident(t, p.cmd.Process.Pid, true)
	whole, wholeTook := p.fetched(t, home, "")
	if size > 4<<10 {
		t.Errorf("one change is told in %d bytes", size)
	}
	limit("fetching one change", took, 20*time.Millisecond)
	limit("a change until the client is told", notice, 500*time.Millisecond) // 100 ms of it hb-rest waits for further ones

	// The two take turns, so that both have the same disk.
	var saveFew, saveMany []time.Duration
	for i := range soak.Rounds(30, 300) {
		saveFew = append(saveFew, change(small, 50, false, i))
		saveMany = append(saveMany, change(p, n-1, false, i))
	}
	ratio := ratio(middle(saveMany), middle(saveFew))
	if ratio > 1.5*float64(room) {
		t.Errorf("saving one of %d wrappers takes %.2f times as long as one of 100", n, ratio)
	}
	at := time.Now()
	if _, err := p.client.Wrapper(t.Context(), "servise13.operation"); !fault.Is(err, "WRAPPER_NOT_FOUND") || !strings.Contains(err.Error(), "near: ") {
		t.Error(err)
	}
	near := time.Since(at)
	limit("an id that is not there", near, 100*time.Millisecond)
	soak.Measured(t, "%d wrappers, %d exposed: first page %v, search %v, first tools/list %v; one change %d bytes in %v (all: %d in %v), client told after %v; a save %v (%v with 100, ratio %.2f); unknown id %v; hbrestd %d MiB (%d once somebody fetched all), hb-rest %d MiB",
		n, exposed, round10(page), round10(search), round10(firstTools), size, round10(took), whole, round10(wholeTook), notice.Round(time.Millisecond),
		round10(middle(saveMany)), round10(middle(saveFew)), ratio, round10(near), memory>>20, resident(t, p.cmd.Process.Pid, true)>>20, resident(t, shim.Process.Pid, true)>>20)
}

func round10(d time.Duration) time.Duration { return d.Round(time.Millisecond / 10) }

// A million audit rows keep nobody waiting: a start is as quick as without them,
// and the newest 50 rows come in under 10 ms over the control socket, in another
// file or not.
func TestScaleAudit(t *testing.T) {
	dir, err := packed()
	if err != nil {
		t.Fatal(err)
	}
	rows, room := soak.Rounds(20_000, 1_000_000), time.Duration(soak.Rounds(3, 1))
	home := scaleHome(t, 100, 10)
	file, err := store.OpenAudit(filepath.Join(home, "wrap", "audit.db"), store.AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Options{Append: file.Append, Tail: file.Tail, Scan: file.Scan, Size: file.Size, Rotate: file.Rotate})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		log.Result(audit.Row{
			Kind: audit.KindRun, Call: fmt.Sprintf("%016x", i), Wrapper: "service1.operation1", Method: "GET", Host: "api1.example.com",
			Status: 200, Bytes: 1234, Duration: 56 * time.Millisecond,
		})
	}
	if err := errors.Join(log.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	var starts []time.Duration
	for range soak.Rounds(3, 40) {
		starts = append(starts, startTime(t, filepath.Join(dir, "hbrestd"), home))
	}
	p := startProgram(t, filepath.Join(dir, "hbrestd"), home)
	cfg, _, err := config.LoadDaemon(func(name string) (string, bool) {
		return map[string]string{"HB_WRAP_HOME": home}[name], name == "HB_WRAP_HOME"
	}, runtime.GOOS)
	if err != nil {
		t.Fatal(err)
	}
	person := control.NewClient(cfg.ControlSocket, control.ClientOptions{})
	var asked, command []time.Duration
	for range soak.Rounds(10, 100) {
		at := time.Now()
		page, err := person.Audit(t.Context(), 50)
		asked = append(asked, time.Since(at))
		if err != nil || len(page.Rows) != 50 || page.Rows[49].Call != fmt.Sprintf("%016x", rows-1) {
			t.Fatalf("%v, %+v", err, page)
		}
	}
	for range soak.Rounds(3, 20) {
		cmd := exec.Command(filepath.Join(dir, "hbrestd"), "audit", "-n", "50")
		cmd.Env = []string{"HB_WRAP_HOME=" + home, "HB_WRAP_URL=" + p.url}
		at := time.Now()
		out, err := cmd.Output()
		command = append(command, time.Since(at))
		if err != nil || strings.Count(string(out), "api1.example.com") != 50 {
			t.Fatalf("%v: %.500s", err, out)
		}
	}
	at := time.Now()
	report, err := person.AuditVerify(t.Context(), &control.AuditVerifyRequest{})
	verify := time.Since(at)
	if err != nil || !report.OK || report.Rows < uint64(rows) || report.First != 1 {
		t.Errorf("%v, %+v", err, report)
	}
	soak.Measured(t, "%d audit rows: start quickest %v, median %v; newest 50 over the control socket %v, `hbrestd audit -n 50` %v (a process of its own); verify %v",
		rows, round10(slices.Min(starts)), round10(middle(starts)), middle(asked).Round(time.Microsecond*10), round10(middle(command)), verify.Round(time.Millisecond))
	if least := slices.Min(starts); least > 60*time.Millisecond*room {
		t.Errorf("a start takes %v", least)
	}
	if got := middle(asked); got > 10*time.Millisecond*room {
		t.Errorf("the newest 50 rows take %v", got)
	}
}
