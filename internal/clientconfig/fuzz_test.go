package clientconfig_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// seeds are the files of the golden cases for a format.
func seeds(f *testing.F, pattern string) {
	f.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds in %s: %v", pattern, err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		if _, rest, ok := bytes.Cut(data, []byte("-- before --\n")); ok {
			before, _, _ := bytes.Cut(rest, []byte("-- "))
			f.Add(before)
		}
	}
}

// fuzzed runs an install and an uninstall on a file with these bytes. What was
// there and is not ours must have the same values afterwards, our entry must be
// the wanted one, and a second install must change nothing.
func fuzzed(t *testing.T, name string, data []byte, decode func([]byte) (map[string]any, error), list string) {
	client, _ := clientconfig.Find(name)
	wanted := wantedOf(map[string]string{"env": "HB_WRAP_HOME=/srv/hb"})
	install := clientconfig.Request{Scope: clientconfig.User, Wanted: wanted, Force: true}
	after, err := clientconfig.PlanText(client, data, install)
	if fault.Is(err, "CLIENT_FILE_REFUSED") {
		// Only where the list of servers is something else can nothing be done.
		if was, err := decode(data); err == nil {
			if list, ok := was[list]; !ok || reflect.TypeOf(list) == reflect.TypeFor[map[string]any]() {
				t.Fatalf("refused\n%q", data)
			}
		}
	}
	if err != nil {
		return
	}
	was, err := decode(data)
	if err != nil {
		t.Fatalf("accepted what another reader refuses: %v\n%q", err, data)
	}
	is, err := decode(after)
	if err != nil {
		t.Fatalf("the result is not valid: %v\n%q\n%q", err, data, after)
	}
	servers, _ := is[list].(map[string]any)
	entry, _ := servers[clientconfig.Name].(map[string]any)
	env, _ := entry["env"].(map[string]any)
	if entry["command"] != "/usr/bin/hb-rest" || env["HB_WRAP_HOME"] != "/srv/hb" {
		t.Fatalf("our entry is %v\n%q\n%q", entry, data, after)
	}
	if !reflect.DeepEqual(rest(was, list), rest(is, list)) {
		t.Fatalf("something else changed\n%q\n%q", data, after)
	}
	if again, err := clientconfig.PlanText(client, after, install); err != nil || !bytes.Equal(again, after) {
		t.Fatalf("a second install: %v\n%q\n%q", err, after, again)
	}
	out, err := clientconfig.PlanText(client, after, clientconfig.Request{Scope: clientconfig.User, Force: true})
	if err != nil {
		t.Fatalf("uninstall: %v\n%q", err, after)
	}
	left, err := decode(out)
	if err != nil || !reflect.DeepEqual(rest(was, list), rest(left, list)) {
		t.Fatalf("uninstall: %v\n%q\n%q\n%q", err, data, after, out)
	}
	if servers, ok := left[list].(map[string]any); ok && servers[clientconfig.Name] != nil {
		t.Fatalf("uninstall left our entry: %q", out)
	}
}

// rest is a document without our entry, and without a list that is empty then.
func rest(doc map[string]any, list string) map[string]any {
	out := map[string]any{}
	for k, v := range doc {
		out[k] = v
	}
	servers, ok := out[list].(map[string]any)
	if !ok {
		return out
	}
	others := map[string]any{}
	for k, v := range servers {
		if k != clientconfig.Name {
			others[k] = v
		}
	}
	if delete(out, list); len(others) > 0 {
		out[list] = others
	}
	return out
}

func FuzzClientConfig(f *testing.F) {
	seeds(f, "testdata/golden/json-*.txtar")
	seeds(f, "testdata/golden/zed-*.txtar")
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzed(t, "cursor", data, func(b []byte) (map[string]any, error) {
			if b = bytes.TrimPrefix(b, []byte(bom)); len(bytes.TrimSpace(b)) == 0 {
				return map[string]any{}, nil
			}
			plain, err := hujson.Standardize(bytes.Clone(b))
			if err != nil {
				return nil, err
			}
			d := json.NewDecoder(bytes.NewReader(plain))
			d.UseNumber()
			var m map[string]any
			return m, d.Decode(&m)
		}, "mcpServers")
	})
}

func FuzzClientConfigTOML(f *testing.F) {
	seeds(f, "testdata/golden/toml-*.txtar")
	seeds(f, "testdata/golden/codex-*.txtar")
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(bytes.ToLower(data), []byte("nan")) {
			return // is not equal to itself
		}
		fuzzed(t, "codex", data, func(b []byte) (map[string]any, error) {
			m := map[string]any{}
			return m, toml.Unmarshal(bytes.TrimPrefix(b, []byte(bom)), &m)
		}, "mcp_servers")
	})
}
