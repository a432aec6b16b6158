package secrets

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Backends that hbrestd-keyring knows. One is named for each run; none is ever
// tried because another failed.
const (
	SecretService = "secret-service"
	WinCred       = "wincred"
	Keychain      = "keychain"
	EncryptedFile = "file" // only where a person named it
)

// DefaultBackend is the keyring of the system hbrestd runs on.
func DefaultBackend() string {
	switch runtime.GOOS {
	case "windows":
		return WinCred
	case "darwin":
		return Keychain
	}
	return SecretService
}

const (
	programName = "hbrestd-keyring"
	maxAnswer   = 64 << 10
	// MinPassphrase is the shortest passphrase of the encrypted file, in bytes:
	// its key derivation is quick by today's measure.
	MinPassphrase = 12
)

// FindProgram returns where hbrestd-keyring is, seen from hbrestd's own path:
// beside it, or in the libexec folder next to its own.
func FindProgram(hbrestd string) (string, error) {
	name := programName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	dirs := []string{filepath.Dir(hbrestd)}
	if real, err := filepath.EvalSymlinks(hbrestd); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	for _, dir := range dirs {
		for _, p := range []string{
			filepath.Join(dir, name),
			filepath.Join(dir, "..", "libexec", name),
			filepath.Join(dir, "..", "libexec", "hbrestd", name),
		} {
			if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("%s is neither beside %s nor in a libexec folder next to it", programName, hbrestd)
}

// KeyringEnv picks what a keyring needs from an environment in os.Environ's form:
// where the session bus is, and what Windows programs cannot start without. PATH
// is left out on purpose: the D-Bus library would start a bus of its own.
func KeyringEnv(environ []string) []string {
	wanted := []string{"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "HOME", "USER", "SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA"}
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, name) }) {
			out = append(out, kv)
		}
	}
	return out
}

// A Keyring keeps the master key in the keyring of the system, by running
// hbrestd-keyring. Program, Backend and Item are required. [Keyring.Key] is a
// KeySource.
type Keyring struct {
	Program string   // path of hbrestd-keyring
	Backend string   // one of the constants above
	Item    string   // [a-z0-9-], one for each home of hbrestd, so that two do not share a key
	Env     []string // KeyringEnv of the environment
	Dir     string   // EncryptedFile: a folder of the user's own, mode 0700

	// Passphrase returns the passphrase of the encrypted file, which the Keyring
	// takes over and wipes. It is asked for each run.
	Passphrase func(ctx context.Context) ([]byte, error)

	once sync.Once
	turn chan struct{} // one run at a time
}

// Key is a KeySource: it reads the key and, with create, makes one when there is
// none. A new key is read back before it is used.
func (k *Keyring) Key(ctx context.Context, create bool) ([]byte, error) {
	key, err := k.read(ctx)
	if !create || !errors.Is(err, ErrNoKey) {
		return key, err
	}
	fresh := make([]byte, KeySize)
	defer clear(fresh)
	_, _ = rand.Read(fresh) // never fails: it aborts the program instead
	if _, err := k.run(ctx, "set", fresh); err != nil {
		return nil, err
	}
	if key, err = k.read(ctx); err != nil {
		return nil, err
	}
	if !bytes.Equal(key, fresh) {
		clear(key)
		return nil, k.broken("the keyring gave back another key than it was given", "")
	}
	return key, nil
}

func (k *Keyring) read(ctx context.Context) ([]byte, error) {
	key, err := k.run(ctx, "get", nil)
	if err == nil && len(key) != KeySize {
		clear(key)
		return nil, k.broken("the keyring's item is not a key of hbrestd", "")
	}
	return key, err
}

// Probe writes, reads and removes a test item; nil means that the keyring works.
// Its errors are *KeyError.
func (k *Keyring) Probe(ctx context.Context) error {
	_, err := k.run(ctx, "probe", nil)
	return err
}

