package cli

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The priorities are those of sd-daemon(3).
func TestJournalHandler(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(journalHandler(&b, slog.LevelInfo))
	log.Debug("not shown")
	log.Info("listening", "addr", "127.0.0.1:4111")
	log.With("a", 1).WithGroup("g").Warn("two\nlines", "level", "x")
	log.Error("bad", "time", 3)
	want := "<6>msg=listening addr=127.0.0.1:4111\n<4>msg=\"two\\nlines\" a=1 g.level=x\n<3>msg=bad\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

func TestJournalled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no journal")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := newWorld(t, nil)
	if w.app(nil, f).journalled() {
		t.Error("without JOURNAL_STREAM")
	}
	w.env["JOURNAL_STREAM"] = "1:2" // of another process, which started this one
	if w.app(nil, f).journalled() {
		t.Error("with another stream")
	}
}

func TestNotifier(t *testing.T) {
	w := newWorld(t, nil)
	if w.app(nil, nil).notifier() != nil {
		t.Error("nobody has asked")
	}
	path := filepath.Join(w.home, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.env["NOTIFY_SOCKET"] = path
	t.Setenv("NOTIFY_SOCKET", path) // the library reads the process's own
	w.app(nil, nil).notifier()("READY=1\nSTATUS=well")
	b := make([]byte, 100)
	n, err := l.Read(b)
	if err != nil || string(b[:n]) != "READY=1\nSTATUS=well" {
		t.Errorf("%q %v", b[:n], err)
	}
}

func TestFailureInOneLine(t *testing.T) {
	err := fault.New("ADDRESS_IN_USE", "%s is already in use", "127.0.0.1:4111")
	if got := failure(err); got != "ADDRESS_IN_USE: 127.0.0.1:4111 is already in use" {
		t.Error(got)
	}
	if got := failure(fault.New("STORE_FAILED", "a\nSTATUS=b%s", strings.Repeat("x", 1000))); strings.Contains(got, "\n") || len([]rune(got)) > 600 {
		t.Error(got)
	}
}

func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "hbrestd.log")
	write := func(text string) {
		t.Helper()
		f, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	write("one\n")
	write("two\n")
	if data, _ := os.ReadFile(path); string(data) != "one\ntwo\n" {
		t.Errorf("%q", data)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.Truncate(path, maxLog); err != nil {
		t.Fatal(err)
	}
	write("three\n") // at the limit: kept; one over: put aside
	if _, err := os.Stat(path + ".1"); err == nil {
		t.Error("put aside at the limit")
	}
	write("four\n")
	old, err := os.Stat(path + ".1")
	if data, _ := os.ReadFile(path); err != nil || old.Size() != maxLog+6 || string(data) != "four\n" {
		t.Errorf("%v %v %q", old, err, data)
	}
	if _, err := openLog("hbrestd.log"); err == nil {
		t.Error("a relative path")
	}
}

// A start that cannot succeed has an exit code of its own, or the one that its
// service manager needs; --home is HB_WRAP_HOME; the last words are in the log.
func TestRunThatCannotStart(t *testing.T) {
	w := newWorld(t, nil)
	file := filepath.Join(w.home, "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(w.home, "log")
	for want, args := range map[int][]string{
		8: {"run", "--home", file},
		0: {"run", "--home", file, "--final-exit=0", "--log", log},
	} {
		got := w.hb(args...)
		if got.Exit != want || got.Out != "" || (want == 8) != strings.Contains(got.ErrOut, "HOME/a file") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if data, err := os.ReadFile(log); err != nil || !strings.Contains(string(data), file) {
		t.Errorf("the log: %q %v", data, err)
	}
	w.env["HB_WRAP_ADDR"] = "0.0.0.0:1"
	if got := w.hb("run"); got.Exit != 8 || !strings.Contains(got.ErrOut, "reading the settings") {
		t.Errorf("a bad setting: %+v", got)
	}
}
