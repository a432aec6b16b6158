package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// The tests of this file join the log and the file that really keeps it, as the
// daemon does.

const childEnv = "AUDIT_TEST_CHILD"

// children are what this test binary does instead of testing when a test has
// started it as a process of its own; they return an exit status.
var children = map[string]func(path string) int{"calls": manyCalls}

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		os.Exit(children[what](os.Args[1]))
	}
	os.Exit(m.Run())
}

func child(t *testing.T, what, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, path)
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	cmd.Stderr = os.Stderr
	return cmd
}

func onDisk(path string, maxFile int64, keep int) (*audit.Log, *store.AuditFile, error) {
	f, err := store.OpenAudit(path, store.AuditOptions{Keep: keep})
	if err != nil {
		return nil, nil, err
	}
	l, err := audit.Open(audit.Options{
		Append: f.Append, Tail: f.Tail, Scan: f.Scan, Size: f.Size, Rotate: f.Rotate, MaxFile: maxFile,
		Recovered: f.Recovered() != "",
	})
	return l, f, err
}

func mustOnDisk(t testing.TB, path string, maxFile int64, keep int) (*audit.Log, *store.AuditFile) {
	t.Helper()
	l, f, err := onDisk(path, maxFile, keep)
	if err != nil {
		t.Fatal(err)
	}
	return l, f
}

