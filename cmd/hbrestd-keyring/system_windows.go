package main

import "github.com/99designs/keyring"

// openSystem opens the Credential Manager.
func openSystem(backend string) (ring, error) {
	if backend != string(keyring.WinCredBackend) {
		return nil, coded(codeNoBackend, nil)
	}
	return openLibrary(keyring.Config{WinCredPrefix: service}, keyring.WinCredBackend, func(err error) error { return coded(codeFailed, err) })
}
