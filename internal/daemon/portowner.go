package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// ownerTimeout is how long a program on the bridge's port may take to say that
// it is an hbrestd.
const ownerTimeout = time.Second

// An Owner is the program that listens at an address. What is not known is
// empty.
type Owner struct {
	Hbrestd bool   // it answers as an hbrestd does
	Version string // that it gives then
	PID     int
	Name    string // the program's
	User    string // login name, or number
}

// PortOwner finds out who listens at a loopback address, such as
// 127.0.0.1:4111: it asks there for an hbrestd, and looks into the system's
// tables, as far as this user may.
func PortOwner(ctx context.Context, addr string) Owner {
	o := listener(addr)
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	if version, err := hello(ctx, addr); err == nil {
		o.Hbrestd, o.Version = true, version
	}
	return o
}

// String is the owner as part of a sentence: "python3 (pid 4321)".
func (o Owner) String() string {
	var facts []string
	name := o.Name
	switch {
	case o.Hbrestd:
		name = "another hbrestd"
		if o.Version != "" {
			facts = append(facts, "version "+o.Version)
		}
	case name == "":
		name = "another program"
	}
	if o.PID != 0 {
		facts = append(facts, fmt.Sprintf("pid %d", o.PID))
	}
	if o.User != "" {
		facts = append(facts, "of the user "+o.User)
	}
	if len(facts) > 0 {
		name += " (" + strings.Join(facts, ", ") + ")"
	}
	return name
}

// inUse is the error for a port that somebody has.
func inUse(ctx context.Context, addr string, cause error) error {
	o := PortOwner(ctx, addr)
	home := ""
	if o.Hbrestd && o.User == "" { // with this home, the store would have been locked
		home = ", with another HB_WRAP_HOME"
	}
	e := fault.New("ADDRESS_IN_USE", "%s is already in use by %s%s", addr, o, home).With(fault.Cause(cause))
	if o.PID == 0 && whoCommand != "" {
		_, port, _ := strings.Cut(addr[strings.LastIndex(addr, "]")+1:], ":")
		e = e.With(fault.Hint("`%s` shows which program that is. %s", fmt.Sprintf(whoCommand, port), e.Hint))
	}
	return e
}

// readHello is the version in an answer of GET /hello; an error if it is none.
func readHello(resp *http.Response) (string, error) {
	var h api.Hello
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<10)).Decode(&h); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK || len(h.Proof) != 64 {
		return "", errors.New("not the answer of an hbrestd")
	}
	return fault.Shorten(h.Version, 40), nil
}
