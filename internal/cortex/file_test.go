package cortex_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func page(wrapper, key, text string) cortex.Page {
	return cortex.Page{Wrapper: wrapper, Key: key, Title: "Page " + key, URL: "https://api.example.com/" + key, Host: "api.example.com", Text: text}
}

// mustFail checks the code of an error and part of its message.
func mustFail(t *testing.T, err error, code fault.Code, says string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code || !strings.Contains(f.Message, says) {
		t.Errorf("error %v, want %s with %q", err, code, says)
	}
}

// files are the names in the index's folder.
func files(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestNothingIsMadeBeforeTheFirstPage(t *testing.T) {
	x, path := newIndex(t, cortex.Options{})
	if hits := search(t, x, cortex.Query{Text: "anything"}); len(hits) != 0 {
		t.Errorf("hits %v", hits)
	}
	s, err := x.Stats(context.Background())
	if want := (cortex.Stats{Path: path, MaxBytes: cortex.DefaultMaxBytes}); err != nil || fmt.Sprint(s) != fmt.Sprint(want) {
		t.Errorf("Stats %+v, %v, want %+v", s, err, want)
	}
	for _, f := range []cortex.Filter{{All: true}, {Wrapper: "a"}} {
		if n, err := x.Forget(context.Background(), f); n != 0 || err != nil {
			t.Errorf("Forget(%+v) = %d, %v", f, n, err)
		}
	}
	if n, err := x.Rebuild(context.Background()); n != 0 || err != nil {
		t.Errorf("Rebuild = %d, %v", n, err)
	}
	if got := files(t, path); len(got) != 0 {
		t.Errorf("files %v", got)
	}
}

func TestFilesAreTheOwnersOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of other systems; there the folder keeps others out")
	}
	x, path := newIndex(t, cortex.Options{})
	add(t, x, page("a", "1", "text"))
	names := files(t, path)
	if !slices.Contains(names, "cortex.db") || len(names) < 2 {
		t.Errorf("files %v, want the database and its log", names)
	}
	for _, n := range names {
		st, err := os.Stat(filepath.Join(filepath.Dir(path), n))
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode() != 0o600 {
			t.Errorf("%s has mode %v", n, st.Mode())
		}
	}
}

func TestClosedWhenIdle(t *testing.T) {
	x, path := newIndex(t, cortex.Options{Idle: 20 * time.Millisecond})
	add(t, x, page("a", "1", "lighthouse"))
	x.WaitClosed(t)
	if got := files(t, path); !slices.Equal(got, []string{"cortex.db"}) {
		t.Errorf("files %v, want the database alone", got)
	}
	if got := keys(t, x, cortex.Query{Text: "lighthouse"}); !slices.Equal(got, []string{"1"}) {
		t.Errorf("found %v", got)
	}
}

func TestCallsAfterClose(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	add(t, x, page("a", "1", "text"))
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	_, err := x.Search(context.Background(), cortex.Query{Text: "text"})
	mustFail(t, err, "CORTEX_UNAVAILABLE", "stopping")
}

func TestDeletingTheFileLosesOnlyTheIndex(t *testing.T) {
	x, path := newIndex(t, cortex.Options{Idle: 10 * time.Millisecond})
	add(t, x, page("a", "1", "lighthouse"))
	x.WaitClosed(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, x, cortex.Query{Text: "lighthouse"}); len(got) != 0 {
		t.Errorf("found %v", got)
	}
	add(t, x, page("a", "1", "lighthouse"))
	if got := keys(t, x, cortex.Query{Text: "lighthouse"}); !slices.Equal(got, []string{"1"}) {
		t.Errorf("found %v", got)
	}
}

