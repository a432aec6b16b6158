package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

func init() { children["full"] = fullDisk }

// Promises 14 and 21, with a disk that is really full: of 100 tries, or 200 in
// a long run, none is acknowledged, and all is well each time there is room again.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	if out, err := child(t, "full", path).Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l, f := mustOnDisk(t, path, 0, 0)
	defer mustEnd(t, l, f)
	rows, _, err := l.Last(1000)
	if err != nil || f.Recovered() != "" {
		t.Fatal(err, f.Recovered())
	}
	seen := map[string]int{}
	for _, r := range rows {
		seen[r.Call]++
	}
	for i := range fullTries() {
		if seen[fmt.Sprint("refused-", i)] != 0 || seen[fmt.Sprint("read-", i)] != 1 {
			t.Errorf("call %d: %d intents that were refused, %d read rows", i, seen[fmt.Sprint("refused-", i)], seen[fmt.Sprint("read-", i)])
		}
	}
	for i := range fullTries() / 10 {
		if seen[fmt.Sprint("after-", i)] != 1 {
			t.Errorf("what came when there was room again the %d. time is not there", i+1)
		}
	}
	if r, err := l.Verify(t.Context(), ""); !r.OK || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if t.Failed() {
		return
	}
	soak.Measured(t, "%d tries on a full disk, 0 acknowledged, each an error; %d times room again and full service; 0 rows lost, the trail verifies", fullTries(), fullTries()/10)
}

func fullTries() int { return soak.Rounds(100, 200) }

func limit(size uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = min(size, l.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
}

func fullDisk(path string) int {
	fail := func(what string, err error) int {
		fmt.Println(what, err)
		return 1
	}
	l, f, err := onDisk(path, 0, 0)
	if err != nil {
		return fail("open:", err)
	}
	for i := range fullTries() {
		// Nothing at all, one of the two root pages, or both of them can be written.
		if err := limit([]uint64{1, 4096, 8192}[i%3]); err != nil {
			return fail("limit:", err)
		}
		l.Result(read(fmt.Sprint("read-", i)))
		if err := l.Intent(context.Background(), write(fmt.Sprint("refused-", i))); !fault.Is(err, "AUDIT_FAILED") {
			return fail("an intent without room:", err)
		}
		if l.Trouble() == "" {
			return fail("no trouble is told of", nil)
		}
		if i%10 != 9 {
			continue
		}
		if err := limit(^uint64(0)); err != nil {
			return fail("limit:", err)
		}
		if err := l.Intent(context.Background(), write(fmt.Sprint("after-", i/10))); err != nil {
			return fail("with room again:", err)
		}
		if l.Trouble() != "" {
			return fail("trouble is told of with room again", nil)
		}
	}
	if err := l.Close(); err != nil {
		return fail("close:", err)
	}
	if err := f.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
