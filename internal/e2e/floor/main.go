// Command floor is what hb-rest is measured against: the least that a program
// of the same design can be. It is for tests only, and no product: it knows no
// wrappers, recipes, policy, limits, credentials, approvals or audit trail, and
// its tools are those of one made-up API.
//
//	floor api                  the API: JSON on loopback, the same bytes in every run
//	floor daemon -api URL      takes a tool's call over HTTP, makes the API's request, answers the text
//	floor shim -daemon URL     an MCP server over stdio whose tools make one HTTP request to the daemon
//
// api and daemon take a free port of 127.0.0.1 and print "listening ADDRESS".
// daemon and shim share a bearer token, in the variable FLOOR_TOKEN. Start with
// tools.go for the calls, and with data.go for what the API says.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
)

const tokenVariable = "FLOOR_TOKEN"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("one of api, daemon and shim is needed")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	api := flags.String("api", "", "`URL` of the API")
	daemon := flags.String("daemon", "", "`URL` of the daemon")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	token := os.Getenv(tokenVariable)
	switch args[0] {
	case "api":
		return serveAPI()
	case "daemon":
		if err := onLoopback(*api); err != nil {
			return err
		}
		return serve(&http.Server{Handler: newDaemon(*api, token)})
	case "shim":
		if err := onLoopback(*daemon); err != nil {
			return err
		}
		return runShim(context.Background(), *daemon, token)
	}
	return fmt.Errorf("%s is not one of api, daemon and shim", args[0])
}

// onLoopback refuses an address that is not this machine's own.
func onLoopback(text string) error {
	u, err := url.Parse(text)
	if err != nil || !net.ParseIP(u.Hostname()).IsLoopback() {
		return fmt.Errorf("%q is not a URL with a loopback address", text)
	}
	return nil
}

// serve takes a free port and says which.
func serve(s *http.Server) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("listening", l.Addr())
	return s.Serve(l)
}

// newClient keeps as many connections as there are calls at once.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
}
