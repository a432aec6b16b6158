package token_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

func TestWriteRead(t *testing.T) {
	path := filepath.Join(privateDir(t), "token")
	first, second := token.New(), token.New()
	for _, tok := range []string{first, second} {
		if err := token.Write(path, tok); err != nil {
			t.Fatal(err)
		}
		got, err := token.Read(path)
		if err != nil || got != tok {
			t.Fatalf("Read = %q, %v, want %q", got, err, tok)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != second+"\n" {
		t.Fatalf("file holds %q, %v", data, err)
	}
	if left := names(t, filepath.Dir(path)); len(left) != 1 {
		t.Errorf("folder holds %v, want only the token", left)
	}
}

func TestWrite_refuses(t *testing.T) {
	dir := privateDir(t)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	good := strings.Repeat("0", 64)
	for name, c := range map[string]struct{ path, tok, says string }{
		"short token":      {filepath.Join(dir, "t"), good[:63], "not a token"},
		"long token":       {filepath.Join(dir, "t"), good + "0", "not a token"},
		"upper case":       {filepath.Join(dir, "t"), strings.Repeat("A", 64), "not a token"},
		"no folder":        {filepath.Join(dir, "gone", "t"), good, "no such file"},
		"folder in place":  {filepath.Join(dir, "folder"), good, "there is a folder in its place"},
		"empty":            {filepath.Join(dir, "t"), "", "not a token"},
		"newline included": {filepath.Join(dir, "t"), good[:63] + "\n", "not a token"},
	} {
		err := token.Write(c.path, c.tok)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
		}
		if err != nil && c.tok != "" && strings.Contains(err.Error(), c.tok) {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("folder holds %v, want only the folder in place", left)
	}
}

func TestRead_content(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4)
	for name, c := range map[string]struct{ content, says string }{
		"exact":            {good, ""},
		"final newline":    {good + "\n", ""},
		"empty":            {"", "it is empty"},
		"two newlines":     {good + "\n\n", "exactly 64 lower-case hex digits"},
		"carriage return":  {good + "\r\n", "exactly 64 lower-case hex digits"},
		"only a newline":   {"\n", "exactly 64 lower-case hex digits"},
		"63 digits":        {good[:63], "exactly 64 lower-case hex digits"},
		"63 and a newline": {good[:63] + "\n", "exactly 64 lower-case hex digits"},
		"65 digits":        {good + "0", "exactly 64 lower-case hex digits"},
		"upper case":       {strings.ToUpper(good), "exactly 64 lower-case hex digits"},
		"leading space":    {" " + good, "exactly 64 lower-case hex digits"},
		"not hex":          {strings.Repeat("g", 64), "exactly 64 lower-case hex digits"},
		"a whole page":     {strings.Repeat("<html>", 100000), "exactly 64 lower-case hex digits"},
		"NUL bytes":        {strings.Repeat("\x00", 64), "exactly 64 lower-case hex digits"},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := token.Read(path)
		if c.says == "" {
			if err != nil || got != good {
				t.Errorf("%s: Read = %q, %v", name, got, err)
			}
			continue
		}
		mustRefuse(t, name, path, err, c.says)
		if err != nil && len(c.content) > 10 && strings.Contains(err.Error(), c.content[:10]) {
			t.Errorf("%s: the error shows what is in the file: %v", name, err)
		}
	}
}

func TestRead_missing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	_, err := token.Read(path)
	mustRefuse(t, "missing", path, err, "there is no token file at")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause of a missing file is not fs.ErrNotExist")
	}

	long := filepath.Join(t.TempDir(), strings.Repeat("d", 200), strings.Repeat("e", 200), "token")
	_, err = token.Read(long)
	var f *fault.Error
	if !errors.As(err, &f) || !strings.HasSuffix(f.Message, "/token") && !strings.HasSuffix(f.Message, `\token`) {
		t.Errorf("a long path lost its end: %v", err)
	}
}

// Rotation never breaks a reader: of at least 50,000 reads under at least 300
// rotations not one is short, empty, mixed or refused, and none gives a token
// that was never written. Both go on until both are enough, so that no read is
// without rotations.
func TestRotation(t *testing.T) {
	const readers = 4
	rotations, reads := int64(soak.Rounds(30, 300)), int64(soak.Rounds(3000, 50_000))
	path := filepath.Join(privateDir(t), "token")
	var valid sync.Map
	next := func() string {
		tok := token.New()
		valid.Store(tok, true)
		return tok
	}
	if err := token.Write(path, next()); err != nil {
		t.Fatal(err)
	}
	var written, read, short, other atomic.Int64
	enough := func() bool { return written.Load() >= rotations && read.Load() >= reads }
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for !enough() {
				tok, err := token.Read(path)
				if err != nil {
					short.Add(1)
					t.Errorf("read during rotation: %v", err)
					return
				}
				if _, ok := valid.Load(tok); !ok {
					other.Add(1)
					t.Errorf("read %q, which was never written", tok)
					return
				}
				read.Add(1)
			}
		})
	}
	for !enough() && short.Load()+other.Load() == 0 {
		if err := token.Write(path, next()); err != nil {
			t.Errorf("rotation: %v", err)
			break
		}
		written.Add(1)
	}
	wg.Wait()
	if !enough() {
		t.Errorf("%d rotations and %d good reads, want %d and %d", written.Load(), read.Load(), rotations, reads)
	}
	soak.Measured(t, "%d rotations, %d reads, %d short or refused, %d of a token never written", written.Load(), read.Load(), short.Load(), other.Load())
}

// privateDir is a folder as the daemon makes it; t.TempDir's own is readable
// for all under the usual umask.
func privateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustRefuse(t *testing.T, name, path string, err error, says string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Errorf("%s: error %v, want TOKEN_FILE_MISSING", name, err)
		return
	}
	if f.Code != "TOKEN_FILE_MISSING" || !strings.Contains(f.Message, says) || !strings.Contains(f.Message, path) {
		t.Errorf("%s: %v, want TOKEN_FILE_MISSING that says %q and names %s", name, f, says, path)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
