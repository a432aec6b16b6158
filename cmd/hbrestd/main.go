// Command hbrestd is the per-user background service: it stores wrappers,
// executes them under the outbound policy, and serves the bridge on
// 127.0.0.1:4111 that hb-rest and curl talk to.
package main

import (
	"os"

	"github.com/hyperbolic-gateway/hb-rest/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}
