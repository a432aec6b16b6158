//go:build darwin && !cgo

package main

import (
	"encoding/base64"
	"errors"

	zalando "github.com/zalando/go-keyring"
)

// openSystem opens the login keychain by way of /usr/bin/security: without cgo
// 99designs/keyring has no keychain.
func openSystem(backend string) (ring, error) {
	if backend != "keychain" {
		return nil, coded(codeNoBackend, nil)
	}
	return keychain{}, nil
}

type keychain struct{}

func (keychain) get(item string) ([]byte, error) {
	s, err := zalando.Get(service, item)
	if err != nil {
		return nil, keychainError(err)
	}
	value, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, coded(codeFailed, errors.New("the keychain's item is not one of hbrestd"))
	}
	return value, nil
}

func (keychain) set(item string, value []byte) error {
	if err := zalando.Set(service, item, base64.StdEncoding.EncodeToString(value)); err != nil {
		return keychainError(err)
	}
	return nil
}

func (keychain) remove(item string) error {
	if err := zalando.Delete(service, item); err != nil && !errors.Is(err, zalando.ErrNotFound) {
		return keychainError(err)
	}
	return nil
}

func keychainError(err error) error {
	if errors.Is(err, zalando.ErrNotFound) {
		return errNotFound
	}
	var exit interface { // *exec.ExitError, without leave to run programs
		error
		ExitCode() int
	}
	if errors.As(err, &exit) {
		switch exit.ExitCode() { // the low byte of a Security framework status
		case 36, 51, 128: // interaction not allowed, authorisation failed, cancelled
			return coded(codeLocked, err)
		}
	}
	return coded(codeFailed, err)
}
