package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// A program is what is measured: a service and a shim before it.
type program struct {
	name      string
	service   *exec.Cmd // what to start, again and again: a copy of it
	shim      func(service string) *exec.Cmd
	listening *regexp.Regexp
	onStderr  bool                // where listening is written
	setUp     func(*client) error // once, before anything is measured
	calls     map[string]call
	sizes     map[string]string // rows of sizes, and their files
}

// A call is a tool's name and arguments, and what its text must be.
type call struct {
	tool, args string
	check      func(text string) error
}

// command is cmd once more: a Cmd can be started only once.
func command(cmd *exec.Cmd) *exec.Cmd {
	again := exec.Command(cmd.Path, cmd.Args[1:]...)
	again.Env, again.Dir = cmd.Env, cmd.Dir
	return again
}

// A world is a folder with the programs, and the API.
type world struct {
	dir   string
	api   *server
	token string
	asked int // requests of ours for the number of connections, each by one of its own
	facts facts
}

func (w *world) path(name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(w.dir, "bin", name)
}

// environment is ours without the settings of an hb-rest that is installed here.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HB_") && !strings.HasPrefix(v, "KUANG_") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

const module = "github.com/hyperbolic-gateway/hb-rest/"

// build makes the programs as packages hold them.
func (w *world) build() error {
	dir := filepath.Join(w.dir, "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+string(filepath.Separator),
		module+"cmd/hbrestd", module+"cmd/hb-rest", module+"cmd/hbrestd-keyring", module+"internal/e2e/floor")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, out)
	}
	return nil
}

func (w *world) floor() *program {
	env := environment("FLOOR_TOKEN=" + w.token)
	cmd := func(args ...string) *exec.Cmd {
		c := exec.Command(w.path("floor"), args...)
		c.Env = env
		return c
	}
	return &program{
		name: "floor", service: cmd("daemon", "-api", w.api.url), listening: regexp.MustCompile(`^listening (\S+)`),
		shim:  func(service string) *exec.Cmd { return cmd("shim", "-daemon", service) },
		setUp: func(*client) error { return nil },
		calls: map[string]call{
			"object": {"object", `{"id":"` + objectID + `"}`, same(w.facts.object)},
			"table":  {"table", `{"limit":10}`, same(w.facts.ten)},
			"big":    {"big", `{}`, same(w.facts.fifty)},
			"slow":   {"slow", `{"ms":200}`, same(`{"waited":200}`)},
		},
		sizes: map[string]string{"shim size": w.path("floor"), "service size": w.path("floor")}, // one program is both
	}
}

func (w *world) hbRest() *program {
	home := filepath.Join(w.dir, "home")
	service := exec.Command(w.path("hbrestd"), "run")
	service.Env = environment("HB_WRAP_HOME="+home, "HB_WRAP_ADDR=127.0.0.1:0", "HB_WRAP_ALLOW_PRIVATE=1")
	run := func(id, args string) string { return `{"id":"bench.` + id + `","args":` + args + `}` }
	return &program{
		name: "hb-rest", service: service, listening: regexp.MustCompile(`msg=listening addr=(\S+)`), onStderr: true,
		shim: func(service string) *exec.Cmd {
			c := exec.Command(w.path("hb-rest"))
			c.Env = environment("HB_WRAP_HOME="+home, "HB_WRAP_URL="+service)
			return c
		},
		setUp: func(c *client) error {
			for _, doc := range wrappers {
				text := strings.ReplaceAll(doc, "API", w.api.url)
				if _, err := c.call("wrap_create", `{"wrapper":`+text+`}`); err != nil {
					return fmt.Errorf("wrap_create: %w", err)
				}
			}
			return nil
		},
		calls: map[string]call{
			"object": {"wrap_run", run("object", `{"id":"`+objectID+`"}`), same(w.facts.document)},
			"table":  {"wrap_run", run("table", `{"limit":10}`), same(w.facts.ten)},
			"big":    {"wrap_run", run("big", `{}`), begins(w.facts.fifty)}, // below the rows it says that there are more
			"slow":   {"wrap_run", run("slow", `{"ms":200}`), same("## Slow\n\n- **Waited:** 200")},
		},
		sizes: map[string]string{"shim size": w.path("hb-rest"), "service size": w.path("hbrestd"), "helper size": w.path("hbrestd-keyring")},
	}
}

const columns = `{"ID":"id","Title":"title","Price":"price","Rating":"rating","Stock":"stock"}`

