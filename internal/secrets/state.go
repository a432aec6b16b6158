package secrets

import (
	"context"
	"errors"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A Status says whether credentials can be used.
type Status string

const (
	Ready      Status = "ready"
	Locked     Status = "locked"      // there is a keyring, and it is locked
	None       Status = "none"        // there is no keyring that could be used
	KeyMissing Status = "key missing" // the keyring works, but the key of the saved credentials is not in it
	NotAsked   Status = "not asked"   // the keyring is asked at first use
)

// A State is a status with its reason and what a person does about it, both
// empty when there is nothing to say.
type State struct {
	Status Status
	Reason string // one sentence
	Fix    string // one or two sentences for a person
	Detail string // what the keyring answered; for a person's terminal and the log, not for an agent
}

// A KeyError is why a KeySource has no key.
type KeyError struct{ State }

// Error is the reason.
func (e *KeyError) Error() string { return e.Reason }

// ErrNoKey is what a KeySource returns, alone or wrapped, when it works but holds no key.
var ErrNoKey = errors.New("the keyring has no master key")

// A KeySource returns the master key, KeySize bytes that the vault takes over and
// wipes. With create it makes and stores one when there is none; without, it
// returns ErrNoKey then. It never replaces a key. Other failures are *KeyError;
// anything else counts as None.
type KeySource func(ctx context.Context, create bool) ([]byte, error)

const (
	// KeyTimeout bounds one attempt to get the key: a keyring may wait for a
	// prompt that nobody sees.
	KeyTimeout = 5 * time.Second
	// failureKept is how long a failure answers for the keyring at least, so that
	// a burst of calls asks it once. One that took longer answers for as long.
	failureKept = time.Second
)

// A missingKey is an ErrNoKey of a keyring that knows what the key is kept as.
type missingKey struct{ reason, fix string }

func (m *missingKey) Error() string { return m.reason }

func (m *missingKey) Is(target error) bool { return target == ErrNoKey }

const fixMissing = "Restore the keyring item. If it is gone for good, remove each credential with `hbrestd secret rm NAME` and set it again."

// fixServer ends what helps where there is no keyring that could be used.
func fixServer() string {
	if DefaultBackend() != SecretService {
		return "" // the other systems have theirs always, and no systemd
	}
	return " On a server: `hbrestd config set keyring file`, and a restart with a terminal or LoadCredential=hbrestd-passphrase:FILE in the unit."
}

// stateOf reads a KeySource's error.
func stateOf(err error) State {
	var k *KeyError
	var m *missingKey
	switch {
	case errors.As(err, &k):
		return k.State
	case errors.As(err, &m):
		return State{KeyMissing, m.reason, m.fix, ""}
	case errors.Is(err, ErrNoKey):
		return State{KeyMissing, "the keyring has no key for the saved credentials", fixMissing, ""}
	case errors.Is(err, context.DeadlineExceeded):
		return State{None, "the keyring did not answer within 5 seconds", "Check that its service runs and waits for no answer on a screen." + fixServer(), ""}
	}
	return State{None, "the keyring could not be used", "Start the daemon again; `hbrestd secret list` shows how the keyring is then.", fault.Shorten(err.Error(), 200)}
}

func locked(s State, cause error) *fault.Error {
	return fail("SECRET_LOCKED", "credentials cannot be used now: %s", s.Reason).With(fault.Field("request.auth"), fault.Cause(cause))
}

// A keyFlight is one attempt that all who need the key wait for.
type keyFlight struct {
	done   chan struct{}
	create bool
	box    *box
	err    error
}

// State says what is known, at once and without asking the keyring.
func (v *Vault) State() State {
	v.keyMu.Lock()
	defer v.keyMu.Unlock()
	switch {
	case v.box != nil:
		return State{Status: Ready}
	case v.keyErr != nil:
		return stateOf(v.keyErr)
	}
	return State{Status: NotAsked, Reason: "the keyring is asked when a credential is first used"}
}

// Check asks the keyring now, unless the key is held already, and says what came
// of it. A vault without credentials and without a key is ready when the keyring
// works: the key is made with the first credential, and probe, if it is not nil,
// decides.
func (v *Vault) Check(ctx context.Context, probe func(context.Context) error) State {
	v.keyMu.Lock()
	v.keyErrAt = time.Time{} // a person wants to know how it is now
	v.keyMu.Unlock()
	_, err := v.masterKey(ctx, false)
	if err == nil {
		return State{Status: Ready}
	}
	names, listErr := v.records.ListSealed()
	if fresh := listErr == nil && len(names) == 0; !fresh || !errors.Is(err, ErrNoKey) {
		return stateOf(keyCause(err))
	}
	if probe != nil {
		ctx, cancel := context.WithTimeout(ctx, KeyTimeout)
		defer cancel()
		if err := probe(ctx); err != nil {
			return stateOf(err)
		}
	}
	v.keyMu.Lock()
	v.keyErr = nil
	v.keyMu.Unlock()
	return State{Status: Ready}
}

// keyCause is the error below a SECRET_LOCKED.
func keyCause(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Unwrap() != nil {
		return f.Unwrap()
	}
	return err
}

// masterKey returns the key, asking the source when it is not held. All who ask
// at once share one attempt; a failure is remembered for failureKept.
func (v *Vault) masterKey(ctx context.Context, create bool) (*box, error) {
	for {
		v.keyMu.Lock()
		if v.closed {
			v.keyMu.Unlock()
			return nil, fault.New("SHUTTING_DOWN", "the daemon is stopping")
		}
		if v.box != nil {
			defer v.keyMu.Unlock()
			return v.box, nil
		}
		wanted := create && errors.Is(v.keyErr, ErrNoKey)
		if v.keyErr != nil && !wanted && v.now().Sub(v.keyErrAt) < v.keyErrFor {
			defer v.keyMu.Unlock()
			return nil, locked(stateOf(v.keyErr), v.keyErr)
		}
		f := v.keyFlight
		if f == nil {
			f = &keyFlight{done: make(chan struct{}), create: create}
			v.keyFlight = f
			v.work.Go(func() { v.askForKey(f) })
		}
		v.keyMu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, fault.From(ctx.Err())
		}
		switch {
		case f.err == nil:
			return f.box, nil
		case create && !f.create && errors.Is(f.err, ErrNoKey):
			continue // that attempt was not allowed to make one
		}
		return nil, locked(stateOf(f.err), f.err)
	}
}

