package main

import (
	"errors"

	"github.com/99designs/keyring"
)

// open opens exactly the keyring that r names.
func open(r *request) (ring, error) {
	if r.Backend == "file" {
		return openFile(r)
	}
	return openSystem(r.Backend)
}

// A library is a keyring of 99designs/keyring with one backend.
type library struct {
	keyring.Keyring
	code func(error) error // gives an error its code
}

func openLibrary(c keyring.Config, backend keyring.BackendType, code func(error) error) (*library, error) {
	c.ServiceName = service
	c.AllowedBackends = []keyring.BackendType{backend}
	k, err := keyring.Open(c)
	if errors.Is(err, keyring.ErrNoAvailImpl) {
		return nil, coded(codeNoBackend, err)
	}
	if err != nil {
		return nil, code(err)
	}
	return &library{k, code}, nil
}

func (l *library) get(item string) ([]byte, error) {
	i, err := l.Get(item)
	if errors.Is(err, keyring.ErrKeyNotFound) {
		return nil, errNotFound
	}
	if err != nil {
		return nil, l.code(err)
	}
	return i.Data, nil
}

func (l *library) set(item string, value []byte) error {
	if err := l.Set(keyring.Item{Key: item, Data: value, Label: "hbrestd: " + item}); err != nil {
		return l.code(err)
	}
	return nil
}

func (l *library) remove(item string) error {
	if err := l.Remove(item); err != nil && !errors.Is(err, keyring.ErrKeyNotFound) {
		return l.code(err)
	}
	return nil
}
