// Command demo shows what an agent sees, with the real programs: it builds
// hbrestd and hb-rest, starts a throw-away daemon and a sample API on
// loopback, and speaks MCP to hb-rest over its standard streams. It leaves
// nothing behind, and exits with 0 only if each answer was the right one.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/upstream"
)

//go:embed sample-api.txt
var sampleAPI string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "hb-rest-demo-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	err = run(ctx, dir)
	if rmErr := os.RemoveAll(dir); err == nil {
		err = rmErr
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo: FAILED:", err)
		os.Exit(1)
	}
	fmt.Println("\nEvery answer was the right one. Nothing is left running or on disk.")
}

func run(ctx context.Context, dir string) (err error) {
	fmt.Println("Building hbrestd and hb-rest ...")
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "./cmd/hbrestd", "./cmd/hb-rest")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, out)
	}
	script, err := upstream.Parse(sampleAPI)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: script.Handler()}
	go func() { _ = server.Serve(l) }() // ends with Close below
	defer server.Close()
	d := &demo{ctx: ctx, dir: dir, api: "http://" + l.Addr().String(), script: script}
	if err := d.open(); err != nil {
		return err
	}
	if err := d.closed(); err != nil {
		return err
	}
	return nil
}

// A demo is one walk through the product.
type demo struct {
	ctx    context.Context
	dir    string
	api    string // address of the sample API
	script *upstream.Script
	mcp    *stdio.Client
	step   int
}

// open walks the main path in a daemon that may call this machine.
func (d *demo) open() (err error) {
	stop, err := d.start("home", "HB_WRAP_ALLOW_PRIVATE=1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, s := range []step{
		{"Save a wrapper: a request template, typed arguments, a recipe", "wrap_create", `{"wrapper":` + searchWrapper + `}`, []string{"shop.products.search"}, nil},
		{"Save another one that creates orders", "wrap_create", `{"wrapper":` + orderWrapper + `}`, []string{"orders.create"}, nil},
		{"What can I do? One line for each wrapper", "wrap_list", `{}`, []string{"shop.products.search", "orders.create", "query"}, nil},
		{"Make a first recipe from an answer of the API", "wrap_derive", `{"url":"API/products/search?q=phone&limit=10","name":"Products","max_fields":4}`, []string{`$.products`, `"mode":"table"`}, nil},
		{"Dry run: the exact request, nothing sent", "wrap_test", `{"id":"orders.create","args":{"customer_id":"cus_123","items":[{"sku":"A-1","qty":2}],"note":"gift"}}`, []string{"POST API/v1/orders", `{"customer":"cus_123","line_items":[{"sku":"A-1","qty":2}],"note":"gift"}`}, nil},
		{"Run the search: Markdown to read", "wrap_run", `{"id":"shop.products.search","args":{"query":"phone"}}`, []string{"| Name | Price | Rating |\n| --- | --- | --- |\n| Phone 13 | 499.00 | 4.5 |"}, nil},
		{"The same as exact records: 64-bit ids keep every digit", "wrap_run", `{"id":"shop.products.search","args":{"query":"phone"},"format":"json"}`, []string{`[{"id":9007199254740993,"title":"Phone 13","price":499.00}`}, nil},
		{"Create the order", "wrap_run", `{"id":"orders.create","args":{"customer_id":"cus_123","items":[{"sku":"A-1","qty":2}],"note":"gift"}}`, []string{"**Order:** ord_1", "**Total:** 30.00"}, nil},
		{"A wrapper with mistakes is refused, every field named", "wrap_create", `{"wrapper":{"schemaVersion":1,"id":"bad","name":"Bad","request":{"method":"GET","url":"https://api.example.com/items","headers":{"Authorization":"Bearer abc"}},"response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"Price":{"path":"price","format":"money"}}}}}`, nil, []string{"WRAPPER_INVALID", "request.headers.Authorization", "response.fields.Price.format"}},
		{"Save a wrapper that asks for the cloud's metadata address", "wrap_create", `{"wrapper":{"schemaVersion":1,"id":"cloud.meta","name":"Metadata","request":{"method":"GET","url":"http://169.254.169.254/latest/meta-data/"}}}`, []string{"cloud.meta"}, nil},
		{"It never runs, whatever the switches say", "wrap_run", `{"id":"cloud.meta"}`, nil, []string{"POLICY_PRIVATE_ADDRESS"}},
	} {
		if err := d.show(s); err != nil {
			return err
		}
	}
	return d.sawOrder()
}

// sawOrder checks what the API received: byte for byte what the seed promises.
func (d *demo) sawOrder() error {
	const want = `{"customer":"cus_123","line_items":[{"sku":"A-1","qty":2}],"note":"gift"}`
	orders := 0
	for _, h := range d.script.Hits() {
		if h.Method != "POST" {
			continue
		}
		orders++
		if h.Body != want || h.URI != "/v1/orders" {
			return fmt.Errorf("the API received %s %s, want %s", h.URI, h.Body, want)
		}
	}
	if orders != 1 {
		return fmt.Errorf("the API received %d orders, want 1", orders)
	}
	fmt.Printf("\nThe API received exactly one order:\n  POST /v1/orders\n  %s\n", want)
	return nil
}

