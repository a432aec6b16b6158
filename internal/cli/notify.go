package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// notifier speaks to the service manager that has started this process; nil if
// none has asked for it.
func (a *app) notifier() func(state string) {
	if socket, ok := a.env("NOTIFY_SOCKET"); !ok || socket == "" {
		return nil
	}
	return func(state string) {
		// Whoever does not listen is not waiting either.
		_, _ = sd.SdNotify(false, state)
	}
}

// watchdog is how often the service manager expects to hear from this process;
// 0: never.
func watchdog() time.Duration {
	every, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		return 0
	}
	return every
}

// failure is an error as one line of the service manager's status.
func failure(err error) string {
	_, e := explain(nil, err)
	return fault.Shorten(fmt.Sprintf("%s: %s", e.Code, e.Message), 600)
}

// journalled reports whether stderr goes to the system's journal, which knows
// the time itself and takes each line's priority from its beginning.
func (a *app) journalled() bool {
	stream, ok := a.env("JOURNAL_STREAM")
	f, isFile := a.stderr.(*os.File)
	return ok && isFile && isStream(f, stream)
}

// journalHandler writes slog's text behind the priority of sd-daemon(3), and
// without the time.
func journalHandler(w io.Writer, level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, at slog.Attr) slog.Attr {
		if len(groups) == 0 && (at.Key == slog.TimeKey || at.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return at
	}}
	j := &journal{w: w, mu: &sync.Mutex{}, line: &bytes.Buffer{}}
	j.text = slog.NewTextHandler(j.line, o)
	return j
}

type journal struct {
	w    io.Writer
	mu   *sync.Mutex // guards line and the order of writes
	line *bytes.Buffer
	text slog.Handler
}

func (j *journal) Enabled(ctx context.Context, l slog.Level) bool { return j.text.Enabled(ctx, l) }

func (j *journal) Handle(ctx context.Context, r slog.Record) error {
	priority := 7
	switch {
	case r.Level >= slog.LevelError:
		priority = 3
	case r.Level >= slog.LevelWarn:
		priority = 4
	case r.Level >= slog.LevelInfo:
		priority = 6
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.line.Reset()
	fmt.Fprintf(j.line, "<%d>", priority)
	if err := j.text.Handle(ctx, r); err != nil {
		return err
	}
	_, err := j.w.Write(j.line.Bytes())
	return err
}

func (j *journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *j
	with.text = j.text.WithAttrs(attrs)
	return &with
}

func (j *journal) WithGroup(name string) slog.Handler {
	with := *j
	with.text = j.text.WithGroup(name)
	return &with
}

// overriding is the environment with one variable set; "" leaves it alone.
func overriding(env func(string) (string, bool), name, value string) func(string) (string, bool) {
	if value == "" {
		return env
	}
	return func(asked string) (string, bool) {
		if strings.EqualFold(asked, name) {
			return value, true
		}
		return env(asked)
	}
}