// askForKey runs one attempt. It is not bound to the call that began it: others
// wait for it too.
func (v *Vault) askForKey(f *keyFlight) {
	ctx, cancel := context.WithTimeout(v.life, KeyTimeout)
	defer cancel()
	start := v.now()
	key, err := v.source(ctx, f.create)
	if err != nil && ctx.Err() != nil && v.life.Err() == nil {
		err = &KeyError{stateOf(context.DeadlineExceeded)}
	}
	var b *box
	if err == nil {
		if b, err = newBox(key); err == nil {
			err = v.ours(b)
		}
		if err != nil && b != nil {
			b.close()
			b = nil
		}
	}
	v.keyMu.Lock()
	defer v.keyMu.Unlock()
	f.box, f.err = b, err
	v.box, v.keyErr, v.keyErrAt, v.keyFlight = b, err, v.now(), nil
	v.keyErrFor = max(failureKept, v.keyErrAt.Sub(start))
	close(f.done)
}

// ours refuses a key with which none of the saved credentials was sealed.
func (v *Vault) ours(b *box) error {
	names, err := v.records.ListSealed()
	if err != nil {
		return err
	}
	others := 0
	for _, n := range names {
		r, err := v.load(n)
		switch {
		case err != nil || r == nil:
		case r.KeyID == b.id:
			return nil
		default:
			others++
		}
	}
	if others > 0 {
		return &KeyError{State{KeyMissing, "the key in the keyring is not the one that sealed the saved credentials", fixMissing, ""}}
	}
	return nil
}
