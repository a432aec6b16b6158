package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// Offline is what can be known of a home whose daemon does not run.
type Offline struct {
	Store    StoreLook
	StoreErr error // STORE_FAILED: store.db cannot be read, or is of a later version
}

// A StoreLook is what store.db says while nobody has it open.
type StoreLook = store.Look

// LookOffline reads the files of a home and changes nothing.
func LookOffline(cfg config.Daemon) Offline {
	var o Offline
	o.Store, o.StoreErr = store.LookAt(cfg.StorePath)
	return o
}

// A KeyringLook is how the keyring is now. Status is a word of
// control.SecretState, or "off".
type KeyringLook struct {
	Status, Reason, Fix string
}

// LookKeyring asks the system's keyring as a daemon with these settings would.
// sealed is the number of saved credentials: without any, a keyring that works is
// ready although it holds no key. An encrypted file is not asked, because its
// passphrase is the daemon's to have.
func LookKeyring(ctx context.Context, cfg config.Daemon, sealed int) KeyringLook {
	switch cfg.Keyring {
	case "off":
		return KeyringLook{Status: "off"}
	case "file":
		return KeyringLook{Status: string(secrets.NotAsked), Reason: "the encrypted file is opened when the daemon runs"}
	}
	d := &Daemon{given: cfg, log: slog.New(slog.DiscardHandler)}
	source, err := d.systemKey(ctx)
	if err != nil {
		return KeyringLook{Status: string(secrets.None), Reason: err.Error()}
	}
	key, err := source(ctx, false)
	clear(key)
	if errors.Is(err, secrets.ErrNoKey) && sealed == 0 {
		err = d.probe(ctx)
	}
	var k *secrets.KeyError
	switch {
	case err == nil:
		return KeyringLook{Status: string(secrets.Ready)}
	case errors.As(err, &k):
		return KeyringLook{string(k.Status), k.Reason, k.Fix}
	case errors.Is(err, secrets.ErrNoKey):
		return KeyringLook{string(secrets.KeyMissing), "the keyring has no key for the saved credentials", "Restore the keyring item, or set each credential again."}
	}
	return KeyringLook{Status: string(secrets.None), Reason: err.Error()}
}

// KeyItem is the name of the key of a home's credentials in the system's
// keyring.
func KeyItem(cfg config.Daemon) string { return (&Daemon{given: cfg}).keyItem() }

// ForgetKey removes the key of a home's credentials from the system's keyring.
// Whatever was sealed with it cannot be opened again. No key there is no error;
// the error is a sentence about the keyring. nothing reports that no keyring
// could be reached, so that nothing can have been there either.
func ForgetKey(ctx context.Context, cfg config.Daemon) (nothing bool, err error) {
	k := &secrets.Keyring{Backend: secrets.DefaultBackend(), Item: KeyItem(cfg), Env: secrets.KeyringEnv(os.Environ())}
	me, err := os.Executable()
	if err == nil {
		k.Program, err = secrets.FindProgram(me)
	}
	if err != nil {
		return false, err
	}
	err = k.Forget(ctx)
	if errors.Is(err, secrets.ErrNoKey) {
		return false, nil
	}
	var e *secrets.KeyError
	return errors.As(err, &e) && e.Status == secrets.None, err
}

// Listens reports whether anything takes connections at a loopback address.
func Listens(ctx context.Context, addr string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
