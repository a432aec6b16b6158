package schema_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// hostile are schemas that want a file, a connection or an endless loop of a
// validator: every keyword that points somewhere, to every kind of place, in
// every position, and the same words as plain data, which are admitted.
func hostile(port int, file string) (texts []string) {
	keywords := []string{"$ref", "$id", "id", "$schema", "$recursiveRef", "$dynamicRef", "$anchor", "$vocabulary", "$import", "extends", "contentSchema"}
	places := []string{
		fmt.Sprintf("http://127.0.0.1:%d/x.json", port), fmt.Sprintf("https://127.0.0.1:%d/x.json#/definitions/a", port), fmt.Sprintf("//127.0.0.1:%d/x", port),
		fmt.Sprintf("ftp://127.0.0.1:%d/x", port), fmt.Sprintf("ws://127.0.0.1:%d", port), fmt.Sprintf("http://localhost:%d/", port),
		"file://" + file, "file:///etc/passwd", "file://localhost/etc/passwd", file, "/etc/passwd", "../../../../etc/passwd", "x.json", `\\127.0.0.1\share\x`,
		"#", "#/", "#/properties/p", "#/definitions/a", "", "data:application/json,{}", "urn:x", "unix:///run/x.sock", "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema",
	}
	shapes := []string{
		`{"type":"object",%s:%s}`,
		`{%s:%s}`,
		`{"type":"object","properties":{"p":{%s:%s}}}`,
		`{"type":"object","properties":{"p":{"type":"string",%s:%s}}}`,
		`{"type":"object","properties":{"p":{"type":"array","items":{%s:%s}}}}`,
		`{"type":"object","properties":{"p":{"type":"array","items":[{%s:%s}]}}}`,
		`{"type":"object","additionalProperties":{%s:%s}}`,
		`{"type":"object","definitions":{"a":{%s:%s}},"properties":{"p":{}}}`,
		`{"type":"object","$defs":{"a":{%s:%s}}}`,
		`{"type":"object","allOf":[{%s:%s}]}`,
		`{"type":"object","patternProperties":{".":{%s:%s}}}`,
		`{"type":"object","dependencies":{"p":{%s:%s}}}`,
		`{"type":"object","properties":{"p":{"default":{%s:%s}}}}`,
		`{"type":"object","properties":{"p":{"enum":[{%s:%s}]}}}`,
		`{"type":"object","properties":{"p":{"examples":[{%s:%s}]}}}`,
		`{"type":"object","properties":{%s:{"type":"string","default":%s}}}`,
	}
	for _, keyword := range keywords {
		k, _ := json.Marshal(keyword)
		for _, place := range places {
			p, _ := json.Marshal(place)
			for _, shape := range shapes {
				texts = append(texts, fmt.Sprintf(shape, k, p))
			}
			texts = append(texts, fmt.Sprintf(`{"$id":%s,"type":"object","properties":{"p":{%s:"y.json"}}}`, p, k))
		}
	}
	return texts
}

// Promise 18: no schema and no argument opens a file or a connection. The system
// is asked: strace sees every call of a process that reads all of them.
func TestHostileSchemasOpenNothing(t *testing.T) {
	const begin, end = "/hb-rest-test-begins", "/hb-rest-test-ends" // asked for, to be seen in the trace
	if where := os.Getenv("HB_TEST_HOSTILE"); where != "" {
		var port int
		var file string
		if _, err := fmt.Sscanf(where, "%d %s", &port, &file); err != nil {
			t.Fatal(err)
		}
		texts := hostile(port, file)
		parse(t, `{"type":"object","properties":{"p":{"type":"string","pattern":"a"}}}`) // what is made once
		_, _ = os.Stat(begin)
		admitted := 0
		for _, text := range texts {
			doc, err := recipe.Decode([]byte(text), recipe.DecodeLimits{})
			if err != nil {
				t.Fatal(err)
			}
			s, _ := schema.Parse(doc, "s")
			args, err := schema.DecodeArgs([]byte(strings.ReplaceAll(text, `"type":"object",`, "")))
			if err == nil && s != nil {
				admitted++
				s.Validate(args)
			}
		}
		_, _ = os.Stat(end)
		t.Logf("admitted %d of %d", admitted, len(texts))
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here, which alone sees what a process opens; .ci/run installs it")
	}
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer trap.Close()
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-qq", "-e", "trace=%file,%network", "-o", trace, os.Args[0], "-test.v", "-test.run=^TestHostileSchemasOpenNothing$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("HB_TEST_HOSTILE=%d %s", trap.Addr().(*net.TCPAddr).Port, file))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var admitted, all int
	_, said, _ := strings.Cut(string(out), "admitted ")
	if _, err := fmt.Sscanf(said, "%d of %d", &admitted, &all); err != nil || all < 4000 || admitted < 500 {
		t.Errorf("%v: %d of %d schemas are admitted", err, admitted, all)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), begin) != 1 || strings.Count(string(text), end) != 1 {
		t.Fatalf("the trace does not show where it begins and ends: %s", text)
	}
	_, between, _ := strings.Cut(string(text), begin)
	_, between, _ = strings.Cut(between, "\n") // the rest of that line
	between, _, _ = strings.Cut(between, end)
	calls := 0
	for line := range strings.Lines(between) {
		// The last line is the begin of the one that asks for the end.
		if strings.HasSuffix(line, "\n") && !strings.Contains(line, "--- SIG") && !strings.Contains(line, "+++ ") {
			calls++
			t.Errorf("a schema led to: %s", strings.TrimSpace(line))
		}
	}
	soak.Measured(t, "%d hostile schemas, %d of them admitted and given arguments, under strace: %d opened files and connections", all, admitted, calls)
}
