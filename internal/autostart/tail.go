package autostart

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const (
	tailEvery = 250 * time.Millisecond // how often a followed file is looked at
	tailMost  = 4 << 20                // bytes from the end in which lines are looked for
)

// tail prints the end of the log file, and what is added to it.
func tail(ctx context.Context, o Options, r LogRequest) error {
	f, err := os.Open(o.LogFile)
	if errors.Is(err, fs.ErrNotExist) {
		return failed("there is no log yet: %s", o.LogFile).With(fault.Hint("`hbrestd service status` says whether it has been started."))
	}
	if err != nil {
		return failed("the log cannot be read: %v", err)
	}
	defer func() { _ = f.Close() }()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return failed("the log cannot be read: %v", err)
	}
	from := max(0, at-tailMost)
	data, err := io.ReadAll(io.NewSectionReader(f, from, at-from))
	if err != nil {
		return failed("the log cannot be read: %v", err)
	}
	if _, err := r.Stdout.Write(lastLines(data, r.Lines)); err != nil {
		return err
	}
	for r.Follow {
		if o.Sleep(ctx, tailEvery); ctx.Err() != nil {
			return nil
		}
		if now, err := os.Stat(o.LogFile); err == nil && moved(f, now, at) {
			if g, err := os.Open(o.LogFile); err == nil {
				_ = f.Close()
				f, at = g, 0
			}
		}
		n, err := io.Copy(r.Stdout, io.NewSectionReader(f, at, 1<<40))
		if at += n; err != nil {
			return err
		}
	}
	return nil
}

// moved reports whether the name leads to another file by now, or to one that
// was cut.
func moved(f *os.File, now fs.FileInfo, at int64) bool {
	old, err := f.Stat()
	return err != nil || !os.SameFile(old, now) || now.Size() < at
}

// lastLines is the end of a text, n lines long.
func lastLines(text []byte, n int) []byte {
	end := len(bytes.TrimSuffix(text, []byte("\n")))
	start := end
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(text[:start], '\n')
		if i < 0 {
			return text
		}
		if start = i; n == 1 {
			return text[i+1:]
		}
	}
	return nil
}
