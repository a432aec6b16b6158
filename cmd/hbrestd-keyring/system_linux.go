package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/99designs/keyring"
	"github.com/godbus/dbus"
	"github.com/gsterjov/go-libsecret"
)

// collection is the keyring that a login unlocks. The library's default, one of
// its own, cannot be made without a prompt on a screen.
const collection = "login"

// openSystem opens the Secret Service. It asks first whether the collection is
// there and unlocked: the library would raise a prompt and wait for it.
func openSystem(backend string) (ring, error) {
	if backend != string(keyring.SecretServiceBackend) {
		return nil, coded(codeNoBackend, nil)
	}
	s, err := libsecret.NewService()
	if err != nil {
		return nil, noBus(err)
	}
	all, err := s.Collections()
	if err != nil {
		return nil, busError(err)
	}
	for _, c := range all {
		if string(c.Path()) != libsecret.DBusPath+"/collection/"+collection {
			continue
		}
		locked, err := c.Locked()
		if err != nil {
			return nil, busError(err)
		}
		if locked {
			return nil, coded(codeLocked, nil)
		}
		return openLibrary(keyring.Config{LibSecretCollectionName: collection}, keyring.SecretServiceBackend, busError)
	}
	return nil, coded(codeNoCollection, nil)
}

// noBus sorts why the bus was not reached. Without an address the library looks
// for a program that would start a bus of its own, and speaks of that only.
func noBus(err error) error {
	switch address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); {
	case address == "" || address == "autolaunch:": // the library sets it when it finds one
		return coded(codeNoBus, fmt.Errorf("DBUS_SESSION_BUS_ADDRESS is not set, and there is no /run/user/%d/bus", os.Getuid()))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ECONNREFUSED):
		return coded(codeNoBus, err)
	}
	return coded(codeFailed, err)
}

// busError sorts what comes back from the bus.
func busError(err error) error {
	var e dbus.Error
	if !errors.As(err, &e) {
		return coded(codeFailed, err)
	}
	switch {
	case strings.HasSuffix(e.Name, ".ServiceUnknown"), strings.HasSuffix(e.Name, ".NameHasNoOwner"), strings.Contains(e.Name, ".Spawn."):
		return coded(codeNoService, errors.New(e.Name))
	case strings.HasSuffix(e.Name, ".IsLocked"), strings.Contains(e.Error(), "locked"):
		return coded(codeLocked, errors.New(e.Name))
	}
	return coded(codeFailed, err)
}
