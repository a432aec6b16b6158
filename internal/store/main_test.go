package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// childEnv names what this test binary does instead of testing when a test has
// started it as a process of its own, to be killed or to run out of disk.
const childEnv = "STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		os.Exit(children[what](os.Args[1:]))
	}
	os.Exit(m.Run())
}

// children are the programs of childEnv; they return an exit status.
var children = map[string]func(args []string) int{}

func child(t *testing.T, what string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	cmd.Stderr = os.Stderr
	return cmd
}

// parse makes a wrapper whose document is told from others by its note.
func parse(id, note string, more ...string) *wrapper.Wrapper {
	doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"method":"GET","url":"https://api.example.com/v1/%s"}%s}`,
		id, note, id, strings.Join(more, ""))
	w, report := wrapper.Parse([]byte(doc))
	if !report.OK() {
		panic(fmt.Sprintf("%s: %v", doc, report.Problems))
	}
	return w
}

const exposed = `,"exposeAsTool":true`

func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "store.db")
}

func mustOpen(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// must takes the two results of a change.
func must(t *testing.T) func(rev uint64, err error) uint64 {
	t.Helper()
	return func(rev uint64, err error) uint64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
}

// mustFail checks the code of an error and part of its message.
func mustFail(t *testing.T, err error, code fault.Code, says ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code {
		t.Errorf("error %v, want %s", err, code)
		return
	}
	for _, s := range says {
		if !strings.Contains(f.Message, s) {
			t.Errorf("message %q does not say %q", f.Message, s)
		}
	}
}

// fill saves n wrappers and returns their documents by id.
func fill(t *testing.T, path string, n int) map[string]string {
	t.Helper()
	s := mustOpen(t, path)
	docs := map[string]string{}
	for i := range n {
		w := parse(fmt.Sprintf("wrapper.%03d", i), strings.Repeat("note ", i%37))
		must(t)(s.By(store.Human).Create(w))
		docs[w.ID] = string(w.Document())
	}
	mustClose(t, s)
	return docs
}

// documents is what the store serves, by id; a damaged wrapper is "".
func documents(s *store.Store) map[string]string {
	docs := map[string]string{}
	for _, e := range s.List() {
		docs[e.ID] = ""
		if e.Wrapper != nil {
			docs[e.ID] = string(e.Wrapper.Document())
		}
	}
	return docs
}

// checkFile runs bbolt's own check over a copy of the file.
func checkFile(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checked(copied); err != nil {
		t.Error(err)
	}
}

// checked runs bbolt's own check over a closed file.
func checked(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("bbolt cannot open the file: %w", err)
	}
	defer db.Close()
	var errs []error
	_ = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			errs = append(errs, fmt.Errorf("bbolt's check: %w", err))
		}
		return nil
	})
	return errors.Join(errs...)
}

// stored is where the last saved record of a wrapper has its document within a
// file. Its versions have the same document elsewhere.
func stored(t *testing.T, data []byte, id, doc string) int {
	t.Helper()
	for end := len(data); ; {
		at := bytes.LastIndex(data[:end], []byte(doc))
		if at < 0 {
			t.Fatalf("no record of %s is in the file", id)
		}
		const head = 1 + sha256.Size // of a record
		if bytes.HasSuffix(data[:at-head], []byte(id)) {
			return at
		}
		end = at + len(doc) - 1
	}
}