// Forget removes the master key. Every credential sealed with it is lost.
func (k *Keyring) Forget(ctx context.Context) error {
	_, err := k.run(ctx, "delete", nil)
	return err
}

// A helperRequest and a helperAnswer are what hbrestd-keyring reads and writes.
type helperRequest struct {
	Version    int    `json:"version"`
	Verb       string `json:"verb"`
	Backend    string `json:"backend"`
	Item       string `json:"item"`
	Value      []byte `json:"value,omitempty"`
	Dir        string `json:"dir,omitempty"`
	Passphrase []byte `json:"passphrase,omitempty"`
}

type helperAnswer struct {
	OK     bool   `json:"ok"`
	Value  []byte `json:"value"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// run does one thing with the keyring. The whole of it, waiting for its turn
// included, takes at most KeyTimeout.
func (k *Keyring) run(ctx context.Context, verb string, value []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, KeyTimeout)
	defer cancel()
	r := helperRequest{Version: 1, Verb: verb, Backend: k.Backend, Item: k.Item, Value: value}
	if verb == "probe" {
		r.Item = ""
	}
	if k.Backend == EncryptedFile {
		pass, err := k.passphrase(ctx)
		if err != nil {
			return nil, err
		}
		defer clear(pass)
		r.Dir, r.Passphrase = k.Dir, pass
	}
	in, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	defer clear(in)
	k.once.Do(func() { k.turn = make(chan struct{}, 1) })
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, k.failed(ctx, ctx.Err())
	}
	var out bounded
	cmd := exec.CommandContext(ctx, k.Program)
	cmd.Stdin, cmd.Stdout = bytes.NewReader(append(in, '\n')), &out
	cmd.Env, cmd.Dir = k.env(), string(filepath.Separator)
	cmd.WaitDelay = 200 * time.Millisecond // somebody else may hold the pipe
	ownGroup(cmd)
	runErr := cmd.Run()
	defer clear(out.b)
	if ctx.Err() != nil {
		return nil, k.failed(ctx, ctx.Err())
	}
	var a helperAnswer
	if err := json.Unmarshal(out.b, &a); err != nil || a.OK != (runErr == nil) {
		if runErr == nil {
			runErr = errors.New("its answer could not be read")
		}
		return nil, k.broken("the program "+programName+" did not do its work", runErr.Error())
	}
	if !a.OK {
		return nil, k.answered(a)
	}
	return a.Value, nil
}

// env is never nil: exec would hand on the whole environment then.
func (k *Keyring) env() []string {
	env := []string{"GOTRACEBACK=none"} // a crash prints no memory
	if k.Backend != EncryptedFile {
		return append(env, k.Env...)
	}
	// The library looks for a bus before main, whatever keyring is used.
	return append(env, "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent")
}

func (k *Keyring) passphrase(ctx context.Context) ([]byte, error) {
	if k.Passphrase == nil {
		return nil, &KeyError{State{None, "the encrypted file has no passphrase", "Start hbrestd with a passphrase from a systemd credential or a terminal.", ""}}
	}
	pass, err := k.Passphrase(ctx)
	if err != nil {
		return nil, &KeyError{State{Locked, "the passphrase of the encrypted file could not be had", "Check the systemd credential, or enter the passphrase on the terminal.", err.Error()}}
	}
	if len(pass) < MinPassphrase {
		clear(pass)
		return nil, &KeyError{State{None, fmt.Sprintf("the passphrase of the encrypted file has fewer than %d characters", MinPassphrase), "Choose a longer one: the file stands or falls with it.", ""}}
	}
	return pass, nil
}

// PassphraseFile reads a passphrase from a file, such as one in systemd's
// $CREDENTIALS_DIRECTORY. One line break at its end is not part of it.
func PassphraseFile(path string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		const most = 4 << 10
		b, err := io.ReadAll(io.LimitReader(f, most+1))
		if err != nil || len(b) > most {
			clear(b)
			return nil, errors.Join(err, fmt.Errorf("%s is not a passphrase of at most %d bytes", filepath.Base(path), most))
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")), nil
	}
}

// A HeldPassphrase is one that a person has entered, kept for as long as the
// key may be asked for. It prints as nothing.
type HeldPassphrase struct {
	mu   sync.Mutex
	text value
}

// HoldPassphrase takes text over.
func HoldPassphrase(text []byte) *HeldPassphrase { return &HeldPassphrase{text: keep(text)} }

// Get is Keyring.Passphrase; it fails once the passphrase was wiped.
func (p *HeldPassphrase) Get(context.Context) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text.bytes() == nil {
		return nil, errors.New("it was wiped")
	}
	return bytes.Clone(p.text.bytes()), nil
}

// Wipe forgets the passphrase. A nil one may be wiped.
func (p *HeldPassphrase) Wipe() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.wipe()
	p.text = value{}
}

// failed tells a caller who went away from a keyring that did not answer.
func (k *Keyring) failed(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &KeyError{stateOf(context.DeadlineExceeded)}
	}
	return context.Cause(ctx)
}

func (k *Keyring) broken(reason, detail string) error {
	return &KeyError{State{None, reason, "Install hbrestd and " + programName + " of the same version in one folder; `hbrestd secret list` shows the state.", detail}}
}

// answered gives the program's codes their words.
func (k *Keyring) answered(a helperAnswer) error {
	s := State{Status: None, Detail: a.Detail}
	switch a.Code {
	case "not_found":
		return k.missing()
	case "locked":
		s.Status, s.Reason, s.Fix = Locked, "the keyring is locked", "Unlock it: log in on the desktop, or unlock the login keyring with its password."
	case "no_bus":
		s.Reason, s.Fix = "there is no session bus, and no keyring can be reached without one", "Start hbrestd in your desktop session."+fixServer()
	case "no_service":
		s.Reason, s.Fix = "there is no keyring service", "Start one in this session, such as gnome-keyring."+fixServer()
	case "no_collection":
		s.Reason, s.Fix = "the keyring service has no login keyring", "Log in once on the desktop, or make a keyring named login."+fixServer()
	case "no_backend":
		s.Reason, s.Fix = "this hbrestd cannot use the keyring "+k.Backend+" on this system", "Install the build for this system."+fixServer()
	case "wrong_passphrase":
		s.Status, s.Reason, s.Fix = Locked, "the passphrase does not open the encrypted file",
			"Give the passphrase the file was made with. If it is right, the file was changed: restore "+k.path()+" from a backup."
	case "damaged":
		s.Reason, s.Fix = "the encrypted file is damaged",
			"Restore "+k.path()+" from a backup. Without one, remove the file and each credential (`hbrestd secret rm NAME`), and set them again."
	default:
		s.Reason, s.Fix = "the keyring refused or failed", "Check that the system's keyring program works."+fixServer()
	}
	return &KeyError{s}
}

// missing is for a keyring that works and has no key. It says where the key would be.
func (k *Keyring) missing() error {
	const lost = "remove each credential with `hbrestd secret rm NAME` and set it again."
	if k.Backend == EncryptedFile {
		return &missingKey{"the encrypted file with the key of the saved credentials is not there", "Restore " + k.path() + " from a backup. If it is gone for good, " + lost}
	}
	return &missingKey{
		"the keyring has no key for the saved credentials",
		"Restore its item " + k.Item + ", or move HB_WRAP_HOME back to where it was. If the key is gone for good, " + lost,
	}
}

// path is that of the encrypted file.
func (k *Keyring) path() string { return filepath.Join(k.Dir, k.Item) }

// bounded keeps the first bytes of what is written to it.
type bounded struct{ b []byte }

func (w *bounded) Write(p []byte) (int, error) {
	if room := maxAnswer - len(w.b); room > 0 {
		w.b = append(w.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}
