package bridge_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A block is one fenced example of docs/api.md.
type block struct{ kind, arg, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w+)(?: (\\w+)=(\\S+))?\n(.*?)^```$")

func blocks(t *testing.T) []block {
	t.Helper()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []block
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		switch {
		case m[1] == "sh":
			out = append(out, block{"sh", "", m[4]})
		case m[1] == "json" && m[2] != "":
			out = append(out, block{m[2], m[3], m[4]})
		default:
			t.Errorf("a block that no test runs: ```%s\n%.60s", m[1], m[4])
		}
	}
	if n := bytes.Count(page, []byte("\n```")); n != 2*len(out) {
		t.Errorf("%d fences, %d blocks read", n, len(out))
	}
	return out
}

// Each request of the page is accepted; each answer is exactly what its type
// holds, nothing missing and nothing more; each error has its status and the
// catalogue's hint.
func TestDocsExamples(t *testing.T) {
	answers := map[string]func() any{
		"hello": func() any { return new(api.Hello) }, "status": func() any { return new(api.Status) }, "manifest": func() any { return new(api.Manifest) },
		"secrets": func() any { return new(api.SecretList) }, "audit": func() any { return new(api.AuditPage) }, "recall": func() any { return new(api.RecallResult) },
		"run": func() any { return new(api.RunResult) }, "plan": func() any { return new(api.Plan) },
		"derive": func() any { return new(api.DeriveResult) }, "change": func() any { return new(api.ChangeResult) },
	}
	seen := map[string]int{}
	for i, b := range blocks(t) {
		name := fmt.Sprintf("block %d (%s=%s)", i, b.kind, b.arg)
		seen[b.kind+"="+b.arg]++
		switch b.kind {
		case "request":
			f := &fake{}
			s := serve(t, f)
			if resp, body := s.call(t, "POST", b.arg, b.text); resp.StatusCode != 200 {
				t.Errorf("%s: %s %s", name, resp.Status, body)
			}
		case "answer":
			empty, ok := answers[b.arg]
			if !ok {
				t.Errorf("%s: no such type", name)
				continue
			}
			roundTrip(t, name, b.text, empty())
		case "error":
			var e api.Error
			roundTrip(t, name, b.text, &e)
			status, _ := strconv.Atoi(b.arg)
			if got := fault.Code(e.Code).HTTPStatus(); got != status {
				t.Errorf("%s: %s is %d", name, e.Code, got)
			}
			entry, ok := fault.Lookup(fault.Code(e.Code))
			if !ok || entry.Hint != e.Hint || entry.Retryable != e.Retryable {
				t.Errorf("%s: the catalogue says %+v", name, entry)
			}
			for _, d := range e.Details {
				if !isDetail(d.Code) {
					t.Errorf("%s: no such detail code %s", name, d.Code)
				}
			}
		}
	}
	for kind := range answers {
		if seen["answer="+kind] == 0 {
			t.Errorf("no example of the answer %s", kind)
		}
	}
	for _, rt := range routes[7:] {
		if seen["request="+rt.path] == 0 && rt.path != "/wrap/secrets" {
			t.Errorf("no example of a request to %s", rt.path)
		}
	}
}

func isDetail(code string) bool {
	for _, group := range fault.DetailCodes() {
		for _, c := range group {
			if string(c) == code {
				return true
			}
		}
	}
	return false
}

// roundTrip reads text into v, unknown members refused, and writes it again:
// the same tokens in the same order, numbers digit by digit.
func roundTrip(t *testing.T, name, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var again, want bytes.Buffer
	enc := json.NewEncoder(&again)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if err := json.Compact(&want, []byte(text)); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if d := cmp.Diff(strings.TrimSpace(want.String()), strings.TrimSpace(again.String())); d != "" {
		t.Errorf("%s (-page +type):\n%s", name, d)
	}
}

// Each shell example works as it stands, but for the port: sh and curl run it.
func TestDocsCommands(t *testing.T) {
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("this machine has no %s to run the examples with", program)
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(testToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range blocks(t) {
		if b.kind != "sh" {
			continue
		}
		n++
		f := &fake{}
		s := serve(t, f)
		script := regexp.MustCompile(`(?m)^TOKEN_FILE=.*$`).ReplaceAllString(b.text, "")
		script = strings.ReplaceAll(script, "127.0.0.1:4111", s.addr)
		cmd := exec.Command("sh", "-eu", "-c", script)
		cmd.Env = append(os.Environ(), "TOKEN_FILE="+file, "no_proxy=*")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s\n%v: %s", b.text, err, out)
			continue
		}
		var ok struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal(out, &ok); err != nil || ok.Code != "" {
			t.Errorf("%s\nanswered %s", b.text, out)
		}
		if calls, _ := f.asked(); len(calls) != 1 {
			t.Errorf("%s\ncalled %v", b.text, calls)
		}
	}
	if n < 10 {
		t.Errorf("only %d shell examples", n)
	}
}

// The worked proof is right.
func TestDocsProof(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("for ([0-9.:]+), the token `([0-9a-f]{64})` and the nonce `([0-9a-f]{64})`").FindStringSubmatch(string(page))
	if m == nil {
		t.Fatal("no worked proof on the page")
	}
	nonce, _ := hex.DecodeString(m[3])
	if want := api.Proof(m[2], netip.MustParseAddrPort(m[1]), nonce); !strings.Contains(string(page), `{"proof": "`+want+`"`) {
		t.Errorf("the proof is %s", want)
	}
}

// Each route of the page exists, and each that exists is on the page.
func TestDocsRoutes(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var on []string
	for _, m := range regexp.MustCompile(`(?m)^## ((?:GET|POST) /\S+)$`).FindAllStringSubmatch(string(page), -1) {
		on = append(on, m[1])
	}
	var have []string
	for _, rt := range append(routes[1:len(routes):len(routes)], routes[0]) {
		have = append(have, rt.method+" "+rt.path)
	}
	if d := cmp.Diff(have, on); d != "" {
		t.Errorf("(-code +page):\n%s", d)
	}
}
