package secrets_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

func onBus(t *testing.T, address string) *secrets.Keyring {
	return &secrets.Keyring{
		Program: realProgram(t), Backend: secrets.SecretService, Item: "master-key",
		Env: []string{"DBUS_SESSION_BUS_ADDRESS=" + address},
	}
}

func TestNoBus(t *testing.T) {
	start := time.Now()
	if _, err := onBus(t, "unix:path=/nonexistent/bus").Key(t.Context(), true); status(err) != secrets.None || time.Since(start) > 3*time.Second {
		t.Error(err, time.Since(start))
	}
	// Neither the address of a bus nor one in its usual place: the library looks
	// for a program then, which is nothing that a person should read about.
	for _, address := range []string{"unix:path=/nonexistent/bus", "autolaunch:"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/bus", os.Getuid())); err == nil && address == "autolaunch:" {
			continue // a desktop's
		}
		_, err := onBus(t, address).Key(t.Context(), true)
		var e *secrets.KeyError
		if !errors.As(err, &e) || !strings.HasPrefix(e.Reason, "there is no session bus") || e.Detail == "" || strings.Contains(e.Detail, "dbus-launch") {
			t.Errorf("%s: %+v", address, e)
		}
	}
	k := onBus(t, "unix:path=/nonexistent/bus")
	k.Backend = secrets.WinCred // another system's
	if _, err := k.Key(t.Context(), true); status(err) != secrets.None {
		t.Error(err)
	}
}

// A bus that accepts and never answers costs a credentialed call five seconds,
// once, and nothing else anything.
func TestSilentBus(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(bearer("k", "a.example"), "sk_live_0123456789")
	before := bytes.Clone(f.store.m["k"])
	k := onBus(t, "unix:path="+silentBus(t))
	took := time.Hour
	for try := 0; try < 3 && took > 5500*time.Millisecond; try++ { // other tests keep the machine busy
		f.reopen(func(o *secrets.Options) { o.Key = k.Key })
		start := time.Now()
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() { f.refused("k", "a.example", "SECRET_LOCKED") })
		}
		for range 20 { // meanwhile
			at := time.Now()
			if _, err := f.vault.List(); err != nil {
				t.Error(err)
			}
			_ = f.vault.State()
			if d := time.Since(at); d > time.Second {
				t.Errorf("listing took %v", d)
			}
		}
		group.Wait()
		took = time.Since(start)
	}
	if took > 5500*time.Millisecond {
		t.Errorf("took %v", took)
	}
	if s := f.vault.State(); s.Status != secrets.None || !strings.Contains(s.Reason, "5 seconds") {
		t.Error(s)
	}
	if !bytes.Equal(f.store.m["k"], before) {
		t.Error("the record changed")
	}
}

// A desktop is a private session bus with a real gnome-keyring.
type desktop struct {
	t       *testing.T
	dir     string
	address string
	daemon  *exec.Cmd
}