// wrappers say the same requests as the floor's tools. API stands for its address.
var wrappers = []string{
	`{"schemaVersion":1,"id":"bench.object","name":"Order","request":{"method":"GET","url":"API/objects/{{id}}"},
"inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},
"response":{"schemaVersion":1,"mode":"document","fields":{"Id":"id","Status":"status","Customer":"customer.name","Email":"customer.email","City":"customer.address.city","Total":"total","Deposit":"deposit","Created":"createdAt","Carrier":"carrier","Tracking":"trackingNumber","Notes":"notes"}}}`,
	`{"schemaVersion":1,"id":"bench.table","name":"Products","request":{"method":"GET","url":"API/products","query":{"limit":"{{limit}}"}},
"inputSchema":{"type":"object","properties":{"limit":{"type":"integer"}}},
"response":{"schemaVersion":1,"select":"$.products","mode":"table","fields":` + columns + `}}`,
	`{"schemaVersion":1,"id":"bench.big","name":"Products","request":{"method":"GET","url":"API/big"},
"response":{"schemaVersion":1,"select":"$","mode":"table","fields":` + columns + `,"limits":{"maxItems":50}}}`,
	`{"schemaVersion":1,"id":"bench.slow","name":"Slow","request":{"method":"GET","url":"API/slow","query":{"ms":"{{ms}}"}},
"inputSchema":{"type":"object","properties":{"ms":{"type":"integer"}}},
"response":{"schemaVersion":1,"mode":"document","fields":{"Waited":"waited"}}}`,
}

// objectID is 2^53+1, which a float64 does not hold.
const objectID = "9007199254740993"

// facts are the texts that a right answer has, made of what the API says by
// encoding/json and nothing of what is measured.
type facts struct {
	object, document string // as it came; as the wrapper's fields
	ten, fifty       string // tables
}

func (w *world) learn() error {
	object, err := w.ask("/objects/" + objectID)
	if err != nil {
		return err
	}
	var o struct {
		ID             json.Number
		Status         string
		Total, Deposit json.Number
		Customer       struct {
			Name, Email string
			Address     struct{ City string }
		}
		CreatedAt, Carrier, TrackingNumber, Notes string
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return err
	}
	if o.ID != objectID || o.Deposit != "5.00" {
		return fmt.Errorf("the API says %s and %s", o.ID, o.Deposit)
	}
	w.facts.object = string(object)
	w.facts.document = "## Order\n\n- " + strings.Join([]string{
		"**Id:** " + o.ID.String(), "**Status:** " + o.Status, "**Customer:** " + o.Customer.Name, "**Email:** " + o.Customer.Email,
		"**City:** " + o.Customer.Address.City, "**Total:** " + o.Total.String(), "**Deposit:** " + o.Deposit.String(), "**Created:** " + o.CreatedAt,
		"**Carrier:** " + o.Carrier, "**Tracking:** " + o.TrackingNumber, "**Notes:** " + o.Notes,
	}, "\n- ")
	type product struct {
		ID            json.Number
		Title         string
		Price, Rating json.Number
		Stock         json.Number
	}
	table := func(list []product) string {
		text := "## Products\n\n| ID | Title | Price | Rating | Stock |\n| --- | --- | --- | --- | --- |"
		for _, p := range list {
			text += fmt.Sprintf("\n| %s | %s | %s | %s | %s |", p.ID, strings.ReplaceAll(p.Title, "|", `\|`), p.Price, p.Rating, p.Stock)
		}
		return text
	}
	var page struct{ Products []product }
	text, err := w.ask("/products?limit=10")
	if err == nil {
		err = json.Unmarshal(text, &page)
	}
	if err != nil {
		return err
	}
	if len(page.Products) != 10 {
		return fmt.Errorf("the API gave %d products of 10", len(page.Products))
	}
	w.facts.ten = table(page.Products)
	var all []product
	if text, err = w.ask("/big"); err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return err
	}
	if len(all) < 1000 {
		return fmt.Errorf("the API gave %d products in all", len(all))
	}
	w.facts.fifty = table(all[:50])
	return nil
}

func same(want string) func(string) error {
	return func(text string) error {
		if text != want {
			return fmt.Errorf("the answer is\n%.2000s\nwant\n%.2000s", text, want)
		}
		return nil
	}
}

func begins(want string) func(string) error {
	return func(text string) error {
		if !strings.HasPrefix(text, want+"\n") {
			return fmt.Errorf("the answer is\n%.2000s\nwant at its begin\n%.2000s", text, want)
		}
		return nil
	}
}
