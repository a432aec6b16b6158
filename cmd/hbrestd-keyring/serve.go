package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// Exit codes.
const (
	exitOK         = 0
	exitFailed     = 1 // the answer says why
	exitBadRequest = 2 // a fault of the caller
)

// Answer codes. hbrestd knows each of them.
const (
	codeLocked       = "locked"           // the keyring is there and locked; nothing was unlocked or asked
	codeNotFound     = "not_found"        // no such item
	codeNoBus        = "no_bus"           // no session bus
	codeNoService    = "no_service"       // no keyring service on the bus
	codeNoCollection = "no_collection"    // the service has no login keyring
	codeNoBackend    = "no_backend"       // this build or system has no such keyring
	codePassphrase   = "wrong_passphrase" // of the file keyring
	codeDamaged      = "damaged"          // the file keyring's file is not one
	codeFailed       = "failed"
	codeBadRequest   = "bad_request"
)

const (
	maxRequest = 64 << 10 // bytes; a master key needs a hundred
	service    = "hbrestd"
	canary     = "canary"
)

// A request names one action on one keyring.
type request struct {
	Version    int    `json:"version"` // 1
	Verb       string `json:"verb"`    // probe, get, set, delete
	Backend    string `json:"backend"` // secret-service, wincred, keychain, file
	Item       string `json:"item"`
	Value      []byte `json:"value,omitempty"`      // set
	Dir        string `json:"dir,omitempty"`        // file: an existing folder
	Passphrase []byte `json:"passphrase,omitempty"` // file
}

// An answer is what came of it.
type answer struct {
	OK     bool   `json:"ok"`
	Value  []byte `json:"value,omitempty"`  // get
	Code   string `json:"code,omitempty"`   // when not OK
	Detail string `json:"detail,omitempty"` // the library's words, for a log
}

// A ring is one opened keyring. get returns errNotFound when there is no item;
// remove of a missing item succeeds.
type ring interface {
	get(item string) ([]byte, error)
	set(item string, value []byte) error
	remove(item string) error
}

// A codeError is a failure whose code is known.
type codeError struct {
	code string
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return e.code
	}
	return e.err.Error()
}

func coded(code string, err error) error { return &codeError{code, err} }

var errNotFound = coded(codeNotFound, nil)

// itemPattern keeps items to what every keyring and file system takes.
var itemPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

func serve(in io.Reader, out io.Writer) int {
	r, err := readRequest(in)
	var value []byte
	if err == nil {
		value, err = act(r)
	}
	a, status := answer{OK: true, Value: value}, exitOK
	if err != nil {
		a, status = failure(err, r), exitFailed
		if a.Code == codeBadRequest {
			status = exitBadRequest
		}
	}
	line, err := json.Marshal(a)
	if err != nil {
		return exitFailed
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return exitFailed
	}
	return status
}

func readRequest(in io.Reader) (*request, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err != nil || len(data) > maxRequest {
		return nil, coded(codeBadRequest, errors.New("the request is too large or was cut off"))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var r request
	if d.Decode(&r) != nil || d.Decode(new(any)) != io.EOF { // the decoder's words may quote the request
		return nil, coded(codeBadRequest, errors.New("the request is not one JSON object as expected"))
	}
	bad := func(what string) (*request, error) { return nil, coded(codeBadRequest, errors.New(what)) }
	file := r.Backend == "file"
	switch {
	case r.Version != 1:
		return bad("unknown version")
	case r.Verb != "probe" && r.Verb != "get" && r.Verb != "set" && r.Verb != "delete":
		return bad("unknown verb")
	case (r.Verb == "probe") != (r.Item == ""), r.Item != "" && !itemPattern.MatchString(r.Item), r.Item == canary:
		return bad("bad item")
	case (r.Verb == "set") != (len(r.Value) > 0):
		return bad("a value belongs to set, and to nothing else")
	case file != (r.Dir != ""), file != (len(r.Passphrase) > 0):
		return bad("folder and passphrase belong to the file keyring, and to nothing else")
	}
	return &r, nil
}

func act(r *request) (value []byte, err error) {
	defer func() { // the D-Bus code trusts what a service sends
		if recover() != nil {
			value, err = nil, coded(codeFailed, errors.New("the keyring sent something unexpected"))
		}
	}()
	k, err := open(r)
	if err != nil {
		return nil, err
	}
	switch r.Verb {
	case "get":
		return k.get(r.Item)
	case "set":
		return nil, k.set(r.Item, r.Value)
	case "delete":
		return nil, k.remove(r.Item)
	}
	return nil, probe(k)
}

// probe writes, reads and removes an item: that a keyring opens proves nothing.
func probe(k ring) error {
	value := []byte(rand.Text())
	if err := k.set(canary, value); err != nil {
		return err
	}
	got, err := k.get(canary)
	if err == nil && !bytes.Equal(got, value) {
		err = coded(codeFailed, errors.New("the keyring gave back another value than it was given"))
	}
	return errors.Join(err, k.remove(canary))
}

func failure(err error, r *request) answer {
	a := answer{Code: codeFailed, Detail: err.Error()}
	var c *codeError
	if errors.As(err, &c) {
		a.Code = c.code
		if c.err == nil {
			a.Detail = ""
		}
	}
	if r != nil { // no library is known to quote what it was given
		for _, s := range [][]byte{r.Value, r.Passphrase} {
			if len(s) > 0 && strings.Contains(a.Detail, string(s)) {
				a.Detail = ""
			}
		}
	}
	a.Detail = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, a.Detail)
	const most = 200
	if d := []rune(a.Detail); len(d) > most {
		a.Detail = string(d[:most])
	}
	return a
}