// While the file is open its name can go too: what is stored is then lost with
// it, and the next opening makes a new one.
func TestDeletingTheOpenFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be deleted there")
	}
	x, path := newIndex(t, cortex.Options{Idle: 20 * time.Millisecond})
	add(t, x, page("a", "1", "lighthouse"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	x.WaitClosed(t)
	add(t, x, page("a", "2", "lighthouse"))
	if got := keys(t, x, cortex.Query{Text: "lighthouse"}); !slices.Equal(got, []string{"2"}) {
		t.Errorf("found %v", got)
	}
}

func TestDamagedFileIsSetAside(t *testing.T) {
	junk := func(*testing.T, string) []byte {
		return []byte("this is no database, and it is long enough to look at its head")
	}
	foreign := func(t *testing.T, dir string) []byte {
		db, err := sql.Open("sqlite", filepath.Join(dir, "other.db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("CREATE TABLE mine (a)"); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "other.db"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, content := range map[string]func(*testing.T, string) []byte{"junk": junk, "another program's": foreign} {
		t.Run(name, func(t *testing.T) {
			data := content(t, t.TempDir())
			x, path := newIndex(t, cortex.Options{})
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := x.Search(context.Background(), cortex.Query{Text: "text"})
			mustFail(t, err, "CORTEX_UNAVAILABLE", "was damaged; it was kept as cortex.db.damaged-20261201T100000Z")
			add(t, x, page("a", "1", "lighthouse"))
			if got := keys(t, x, cortex.Query{Text: "lighthouse"}); !slices.Equal(got, []string{"1"}) {
				t.Errorf("found %v", got)
			}
			kept, err := os.ReadFile(path + ".damaged-20261201T100000Z")
			if err != nil || !bytes.Equal(kept, data) {
				t.Errorf("what was kept differs: %v", err)
			}
			s, err := x.Stats(context.Background())
			if err != nil || !strings.Contains(s.Recovered, "was damaged") {
				t.Errorf("Stats.Recovered %q, %v", s.Recovered, err)
			}
		})
	}
}

// A run does not suffer: the pages go to the new file at once.
func TestAddToADamagedFile(t *testing.T) {
	x, path := newIndex(t, cortex.Options{})
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, x, page("a", "1", "lighthouse"))
	if got := keys(t, x, cortex.Query{Text: "lighthouse"}); !slices.Equal(got, []string{"1"}) {
		t.Errorf("found %v", got)
	}
}

// Wherever bytes are overwritten, each call ends, and after at most one fault
// everything works again.
func TestDamageAnywhere(t *testing.T) {
	x, path := newIndex(t, cortex.Options{})
	for i := range 60 {
		add(t, x, page("a", fmt.Sprint(i), strings.Repeat(fmt.Sprintf("lighthouse number%d with words ", i), 100)))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	aside := 0
	for at := 0; at < len(sound); at += len(sound) / 16 {
		dir := t.TempDir()
		p := filepath.Join(dir, "cortex.db")
		bad := bytes.Clone(sound)
		for i := at; i < min(at+600, len(bad)); i++ {
			bad[i] ^= 0x5a
		}
		if err := os.WriteFile(p, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		y := cortex.Open(p, cortex.Options{Now: func() time.Time { return now }})
		_, _ = y.Search(context.Background(), cortex.Query{Text: "lighthouse number7"})
		add(t, y, page("b", "new", "beacon"), page("a", "3", "replaced"), page("a", "59", "replaced too"))
		if _, err := y.Rebuild(context.Background()); err != nil {
			t.Errorf("byte %d: rebuild: %v", at, err)
		}
		add(t, y, page("b", "new", "beacon")) // with bad luck it was in the part that could not be read
		if got := keys(t, y, cortex.Query{Text: "beacon"}); !slices.Equal(got, []string{"new"}) {
			t.Errorf("byte %d: found %v; %v", at, got, files(t, p))
		}
		if slices.ContainsFunc(files(t, p), func(n string) bool { return strings.Contains(n, "damaged") }) {
			aside++
		}
		if err := y.Close(); err != nil {
			t.Errorf("byte %d: close: %v", at, err)
		}
		check(t, p)
	}
	t.Logf("%d of 17 damaged files were set aside", aside)
}

// check has SQLite look at the whole file.
func check(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var said string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Errorf("integrity_check: %s, %v", said, err)
	}
	if _, err := db.Exec("INSERT INTO words(words) VALUES('integrity-check')"); err != nil {
		t.Errorf("the full-text table: %v", err)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	x, path := newIndex(t, cortex.Options{})
	add(t, x, page("a", "1", "text"))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 2"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	y := cortex.Open(path, cortex.Options{})
	defer func() { _ = y.Close() }()
	_, err = y.Add(context.Background(), []cortex.Page{page("a", "2", "text")})
	mustFail(t, err, "CORTEX_UNAVAILABLE", "later version of hbrestd (format 2, this one knows 1)")
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed: %v", err)
	}
	if n, err := y.Forget(context.Background(), cortex.Filter{All: true}); err != nil {
		t.Errorf("Forget all = %d, %v", n, err)
	}
	add(t, y, page("a", "2", "text"))
}

func TestAFolderInItsPlace(t *testing.T) {
	x, path := newIndex(t, cortex.Options{})
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := x.Add(context.Background(), []cortex.Page{page("a", "1", "text")})
	mustFail(t, err, "CORTEX_UNAVAILABLE", "not a regular file")
}

func TestNoFolder(t *testing.T) {
	x := cortex.Open(filepath.Join(t.TempDir(), "gone", "cortex.db"), cortex.Options{})
	defer func() { _ = x.Close() }()
	_, err := x.Add(context.Background(), []cortex.Page{page("a", "1", "text")})
	mustFail(t, err, "CORTEX_UNAVAILABLE", "")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestPathsWithSigns(t *testing.T) {
	for _, name := range []string{"a b", "50% off", "what#this", "a&b=c", "ümlaut", "semi;colon"} {
		if runtime.GOOS != "windows" {
			name += "?x=1"
		}
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "cortex.db")
		x := cortex.Open(path, cortex.Options{})
		add(t, x, page("a", "1", "text"))
		if err := x.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := files(t, path); !slices.Equal(got, []string{"cortex.db"}) {
			t.Errorf("%s: files %v", name, got)
		}
	}
}

func TestAnotherProgramHasTheFile(t *testing.T) {
	x, path := newIndex(t, cortex.Options{})
	add(t, x, page("a", "1", "text"))
	y := cortex.Open(path, cortex.Options{})
	defer func() { _ = y.Close() }()
	_, err := y.Search(context.Background(), cortex.Query{Text: "text"})
	mustFail(t, err, "CORTEX_UNAVAILABLE", "another program has the file open")
}

func TestDeadlines(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	add(t, x, page("a", "1", "text"))
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	gone, leave := context.WithCancel(context.Background())
	leave()
	for _, c := range []struct {
		ctx  context.Context
		code fault.Code
	}{{late, "CORTEX_TIMEOUT"}, {gone, "CALL_CANCELLED"}} {
		n, err := x.Add(c.ctx, []cortex.Page{page("a", "2", "text")})
		mustFail(t, err, c.code, "")
		if n != 0 {
			t.Errorf("%d stored", n)
		}
		_, err = x.Search(c.ctx, cortex.Query{Text: "text"})
		mustFail(t, err, c.code, "")
	}
	// Somebody else's long work.
	release := x.Hold()
	soon, cancel2 := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel2()
	_, err := x.Search(soon, cortex.Query{Text: "text"})
	mustFail(t, err, "CORTEX_TIMEOUT", "another call is using")
	release()
	if got := keys(t, x, cortex.Query{Text: "text"}); !slices.Equal(got, []string{"1"}) {
		t.Errorf("found %v", got)
	}
}

// A deadline in the middle of the work ends it, and what was begun is undone.
func TestDeadlineDuringWork(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	add(t, x, page("a", "1", "text"))
	var many []cortex.Page
	for i := range 50 {
		many = append(many, page("b", fmt.Sprint(i), strings.Repeat("words and more words \n\n", 2000)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	n, err := x.Add(ctx, many)
	mustFail(t, err, "CORTEX_TIMEOUT", "indexing 50 documents")
	if n != 0 || time.Since(start) > 3*time.Second {
		t.Errorf("%d stored, after %v", n, time.Since(start))
	}
	s, err := x.Stats(context.Background())
	if err != nil || s.Pages != 1 {
		t.Errorf("%d pages, %v", s.Pages, err)
	}
}