// newDesktop starts the bus. It starts no services by itself.
func newDesktop(t *testing.T) *desktop {
	t.Helper()
	if os.Getenv("HB_E2E_KEYRING") != "1" {
		t.Skip("needs Debian's dbus and gnome-keyring; run with HB_E2E_KEYRING=1")
	}
	dir, err := os.MkdirTemp("", "desk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, sub := range []string{"run", "data"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "bus.conf")
	text := fmt.Sprintf(`<busconfig><type>session</type><listen>unix:path=%s/run/bus</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`, dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &desktop{t: t, dir: dir, address: "unix:path=" + dir + "/run/bus"}
	d.start("dbus-daemon", "", "--config-file="+config, "--nofork", "--print-address")
	return d
}

// start runs a program until the test ends and waits for its first line, if it
// is the one that prints.
func (d *desktop) start(name, stdin string, args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{
		"HOME=" + d.dir, "XDG_RUNTIME_DIR=" + d.dir + "/run", "XDG_DATA_HOME=" + d.dir + "/data",
		"DBUS_SESSION_BUS_ADDRESS=" + d.address, "PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { stop(cmd) })
	if name == "dbus-daemon" {
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			d.t.Fatal(line, err)
		}
	}
	return cmd
}

func stop(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// login starts gnome-keyring with the password, or, without one, leaves the
// login keyring locked as a daemon that starts before the login finds it.
func (d *desktop) login(password string) {
	d.t.Helper()
	if d.daemon != nil {
		stop(d.daemon)
	}
	args := []string{"--foreground", "--components=secrets", "--control-directory=" + d.dir + "/run"}
	if password != "" {
		args = append(args, "--unlock")
	}
	d.daemon = d.start("gnome-keyring-daemon", password, args...)
	k := onBus(d.t, d.address)
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := k.Probe(d.t.Context())
		if s := status(err); err == nil || s == secrets.Locked {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("gnome-keyring did not come up: %v", err)
		}
	}
}

func TestGnomeKeyring(t *testing.T) {
	d := newDesktop(t)
	k := onBus(t, d.address)
	if err := k.Probe(t.Context()); status(err) != secrets.None {
		t.Fatal("no service yet:", err)
	}
	d.login("pw")
	if _, err := k.Key(t.Context(), false); !errors.Is(err, secrets.ErrNoKey) {
		t.Fatal(err)
	}
	key, err := k.Key(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := k.Key(t.Context(), true)
	if err != nil || !bytes.Equal(again, key) {
		t.Fatal("another key:", err)
	}
	other := onBus(t, d.address)
	other.Item = "other-home"
	if second, err := other.Key(t.Context(), true); err != nil || bytes.Equal(second, key) {
		t.Error("two homes share a key:", err)
	}
	for range 2 {
		if err := other.Forget(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := other.Key(t.Context(), false); !errors.Is(err, secrets.ErrNoKey) {
		t.Error(err)
	}

	d.login("pw") // the keyring's daemon restarts
	if again, err := k.Key(t.Context(), false); err != nil || !bytes.Equal(again, key) {
		t.Error("after a restart:", err)
	}
	d.login("") // and comes back locked
	start := time.Now()
	if _, err := k.Key(t.Context(), true); status(err) != secrets.Locked || time.Since(start) > 5*time.Second {
		t.Error(err, time.Since(start))
	}
}

// The whole life of a credential on a real keyring.
func TestVaultOnGnomeKeyring(t *testing.T) {
	d := newDesktop(t)
	d.login("pw")
	k := onBus(t, d.address)
	f := open(t)
	use := func(o *secrets.Options) { o.Key = k.Key }
	f.reopen(use)
	if s := f.vault.Check(t.Context(), k.Probe); s.Status != secrets.Ready {
		t.Fatal(s)
	}
	f.put(bearer("k", "a.example"), "sk_live_0123456789")
	want := map[string]string{"Authorization": "Bearer sk_live_0123456789"}
	f.want("k", "a.example", want)
	before := bytes.Clone(f.store.m["k"])

	d.login("") // locked under a running daemon: the key is held
	f.want("k", "a.example", want)
	f.reopen(use) // and under one that starts: it is not
	f.refused("k", "a.example", "SECRET_LOCKED")
	if s := f.vault.State(); s.Status != secrets.Locked {
		t.Error(s)
	}

	d.login("pw")
	if s := f.vault.Check(t.Context(), k.Probe); s.Status != secrets.Ready {
		t.Error(s)
	}
	f.want("k", "a.example", want)

	if err := k.Forget(t.Context()); err != nil { // somebody deletes the item
		t.Fatal(err)
	}
	f.reopen(use)
	f.refused("k", "a.example", "SECRET_LOCKED")
	if s := f.vault.State(); s.Status != secrets.KeyMissing {
		t.Error(s)
	}
	if err := f.try(bearer("new", "a.example"), "sk_live_0123456789"); !fault.Is(err, "SECRET_LOCKED") {
		t.Error(err)
	}
	if !bytes.Equal(f.store.m["k"], before) || len(f.store.m) != 1 {
		t.Error("a record changed")
	}
	if _, err := k.Key(t.Context(), false); !errors.Is(err, secrets.ErrNoKey) {
		t.Error("a new key was made:", err)
	}
}
