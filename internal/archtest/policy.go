// Package archtest holds the statement of which package may import which, and
// the tests that keep it true. It is for tests only; start with policy.go.
//
// The tables are policy. Change one only together with a line in
// docs/decisions.md, never to make a build pass.
package archtest

// arrows is read as in the Go tree's own dependency test: "a, b < c" means
// that c may import a and b. What is not listed is not allowed.
const arrows = `
NONE < pkg/recipe, internal/fault, internal/redact, internal/hostname, systemd, launchd;
internal/fault < internal/api, internal/token, internal/config, internal/audit, internal/cortex, internal/approval, internal/clientconfig;
internal/api, internal/fault < internal/control;
pkg/recipe, internal/fault < internal/schema;
pkg/recipe, internal/hostname, internal/fault < internal/paging;
internal/fault, internal/redact, internal/hostname < internal/outbound, internal/secrets;
pkg/recipe, internal/schema, internal/redact, internal/hostname, internal/fault < internal/wrapper;
internal/wrapper, pkg/recipe, internal/redact, internal/hostname, internal/fault < internal/importer;
internal/wrapper, internal/fault < internal/store;
internal/outbound, internal/secrets, internal/fault < internal/oauth;
internal/api, internal/token, internal/fault < internal/client;
internal/wrapper, pkg/recipe, internal/paging, internal/secrets, internal/outbound, internal/approval, internal/fault < internal/executor;
internal/api, internal/token, internal/fault < internal/bridge;
internal/executor, internal/store, internal/secrets, internal/oauth, internal/outbound, internal/audit, internal/cortex, internal/approval < internal/daemon;
internal/wrapper, internal/schema, pkg/recipe, internal/api, internal/token, internal/config, internal/bridge, internal/control, internal/redact, internal/hostname, internal/fault < internal/daemon;
internal/client, internal/api, internal/config, internal/fault < internal/shim;
systemd, launchd, internal/fault < internal/autostart;
internal/control, internal/api, internal/fault < internal/tui;
internal/daemon, internal/control, internal/api, internal/client, internal/autostart, internal/clientconfig, internal/importer, pkg/recipe, internal/redact, internal/tui, internal/config, internal/fault < internal/cli;
internal/cli < cmd/hbrestd;
internal/shim < cmd/hb-rest;
NONE < cmd/hbrestd-keyring;
`

// testOnly packages may be imported from _test.go files and from internal/e2e
// alone, and are free of the rules below.
var testOnly = []string{"internal/golden", "internal/upstream", "internal/e2e", "internal/archtest", "internal/soak"}

// soleImporters names the one product package that may import a module path
// (or any package below it).
var soleImporters = map[string][]string{
	"github.com/99designs/keyring":           {"cmd/hbrestd-keyring"},
	"github.com/zalando/go-keyring":          {"cmd/hbrestd-keyring"},
	"github.com/gsterjov/go-libsecret":       {"cmd/hbrestd-keyring"},
	"github.com/godbus/dbus":                 {"cmd/hbrestd-keyring"},
	"github.com/go-chi/chi/v5":               {"internal/bridge"},
	"github.com/kardianos/service":           {"internal/autostart"},
	"github.com/coreos/go-systemd/v22":       {"internal/cli"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/shim"},
	"github.com/xeipuuv/gojsonschema":        {"internal/schema"},
	"go.etcd.io/bbolt":                       {"internal/store"},
	"github.com/go-json-experiment/json":     {"pkg/recipe", "internal/bridge", "internal/shim"},
	"golang.org/x/net/idna":                  {"internal/hostname"},
	"golang.org/x/net/html":                  {"pkg/recipe"},
	"github.com/spf13/cobra":                 {"internal/cli"},
	"golang.org/x/oauth2":                    {"internal/oauth"},
	"charm.land/bubbletea/v2":                {"internal/tui"},
	"charm.land/bubbles/v2":                  {},
	"charm.land/huh/v2":                      {},
	"github.com/charmbracelet/x/vt":          {},
	"modernc.org/sqlite":                     {"internal/cortex"},
	"os/exec":                                {"internal/autostart", "internal/secrets", "internal/cli"},
	"net":                                    {"internal/outbound", "internal/control", "internal/client", "internal/daemon"},
	"net/http":                               {"internal/outbound", "internal/oauth", "internal/bridge", "internal/control", "internal/client", "internal/daemon"},
	"github.com/google/go-cmp":               {},
	"github.com/rogpeppe/go-internal":        {},
	"github.com/mccutchen/go-httpbin/v2":     {},
	"github.com/yuin/goldmark":               {},
	"testing":                                {},
	"internal/golden":                        {},
}

// neverDirectly are imports that would break a package's promise.
var neverDirectly = []struct {
	packages, imports []string
	why               string
}{
	{
		[]string{"pkg/recipe", "internal/schema", "internal/wrapper", "internal/paging", "internal/importer"},
		[]string{"os", "net", "net/http", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "syscall"},
		"meaning is pure: the same document and arguments always give the same request and the same text",
	},
	{[]string{"internal/hostname", "internal/redact"}, []string{"net", "net/http", "os"}, "leaves decide on text alone"},
	{[]string{"internal/secrets"}, []string{"net", "net/http", "log/slog"}, "values never travel"},
	{[]string{"internal/fault", "internal/api"}, []string{"net/http", "log/slog", "os"}, "words have no effects"},
}

// neverLinked is checked on what a program really contains.
var neverLinked = []struct {
	program   string
	forbidden []string
	why       string
}{
	{"cmd/hbrestd", []string{"github.com/99designs/keyring", "github.com/godbus/dbus"}, "the package connects to the session bus before main; only a short-lived helper may link it"},
	{"cmd/hb-rest", []string{
		"internal/secrets", "internal/store", "internal/executor", "internal/control", "internal/daemon", "internal/wrapper", "internal/schema",
		"github.com/99designs/keyring", "go.etcd.io/bbolt", "github.com/xeipuuv/gojsonschema", "github.com/kardianos/service", "github.com/go-chi/chi",
	}, "secrets never enter the MCP process, and clients start it often"},
	{"internal/bridge", []string{"internal/secrets", "internal/store", "internal/executor", "internal/control"}, "what is not in the agent's face cannot be called by an agent"},
}

// impure are names whose use makes a pure package depend on the moment or the
// machine.
var impure = map[string]bool{
	"time.Now": true, "time.Since": true, "time.Until": true, "time.Local": true, "time.LoadLocation": true,
	"time.After": true, "time.Sleep": true, "time.NewTimer": true, "time.Tick": true,
}
