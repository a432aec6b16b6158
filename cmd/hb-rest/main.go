// Command hb-rest is the MCP server that an MCP client starts; it forwards
// tool calls to the daemon hbrestd. See `hb-rest --help`.
package main

import (
	"context"
	"os"

	"github.com/hyperbolic-gateway/hb-rest/internal/shim"
)

func main() {
	// Standard output belongs to the protocol: whatever else prints, prints to
	// standard error.
	out := os.Stdout
	os.Stdout = os.Stderr
	os.Exit(shim.Main(context.Background(), os.Args[1:], os.LookupEnv, os.Stdin, out, os.Stderr))
}