func mustEnd(t testing.TB, l *audit.Log, f *store.AuditFile) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// manyCalls is a daemon that is killed: a thousand calls that change something
// and a read before each of them. It says what it may rely on.
func manyCalls(path string) int {
	l, _, err := onDisk(path, 0, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	for i := range 1000 {
		l.Result(read(fmt.Sprint("read-", i)))
		fmt.Printf("read %d %d\n", i, time.Now().UnixMicro())
		if i%4 == 3 { // the others leave some reads to themselves
			call := write(fmt.Sprint("write-", i))
			if err := l.Intent(ctx, call); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			fmt.Printf("write %d %d\n", i, time.Now().UnixMicro())
			l.Result(done(call, 200, ""))
		}
	}
	fmt.Println("all")
	_, _ = io.ReadAll(os.Stdin) // until it is killed
	return 0
}

// Promise 11: killed at any moment, the trail has every intent that was
// acknowledged, and of the read rows lacks only the very last.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds, lost, most := soak.Rounds(6, 1000), 0, time.Duration(0)
	intents, slowest := 0, time.Duration(0)
	rnd := rand.New(rand.NewPCG(3, 12))
	for round := range rounds {
		path := filepath.Join(t.TempDir(), "audit.db")
		cmd := child(t, "calls", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := map[string]int64{} // call id -> when, in microseconds
		var order []string
		var last int64
		moment := rnd.IntN(150)
		if round%20 == 19 { // anywhere in its 1,250 lines; after the last it waits for its end
			moment = rnd.IntN(1400)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			f := strings.Fields(lines.Text())
			if len(f) == 3 { // a line may be cut by the kill
				if at, err := strconv.ParseInt(f[2], 10, 64); err == nil && len(f[2]) == 16 {
					said[f[0]+"-"+f[1]], last = at, at
					order = append(order, f[0]+"-"+f[1])
				}
			}
			if n == moment || lines.Text() == "all" {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait()
		_ = in.Close()

		begun := time.Now()
		l, f := mustOnDisk(t, path, 0, 0)
		if f.Recovered() != "" {
			t.Errorf("round %d: %s", round, f.Recovered())
		}
		report, err := l.Verify(t.Context(), "")
		if !report.OK || err != nil {
			t.Errorf("round %d: %+v, %v", round, report, err)
		}
		there := map[string]bool{}
		for next := uint64(0); next < report.Rows; { // beyond the last row Follow waits for another
			rows, to, err := l.Follow(t.Context(), next, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				there[r.Call] = true
			}
			next = to
		}
		mustEnd(t, l, f)
		slowest = max(slowest, time.Since(begun))
		gap := ""
		for _, call := range order {
			if strings.HasPrefix(call, "write") {
				intents++
			}
			switch {
			case !there[call] && strings.HasPrefix(call, "write"):
				t.Errorf("round %d: %s was acknowledged and is not there", round, call)
			case !there[call]:
				lost++
				if gap == "" {
					gap = call
					most = max(most, time.Duration(last-said[call])*time.Microsecond)
				}
			case gap != "":
				t.Errorf("round %d: %s is there, %s before it is not", round, call, gap)
			}
		}
	}
	if t.Failed() {
		return
	}
	soak.Measured(t, "%d kills; %d acknowledged intents, 0 lost, 0 trails that do not verify; %d read rows lost, the oldest %v before the end (limit 500 ms); slowest start and check %v",
		rounds, intents, lost, most.Round(100*time.Microsecond), slowest.Round(time.Millisecond))
	// A busy machine can put the writer off for longer than the 20 ms of a quiet one.
	if most > 500*time.Millisecond {
		t.Errorf("a read row was not on the disk %v after it was made", most)
	}
}

// The rows go on over many files, of which the newest are kept, and over the
// starts of the daemon.
func TestRotationOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.db")
	const maxFile, keep = 256 << 10, 3
	var heads []string
	rows := 0
	for start := range 4 {
		l, f := mustOnDisk(t, path, maxFile, keep)
		if start > 0 && headOf(l) != heads[len(heads)-1] {
			t.Fatalf("start %d: the head is %s, was %s", start, headOf(l), heads[len(heads)-1])
		}
		for range 30 {
			for range 50 {
				l.Result(read(fmt.Sprint("c", rows)))
				rows++
			}
			if err := l.Intent(t.Context(), audit.Row{Kind: audit.KindChange, Author: audit.AuthorHuman, Action: audit.ActionSettingChanged}); err != nil {
				t.Fatal(err)
			}
			rows++
			heads = append(heads, headOf(l))
		}
		mustEnd(t, l, f)
		heads = append(heads, headOf(l)) // a file may have been changed for another since
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != keep {
		t.Errorf("files %v, %v, want %d", files, err, keep)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() > 2*maxFile {
			t.Errorf("%s: %v, %v", file, info.Size(), err)
		}
	}

	l, f := mustOnDisk(t, path, maxFile, keep)
	defer mustEnd(t, l, f)
	r, err := l.Verify(t.Context(), heads[len(heads)-1])
	if !r.OK || !r.HeadSeen || r.First <= 1 || r.Head != heads[len(heads)-1] || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	t.Logf("%d rows, those from %d on are kept in %d files", rows, r.First, len(files))
	last, next, err := l.Last(1000) // more than the file at hand has
	if len(last) != 1000 || fmt.Sprint(next) != strings.Split(r.Head, ":")[0] || err != nil {
		t.Errorf("%d rows, next %d, %v", len(last), next, err)
	}
	for i := 1; i < len(last); i++ {
		if last[i].Seq <= last[i-1].Seq {
			t.Fatalf("row %d after row %d", last[i].Seq, last[i-1].Seq)
		}
	}
	// And the same ones by following.
	var followed []audit.Merged
	for at := last[0].Seq - 1; at < next; {
		rows, to, err := l.Follow(t.Context(), at, 300)
		if err != nil {
			t.Fatal(err)
		}
		followed, at = append(followed, rows...), to
	}
	if len(followed) != 1000 || followed[0] != last[0] || followed[999] != last[999] {
		t.Errorf("followed %d rows", len(followed))
	}

	// Somebody edits a row of an older file.
	older := files[1] // the names sort as the rows do, audit.db last
	data, err := os.ReadFile(older)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.ReplaceAll(string(data), "c4500", "c9500")
	if err := os.WriteFile(older, []byte(edited), 0o600); err != nil || edited == string(data) {
		t.Fatal("nothing edited", err)
	}
	r, err = l.Verify(t.Context(), "")
	if r.OK || r.BadSeq == 0 || !strings.Contains(r.Problem, fmt.Sprintf("row %d was changed", r.BadSeq)) || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	// Or takes one away.
	if err := os.Remove(older); err != nil {
		t.Fatal(err)
	}
	r, err = l.Verify(t.Context(), heads[len(heads)-1])
	if r.OK || !r.HeadSeen || !strings.Contains(r.Problem, "are missing") || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// A damaged file is set aside, what can be read is taken over, the trail says
// so, and the check names what is missing.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l, f := mustOnDisk(t, path, 0, 0)
	for i := range 3000 {
		l.Result(read(fmt.Sprint("c", i)))
	}
	mustEnd(t, l, f)
	head := headOf(l)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	at := strings.Index(string(data), "c1500") / size * size
	clear(data[at : at+size])
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	l, f = mustOnDisk(t, path, 0, 0)
	if !strings.Contains(f.Recovered(), "was damaged (page ") || !strings.Contains(f.Recovered(), "rows that could be read") {
		t.Errorf("%q", f.Recovered())
	}
	if kept, _ := filepath.Glob(path + ".damaged-*"); len(kept) != 1 {
		t.Errorf("kept %v", kept)
	}
	l.Result(read("on"))
	mustEnd(t, l, f)
	l, f = mustOnDisk(t, path, 0, 0)
	defer mustEnd(t, l, f)
	rows, next, err := l.Last(3)
	if len(rows) != 3 || rows[0].Call != "c2999" || rows[1].Action != audit.ActionRecovered || rows[2].Call != "on" || next != 3003 || err != nil {
		t.Errorf("%+v, %d, %v", rows, next, err)
	}
	r, err := l.Verify(t.Context(), head)
	if r.OK || !r.HeadSeen || r.BadSeq < 1400 || r.BadSeq > 1502 || !strings.Contains(r.Problem, "are missing") || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	t.Log(f.Recovered(), r.Problem)
}

// D34: a row edited in the file. The page is whole, so the file stays in use,
// and the check names the row.
func TestEditedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l, f := mustOnDisk(t, path, 0, 0)
	for i := range 50 {
		l.Result(read(fmt.Sprint("call-", i)))
	}
	mustEnd(t, l, f)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.ReplaceAll(string(data), "call-30", "call-99")
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	l, f = mustOnDisk(t, path, 0, 0)
	defer mustEnd(t, l, f)
	r, err := l.Verify(t.Context(), "")
	// Row 1 opens the file, so call-30 is row 32.
	if r.OK || r.BadSeq != 32 || r.Problem != "row 32 was changed, or is not the row that was written there" || f.Recovered() != "" || err != nil {
		t.Errorf("%+v, %q, %v", r, f.Recovered(), err)
	}
}

// The file is taken away while it is in use: nothing is acknowledged any more.
func TestFileTakenAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l, f := mustOnDisk(t, path, 0, 0)
	if err := l.Intent(t.Context(), write("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Skip("the system does not let an open file be moved:", err)
	}
	mustFail(t, l.Intent(t.Context(), write("b")), "AUDIT_FAILED", "nothing was sent", "moved, removed or replaced")
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := l.Intent(t.Context(), write("c")); err != nil {
		t.Error(err)
	}
	mustEnd(t, l, f)
}

// Promise 13 for the trail: after any damage it is either whole or found not to
// be. Never does a row that differs pass.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	l, f := mustOnDisk(t, path, 0, 0)
	for i := range 600 {
		l.Result(read(fmt.Sprint("c", i)))
	}
	mustEnd(t, l, f)
	head := headOf(l)
	good, _, err := lastRows(path)
	if err != nil || len(good) != 600 {
		t.Fatal(len(good), err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(9, 10))
	found := 0
	// 1,000 bits, 400 sectors or pages, 400 cuts in a long run.
	bits, pages, cuts := soak.Rounds(30, 1000), soak.Rounds(15, 400), soak.Rounds(15, 400)
	aside, slowest := 0, time.Duration(0)
	for i := range bits + pages + cuts {
		data := bytes.Clone(whole)
		switch at := rnd.IntN(len(data)); {
		case i < bits:
			data[at] ^= 1 << rnd.IntN(8)
		case i < bits+pages:
			size := 512
			if i%2 == 0 {
				size = os.Getpagesize()
			}
			at = at / size * size
			clear(data[at : at+size])
		default:
			data = data[:at]
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		l, f, err := onDisk(path, 0, 0)
		if err != nil {
			t.Errorf("damage %d: %v", i, err)
			continue
		}
		slowest = max(slowest, time.Since(begun))
		if f.Recovered() != "" {
			aside++
		}
		report, err := l.Verify(t.Context(), head)
		mustEnd(t, l, f)
		rows, _, rerr := lastRows(path)
		if err != nil || rerr != nil {
			t.Errorf("damage %d: %v, %v", i, err, rerr)
		}
		if f.Recovered() != "" && len(rows) > 0 && rows[len(rows)-1].Action == audit.ActionRecovered {
			rows = rows[:len(rows)-1]
		}
		same := slices.Equal(rows, good)
		if report.OK != same {
			// A flipped bit of a hash or a length leaves what is shown as it is, and is found all the same.
			if report.OK || !same {
				t.Errorf("damage %d: rows as they were: %v, report %+v", i, same, report)
			}
		}
		if !report.OK {
			found++
		}
		for _, name := range mustGlob(t, path+".damaged-*") {
			_ = os.Remove(name)
		}
	}
	if t.Failed() {
		return
	}
	soak.Measured(t, "%d flipped bits, %d zeroed sectors or pages, %d cuts; %d had touched a row and were found, %d files set aside, 0 deaths, 0 silent changes; slowest start %v",
		bits, pages, cuts, found, aside, slowest.Round(time.Millisecond))
}

// lastRows opens the trail and reads its last rows.
func lastRows(path string) ([]audit.Merged, uint64, error) {
	l, f, err := onDisk(path, 0, 0)
	if err != nil {
		return nil, 0, err
	}
	rows, next, err := l.Last(1000)
	return rows, next, errors.Join(err, l.Close(), f.Close())
}

func mustGlob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}
