// hbrestd-keyring does one thing with one keyring and ends. hbrestd runs it for
// each keyring action, because the keyring library connects to the session bus
// before main, waits for prompts without limit and does not survive a restart of
// the bus; here all of that ends with the process.
//
// It reads one request from standard input and writes one answer to standard
// output, each a JSON document on a line ([request], [answer]). It takes no
// arguments and logs nothing. A value is never in its arguments, its environment
// or on standard error. It never uses a keyring that the request does not name.
package main

import (
	"os"
	"time"
)

// limit ends the program when whoever runs it cannot.
const limit = 10 * time.Second

func main() {
	harden()
	if info, err := os.Stdin.Stat(); len(os.Args) > 1 || err != nil || info.Mode()&os.ModeCharDevice != 0 {
		_, _ = os.Stderr.WriteString("hbrestd-keyring is run by hbrestd; it has no use on a terminal.\n")
		os.Exit(exitBadRequest)
	}
	time.AfterFunc(limit, func() { os.Exit(exitFailed) })
	os.Exit(serve(os.Stdin, os.Stdout))
}
