package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Every request that is not exactly as described is refused before any keyring
// is opened, without a word of it in the answer.
func TestBadRequests(t *testing.T) {
	for name, in := range map[string]string{
		"empty":                  ``,
		"not JSON":               `hunter2hunter2`,
		"two":                    `{"version":1,"verb":"get","backend":"file","item":"a","dir":"/","passphrase":"aGk="} {}`,
		"unknown member":         `{"version":1,"verb":"get","backend":"wincred","item":"a","hunter2hunter2":1}`,
		"wrong type":             `{"version":1,"verb":"set","backend":"wincred","item":"a","value":"hunter2hunter2!"}`,
		"no version":             `{"verb":"get","backend":"wincred","item":"a"}`,
		"other version":          `{"version":2,"verb":"get","backend":"wincred","item":"a"}`,
		"unknown verb":           `{"version":1,"verb":"list","backend":"wincred","item":"a"}`,
		"no item":                `{"version":1,"verb":"get","backend":"wincred"}`,
		"probe with an item":     `{"version":1,"verb":"probe","backend":"wincred","item":"a"}`,
		"item with a path":       `{"version":1,"verb":"get","backend":"wincred","item":"../a"}`,
		"the test item":          `{"version":1,"verb":"get","backend":"wincred","item":"canary"}`,
		"item of 65":             `{"version":1,"verb":"get","backend":"wincred","item":"` + strings.Repeat("a", 65) + `"}`,
		"set without a value":    `{"version":1,"verb":"set","backend":"wincred","item":"a"}`,
		"get with a value":       `{"version":1,"verb":"get","backend":"wincred","item":"a","value":"aGk="}`,
		"file without a folder":  `{"version":1,"verb":"get","backend":"file","item":"a","passphrase":"aGk="}`,
		"file, no passphrase":    `{"version":1,"verb":"get","backend":"file","item":"a","dir":"/tmp"}`,
		"passphrase for another": `{"version":1,"verb":"get","backend":"wincred","item":"a","passphrase":"aGk="}`,
		"too large":              `{"version":1,"verb":"set","backend":"wincred","item":"a","value":"` + strings.Repeat("A", maxRequest) + `"}`,
	} {
		var out bytes.Buffer
		if code := serve(strings.NewReader(in), &out); code != exitBadRequest {
			t.Errorf("%s: exit code %d, %s", name, code, out.String())
		}
		if got := out.String(); !strings.HasPrefix(got, `{"ok":false,"code":"bad_request","detail":"`) || strings.Count(got, "\n") != 1 || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Only the named keyring is ever used: names that this program does not know, or
// that it must never use, have none.
func TestNoOtherKeyring(t *testing.T) {
	for _, backend := range []string{"", "pass", "keyctl", "kwallet", "Secret-Service"} {
		var out bytes.Buffer
		in := `{"version":1,"verb":"probe","backend":"` + backend + `"}`
		if code := serve(strings.NewReader(in), &out); code != exitFailed || out.String() != `{"ok":false,"code":"no_backend"}`+"\n" {
			t.Errorf("%q: %d %s", backend, code, out.String())
		}
	}
}

// An answer never holds what the program was given, and fits on a line.
func TestFailureText(t *testing.T) {
	r := &request{Value: []byte("hunter2hunter2"), Passphrase: []byte("pass phrase")}
	for in, want := range map[error]answer{
		errNotFound: {Code: codeNotFound},
		coded(codeLocked, errors.New("a\nb\x1b")): {Code: codeLocked, Detail: "a b "},
		errors.New("x hunter2hunter2 y"):          {Code: codeFailed},
		errors.New("x pass phrase y"):             {Code: codeFailed},
		errors.New(strings.Repeat("é", 201)):      {Code: codeFailed, Detail: strings.Repeat("é", 200)},
	} {
		if got := failure(in, r); got.OK || got.Code != want.Code || got.Detail != want.Detail || got.Value != nil {
			t.Errorf("%v: %+v, want %+v", in, got, want)
		}
	}
}

// A memory ring stands for a keyring that works, or does not.
type memoryRing struct {
	m     map[string][]byte
	wrong bool
	err   error
}

func (r *memoryRing) get(item string) ([]byte, error) {
	if r.wrong {
		return []byte("other"), nil
	}
	if r.m[item] == nil {
		return nil, errNotFound
	}
	return r.m[item], nil
}
func (r *memoryRing) set(item string, value []byte) error { r.m[item] = value; return r.err }
func (r *memoryRing) remove(item string) error            { delete(r.m, item); return nil }

func TestProbe(t *testing.T) {
	good := &memoryRing{m: map[string][]byte{}}
	if err := probe(good); err != nil || len(good.m) != 0 {
		t.Error(err, good.m)
	}
	if err := probe(&memoryRing{m: map[string][]byte{}, wrong: true}); err == nil {
		t.Error("a keyring that answers with something else is not ready")
	}
	if err := probe(&memoryRing{m: map[string][]byte{}, err: coded(codeLocked, nil)}); failure(err, nil).Code != codeLocked {
		t.Error(err)
	}
}
