//go:build darwin && cgo

package main

import "github.com/99designs/keyring"

// openSystem opens the login keychain.
func openSystem(backend string) (ring, error) {
	if backend != string(keyring.KeychainBackend) {
		return nil, coded(codeNoBackend, nil)
	}
	return openLibrary(keyring.Config{KeychainTrustApplication: true}, keyring.KeychainBackend, func(err error) error { return coded(codeFailed, err) })
}