// closed shows the default policy in a second daemon.
func (d *demo) closed() (err error) {
	stop, err := d.start("home2")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	before := len(d.script.Hits())
	d.api = "https" + strings.TrimPrefix(d.api, "http") // so that the address is what is refused, not the scheme
	for _, s := range []step{
		{"A second daemon, without HB_WRAP_ALLOW_PRIVATE: save the search again", "wrap_create", `{"wrapper":` + searchWrapper + `}`, []string{"shop.products.search"}, nil},
		{"It does not call 127.0.0.1", "wrap_run", `{"id":"shop.products.search","args":{"query":"phone"}}`, nil, []string{"POLICY_PRIVATE_ADDRESS"}},
	} {
		if err := d.show(s); err != nil {
			return err
		}
	}
	if after := len(d.script.Hits()); after != before {
		return fmt.Errorf("%d requests reached the API that must not be called", after-before)
	}
	return nil
}

// start runs a daemon with its own home and a free port, and an hb-rest that
// knows it; stop ends both.
func (d *demo) start(home string, env ...string) (stop func() error, err error) {
	home = filepath.Join(d.dir, home)
	daemon := exec.CommandContext(d.ctx, filepath.Join(d.dir, exe("hbrestd")), "run")
	daemon.Env = append(os.Environ(), append(env, "HB_WRAP_HOME="+home, "HB_WRAP_ADDR=127.0.0.1:0")...)
	daemon.Cancel = func() error { return daemon.Process.Signal(os.Interrupt) }
	stderr, err := daemon.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := daemon.Start(); err != nil {
		return nil, err
	}
	addr, err := waitListening(bufio.NewScanner(stderr))
	if err != nil {
		return nil, errors.Join(err, daemon.Process.Kill(), daemon.Wait())
	}
	shim := exec.CommandContext(d.ctx, filepath.Join(d.dir, exe("hb-rest")))
	shim.Env = append(os.Environ(), "HB_WRAP_URL=http://"+addr, "HB_WRAP_TOKEN_FILE="+filepath.Join(home, "wrap", "token"), "HB_MCP_LOG=0")
	if d.mcp, err = stdio.Start(shim, "2025-11-25"); err != nil {
		return nil, errors.Join(err, daemon.Process.Kill())
	}
	return func() error {
		err := d.mcp.Close()
		if runtime.GOOS == "windows" { // it has no interrupt for other processes
			_ = daemon.Process.Kill()
			_ = daemon.Wait()
			return err
		}
		return errors.Join(err, daemon.Process.Signal(os.Interrupt), daemon.Wait())
	}, nil
}

func exe(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+)`)

// waitListening reads the daemon's log until it says where it listens, and
// then keeps it from filling up.
func waitListening(log *bufio.Scanner) (string, error) {
	var seen strings.Builder
	for log.Scan() {
		seen.WriteString(log.Text() + "\n")
		if m := listening.FindStringSubmatch(log.Text()); m != nil {
			go func() {
				for log.Scan() {
				}
			}()
			return m[1], nil
		}
	}
	return "", fmt.Errorf("the daemon ended:\n%s", seen.String())
}

// A step is one call. want must all be in a result, refused in an error.
type step struct {
	title, tool, args string
	want, refused     []string
}

// show makes the call, prints what the agent sees and checks it. API stands
// for the sample API's address.
func (d *demo) show(s step) error {
	d.step++
	args := strings.ReplaceAll(s.args, "API", d.api)
	fmt.Printf("\n%d. %s\n   > %s %s\n", d.step, s.title, s.tool, shorten(args))
	r, err := d.mcp.Call(s.tool, json.RawMessage(args))
	if err != nil {
		return err
	}
	text := r.Text() + r.RPCError
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		fmt.Println("   " + line)
	}
	if r.IsError != (s.refused != nil) {
		return fmt.Errorf("step %d: isError is %v", d.step, r.IsError)
	}
	for _, want := range append(s.want, s.refused...) {
		if want = strings.ReplaceAll(want, "API", d.api); !strings.Contains(text, want) {
			return fmt.Errorf("step %d: no %q in the answer", d.step, want)
		}
	}
	return nil
}

// shorten keeps a step's arguments on a readable line.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 400 {
		return s[:400] + " ..."
	}
	return s
}

const searchWrapper = `{
 "schemaVersion": 1, "id": "shop.products.search", "name": "Product search", "description": "Search the product catalogue.",
 "request": {"method": "GET", "url": "API/products/search", "query": {"q": "{{query}}", "limit": "{{limit}}"}, "headers": {"Accept": "application/json"}, "timeoutMs": 15000},
 "inputSchema": {"type": "object", "properties": {
   "query": {"type": "string", "minLength": 1},
   "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}}, "required": ["query"], "additionalProperties": false},
 "response": {"schemaVersion": 1, "select": "$.products[*]", "mode": "table",
   "fields": {"Name": "title", "Price": {"path": "price", "format": "number"}, "Rating": {"path": "rating", "format": "number"}},
   "record": {"id": "id", "title": "title", "price": "price"}, "limits": {"maxItems": 20}},
 "exposeAsTool": false, "mutating": false}`

const orderWrapper = `{
 "schemaVersion": 1, "id": "orders.create", "name": "Create order",
 "request": {"method": "POST", "url": "API/v1/orders", "body": {"customer": "{{customer_id}}", "line_items": "{{items}}", "note": "{{note}}"}},
 "inputSchema": {"type": "object", "properties": {
   "customer_id": {"type": "string", "description": "Customer ID"},
   "items": {"type": "array", "description": "Line items", "items": {"type": "object", "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "minimum": 1}}, "required": ["sku", "qty"]}},
   "note": {"type": "string", "description": "Optional note"}}, "required": ["customer_id", "items"], "additionalProperties": false},
 "mutating": true,
 "response": {"schemaVersion": 1, "select": "$", "mode": "document", "record": {"id": "id", "status": "status", "total": "total"},
   "fields": {"Order": "id", "Status": "status", "Total": {"path": "total", "format": "number"}}}}`
