package store_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// A power cut cannot be had in a test, but what it may leave can be built. A
// process that really uses the store is traced: strace notes every call that
// writes, cuts, syncs, names or removes a file, with all bytes. The calls are
// replayed onto a disk that keeps what is synced and what is not apart. After
// each call the power may fail; then the disk has everything that was synced
// and of the rest whatever it likes: each write whole, not at all, or some of
// its 512-byte sectors, and each change of a folder or not, in any order.

// Promise 12: whatever a power cut leaves of a store, from its making on, the
// next start finds a sound file with every change that was acknowledged before
// it, and nothing half there.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	changes := soak.Rounds(25, 400)
	states := []facts{noFacts()} // after so many changes
	for n := range changes {
		now, _ := step(n, states[n])
		states = append(states, now)
	}
	calls := trace(t, "work", "store.db", "0", strconv.Itoa(changes))
	// acked is how many lines the process had said: "open" first, then one for
	// each change.
	images, making, how := cutEverywhere(t, calls, 0, soak.Rounds(150, 30_000), func(dir string, acked int) error {
		path := filepath.Join(dir, "store.db")
		s, err := store.Open(path, scriptOptions)
		if err != nil {
			return err
		}
		defer s.Close()
		got, err := look(s)
		if err != nil {
			return err
		}
		least := max(acked-1, 0)
		if !maps.Equal(got, states[least]) && (acked == 0 || least == changes || !maps.Equal(got, states[least+1])) {
			return fmt.Errorf("neither as after %d changes nor as after one more (-want +got):\n%s", least, cmp.Diff(states[least], got))
		}
		store.Unsynced(t, s)
		if _, err := s.By(store.Human).Create(parse("after", "x")); err != nil {
			return err
		}
		return errors.Join(s.Close(), checked(path))
	})
	if least := soak.Rounds(100, 25_000); images < least {
		t.Errorf("%d images, promised are %d", images, least)
	}
	soak.Measured(t, "%d different images, %d of them during the making; %s", images, making, how)
}

// The same for the audit trail, in which files take turns.
func TestAuditPowerCut(t *testing.T) {
	t.Parallel()
	groups := soak.Rounds(26, 150)
	calls := trace(t, "rows", "audit.db", strconv.Itoa(groups))
	images, making, how := cutEverywhere(t, calls, 0, soak.Rounds(80, 5_000), func(dir string, acked int) error {
		path := filepath.Join(dir, "audit.db")
		f, err := store.OpenAudit(path, store.AuditOptions{Keep: 1000})
		if err != nil {
			return err
		}
		defer f.Close()
		if f.Recovered() != "" {
			return errors.New(f.Recovered())
		}
		last := 0
		err = f.Scan(0, func(r []byte) error {
			if last++; !bytes.Equal(r, row(last)) {
				return fmt.Errorf("%q where row %d belongs", r, last)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if least := max(acked-1, 0); last != rowsAfter(least) && (acked == 0 || last != rowsAfter(least+1)) {
			return fmt.Errorf("%d rows; %d were acknowledged, and with the next group there are %d", last, rowsAfter(least), rowsAfter(least+1))
		}
		if err := f.Append(rows(last+1, last+2)); err != nil {
			return err
		}
		return errors.Join(f.Close(), checked(path))
	})
	soak.Measured(t, "%d different images, %d of them during the making; %s", images, making, how)
}

// And the same while a damaged file is set aside: at every moment there is the
// damaged file, as it was and under one of its names, and the next start serves
// what can be read of it.
func TestRescuePowerCut(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"store.db", "audit.db"} {
		source := filepath.Join(t.TempDir(), name)
		var serves func(path string) (string, error)
		if name == "store.db" {
			fill(t, source, 60)
			serves = func(path string) (string, error) {
				s, err := store.Open(path, scriptOptions)
				if err != nil {
					return "", err
				}
				return fmt.Sprint(documents(s)), s.Close()
			}
		} else {
			f := mustAudit(t, source, 10)
			if err := errors.Join(f.Append(rows(1, 500)), f.Append(rows(501, 1000)), f.Close()); err != nil {
				t.Fatal(err)
			}
			serves = func(path string) (string, error) {
				f, err := store.OpenAudit(path, store.AuditOptions{})
				if err != nil {
					return "", err
				}
				var all [][]byte
				err = f.Scan(0, func(r []byte) error { all = append(all, r); return nil })
				return fmt.Sprintf("%q", all), errors.Join(err, f.Close())
			}
		}
		damaged := inUse(t, source)
		size := os.Getpagesize()
		at := pagesWith(damaged, map[string]string{"store.db": `"wrapper.030"`, "audit.db": "row 333"}[name])[0]
		clear(damaged[at : at+size])
		overwrite(t, source, damaged)
		calls := trace(t, "rescue", name, source)
		want, err := serves(source)
		if err != nil {
			t.Fatal(err)
		}
		if left := len(mustGlob(t, source+".damaged-*")); left != 1 {
			t.Fatalf("%s: %d files set aside", name, left)
		}
		images, _, how := cutEverywhere(t, calls, 1, soak.Rounds(30, 400), func(dir string, acked int) error {
			path := filepath.Join(dir, name)
			kept := func() error {
				for _, p := range append(mustGlob(t, path+".damaged-*"), path) {
					if data, err := os.ReadFile(p); err == nil && bytes.Equal(data, damaged) {
						return nil
					}
				}
				return errors.New("the damaged file is not there")
			}
			if err := kept(); err != nil {
				return err
			}
			got, err := serves(path)
			if err == nil && got != want {
				err = fmt.Errorf("served (-want +got):\n%s", cmp.Diff(want, got))
			}
			return errors.Join(err, kept(), checked(path))
		})
		soak.Measured(t, "%s: %d different images; %s", name, images, how)
	}
}

func init() {
	// rescue PATH SOURCE: puts a damaged file there, says so, opens it, and says so.
	children["rescue"] = func(args []string) int {
		data, err := os.ReadFile(args[1])
		if err == nil {
			err = place(args[0], data)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println("damaged")
		if filepath.Base(args[0]) == "audit.db" {
			var f *store.AuditFile
			if f, err = store.OpenAudit(args[0], store.AuditOptions{}); err == nil {
				err = f.Close()
			}
		} else {
			var s *store.Store
			if s, err = store.Open(args[0], scriptOptions); err == nil {
				err = s.Close()
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println("rescued")
		return 0
	}
}

// place puts a file somewhere so that it lasts.
func place(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	dir, derr := os.Open(filepath.Dir(path))
	if derr != nil {
		return derr
	}
	return errors.Join(err, f.Sync(), f.Close(), dir.Sync(), dir.Close())
}

// rowsAfter is the number of the last row after so many groups; every twelfth
// begins a new file.
func rowsAfter(groups int) int {
	n := 0
	for g := range groups {
		if n++; g%12 != 11 {
			n += g * 37 % 150
		}
	}
	return n
}

func init() {
	// rows PATH GROUPS: opens the audit trail, says "open", writes so many groups
	// of rows, and says each once it is written.
	children["rows"] = func(args []string) int {
		f, err := store.OpenAudit(args[0], store.AuditOptions{Keep: 1000})
		if err == nil {
			fmt.Println("open")
		}
		for g := 0; g < number(args[1]) && err == nil; g++ {
			from, to := rowsAfter(g)+1, rowsAfter(g+1)
			if g%12 == 11 {
				err = f.Rotate(row(from))
			} else {
				err = f.Append(rows(from, to))
			}
			if err == nil {
				fmt.Println(g)
			}
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

// A call is one that changes a disk, or an acknowledgement.
type call struct {
	kind     string // write, size, sync, make, link, move, remove, syncfolder, ack
	node     int    // of a file: write, size, sync, make, link, move
	at       int64  // write: offset; size: the size
	data     []byte
	from, to string // names within the folder: move has both, make and link to, remove from
}

// traced are the calls that strace shows: all that can change what a disk
// holds, so that one of an unknown kind is noticed. A question mark is for those
// that not every processor has.
const traced = "openat,?open,?creat,close,write,pwrite64,writev,pwritev,?pwritev2,ftruncate,?truncate,fallocate,fsync,fdatasync," +
	"sync_file_range,syncfs,msync,?rename,renameat,?renameat2,?link,linkat,?unlink,unlinkat,copy_file_range,sendfile,splice,dup,?dup2,dup3,mmap"

// straced is a child under strace with some arguments; it has not run yet. The
// test is skipped where there is no strace or it may not trace.
func straced(t *testing.T, cmd *exec.Cmd, args ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace, which sees and stops what a process writes, is not installed")
	}
	if out, err := exec.Command(program, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v, %s", err, out)
	}
	cmd.Args = slices.Concat([]string{program, "-f", "-qq", "-e", "signal=none"}, args, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = program
	return cmd
}

// trace runs a child under strace, with the path of a file of a name in an empty
// folder before the other arguments, and returns what it did to the folder.
func trace(t *testing.T, what, name string, args ...string) []call {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(t.TempDir(), "trace")
	// All strings in hexadecimal, and whole.
	cmd := straced(t, child(t, what, slices.Concat([]string{filepath.Join(dir, name)}, args)...),
		"-xx", "-s", "100000000", "-e", "trace="+traced, "-o", out)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls, err := parseTrace(f, dir)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

var (
	traceLine = regexp.MustCompile(`^(\d+) +(.*)$`)
	resumed   = regexp.MustCompile(`^<\.\.\. \w+ resumed>`)
	traceCall = regexp.MustCompile(`^(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)`)
)

// parseTrace makes calls of what strace wrote.
func parseTrace(r io.Reader, dir string) ([]call, error) {
	x := tracer{dir: dir, nodes: map[string]int{}, open: map[string]int{}, folder: map[string]bool{}}
	begun := map[string]string{} // by thread: a call that another thread's was shown before the end of
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			return x.calls, nil
		}
		if err != nil {
			return nil, err
		}
		m := traceLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return nil, fmt.Errorf("not a line of strace: %.200q", line)
		}
		thread, text := m[1], m[2]
		if first, unfinished := strings.CutSuffix(text, " <unfinished ...>"); unfinished {
			begun[thread] = first
			continue
		}
		if head := resumed.FindString(text); head != "" {
			text = begun[thread] + text[len(head):]
			delete(begun, thread)
		}
		if strings.HasPrefix(text, "+++") {
			continue
		}
		c := traceCall.FindStringSubmatch(text)
		if c == nil {
			return nil, fmt.Errorf("not a call: %.200q", text)
		}
		if err := x.call(c[1], strings.Split(c[2], ", "), c[3]); err != nil {
			return nil, fmt.Errorf("%.200q: %w", text, err)
		}
	}
}

type tracer struct {
	dir    string
	calls  []call
	nodes  map[string]int  // by name, of what is in the folder now
	made   int             // nodes so far
	open   map[string]int  // by descriptor, of files in the folder
	folder map[string]bool // descriptors of the folder itself
}

// call takes one call. The strings are in hexadecimal, so that no comma is in
// an argument but those of flags and such.
func (x *tracer) call(name string, args []string, result string) error {
	if strings.HasPrefix(result, "-") {
		return nil // it failed, and has changed nothing
	}
	text := func(i int) string {
		b, err := unhex(args[i])
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	inside := func(i int) string { // name within the folder, "" if it is not there
		if rest, ok := strings.CutPrefix(text(i), x.dir+"/"); ok {
			return rest
		}
		return ""
	}
	add := func(c call) { x.calls = append(x.calls, c) }
	fd := args[0]
	node, mine := x.open[fd]
	switch name {
	case "openat":
		delete(x.open, result)
		delete(x.folder, result)
		if text(1) == x.dir {
			x.folder[result] = true
			return nil
		}
		file := inside(1)
		if file == "" {
			return nil
		}
		n, there := x.nodes[file]
		if !there {
			if !strings.Contains(args[2], "O_CREAT") {
				return errors.New("a file that nobody made")
			}
			n = x.made
			x.made++
			x.nodes[file] = n
			add(call{kind: "make", node: n, to: file})
		}
		if strings.Contains(args[2], "O_TRUNC") {
			add(call{kind: "size", node: n})
		}
		x.open[result] = n
	case "close":
		delete(x.open, fd)
		delete(x.folder, fd)
	case "write", "pwrite64":
		if !mine {
			if name == "write" && fd == "1" {
				add(call{kind: "ack"})
			}
			return nil
		}
		if name == "write" {
			return errors.New("a write without an offset, which this test does not know")
		}
		data, err := unhex(args[1])
		if err != nil {
			return err
		}
		if want, err := strconv.Atoi(result); err != nil || want != len(data) {
			return fmt.Errorf("%d bytes in the trace, %s written", len(data), result)
		}
		at, err := strconv.ParseInt(args[3], 10, 64)
		if err != nil {
			return err
		}
		add(call{kind: "write", node: node, at: at, data: data})
	case "ftruncate":
		if mine {
			size, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return err
			}
			add(call{kind: "size", node: node, at: size})
		}
	case "fsync", "fdatasync":
		switch {
		case mine:
			add(call{kind: "sync", node: node})
		case x.folder[fd]:
			add(call{kind: "syncfolder"})
		}
	case "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat":
		from, to := 0, 1
		if strings.Contains(name, "at") {
			from, to = 1, 3
		}
		old := inside(from)
		if old == "" {
			return nil
		}
		n, there := x.nodes[old]
		if !there {
			return errors.New("a name that nobody gave")
		}
		switch name[0] {
		case 'r':
			add(call{kind: "move", node: n, from: old, to: inside(to)})
			delete(x.nodes, old)
			x.nodes[inside(to)] = n
		case 'l':
			add(call{kind: "link", node: n, to: inside(to)})
			x.nodes[inside(to)] = n
		default:
			add(call{kind: "remove", from: old})
			delete(x.nodes, old)
		}
	case "mmap":
		if strings.Contains(args[2], "PROT_WRITE") && strings.Contains(args[3], "MAP_SHARED") {
			return errors.New("memory that writes to a file, which this test does not know")
		}
	default:
		// The program's own start and output use none of these on files.
		if mine || name != "writev" && name != "splice" && name != "copy_file_range" {
			return errors.New("a kind of call that this test does not know")
		}
	}
	return nil
}

// unhex reads a string as strace writes it with -xx: "\x41\x42".
func unhex(s string) ([]byte, error) {
	s, ok := strings.CutPrefix(s, `"`)
	s, whole := strings.CutSuffix(s, `"`)
	if !ok || !whole {
		return nil, fmt.Errorf("not a whole string: %.40q", s)
	}
	return hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
}

// A disk keeps what is synced and what is not apart.
type disk struct {
	files  map[int]*diskFile
	names  map[string]int // synced
	folder []call         // changes of names that are not synced
}

type diskFile struct {
	synced  []byte
	pending []call // writes and sizes
}

func (d *disk) do(c call) {
	switch c.kind {
	case "make":
		d.files[c.node] = &diskFile{}
		d.folder = append(d.folder, c)
	case "link", "move", "remove":
		d.folder = append(d.folder, c)
	case "write", "size":
		f := d.files[c.node]
		f.pending = append(f.pending, c)
	case "sync":
		f := d.files[c.node]
		for _, p := range f.pending {
			f.synced = apply(f.synced, p)
		}
		f.pending = nil
	case "syncfolder":
		for _, c := range d.folder {
			rename(d.names, c)
		}
		d.folder = nil
	}
}

// apply is a file after a write or a change of its size.
func apply(data []byte, c call) []byte {
	size := c.at
	if c.kind == "write" {
		size = max(int64(len(data)), c.at+int64(len(c.data)))
	}
	if size > int64(len(data)) {
		data = append(data, make([]byte, size-int64(len(data)))...)
	}
	data = data[:size]
	if c.kind == "write" {
		copy(data[c.at:], c.data)
	}
	return data
}

func rename(names map[string]int, c call) {
	if c.kind != "make" && c.kind != "link" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

const sector = 512

// cut is what the disk may hold when the power fails now: the files by name. The
// words say what of that which was not synced is there.
func (d *disk) cut(rnd *rand.Rand) (files map[string][]byte, words string) {
	// At times all of it or nothing, else each part as it comes.
	mode := rnd.IntN(8)
	happens := func() bool { return mode == 0 || mode != 1 && rnd.IntN(2) == 0 }
	var say strings.Builder
	names := maps.Clone(d.names)
	for _, c := range d.folder {
		if happens() {
			rename(names, c)
			fmt.Fprintf(&say, "%s %s %s; ", c.kind, c.from, c.to)
		} else {
			fmt.Fprintf(&say, "not %s %s %s; ", c.kind, c.from, c.to)
		}
	}
	files = map[string][]byte{}
	built := map[int][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		node := names[name]
		if _, again := built[node]; !again {
			f := d.files[node]
			data := bytes.Clone(f.synced)
			for _, p := range f.pending {
				switch {
				case !happens():
					fmt.Fprintf(&say, "not %s %d at %d; ", p.kind, len(p.data), p.at)
				case p.kind == "write" && mode > 1 && rnd.IntN(2) == 0:
					fmt.Fprintf(&say, "torn %s %d at %d; ", p.kind, len(p.data), p.at)
					for at := 0; at < len(p.data); at += sector {
						if rnd.IntN(2) == 0 {
							data = apply(data, call{kind: "write", at: p.at + int64(at), data: p.data[at:min(at+sector, len(p.data))]})
						}
					}
				default:
					fmt.Fprintf(&say, "%s %d at %d; ", p.kind, len(p.data), p.at)
					data = apply(data, p)
				}
			}
			built[node] = data
		}
		files[name] = built[node]
	}
	return files, say.String()
}

// An image is what one power cut has left.
type image struct {
	number, call, acked int
	files               map[string][]byte
	words               string
}

// cutEverywhere cuts the power after each call, several times where there is
// more than one thing that can be left, until there are so many images no two
// of which are the same; and lets check open each, which is told how many
// acknowledgements came before, from so many on. They are spread evenly over what
// was not synced. It returns how many images there were, how many of them before
// the first acknowledgement, and the rest in words.
func cutEverywhere(t *testing.T, calls []call, from, wanted int, check func(dir string, acked int) error) (total, making int, how string) {
	t.Helper()
	const seed = 12
	// What a call leaves unsynced is how much there is to choose from after it.
	weights, sum := make([]int, len(calls)), 0
	acked, d := 0, &disk{files: map[int]*diskFile{}, names: map[string]int{}}
	for i, c := range calls {
		d.do(c)
		if c.kind == "ack" {
			acked++
		}
		if acked >= from {
			weights[i] = 1 + min(d.unsynced(), 10)
		}
		if acked == 0 {
			weights[i] *= 10 // a file is made only once
		}
		sum += weights[i]
	}

	images := make(chan image)
	var workers sync.WaitGroup
	var mu sync.Mutex
	slowest, failed := time.Duration(0), 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			dir, err := os.MkdirTemp(t.TempDir(), "image")
			if err != nil {
				t.Error(err)
			}
			for img := range images {
				took, err := img.check(dir, check)
				mu.Lock()
				slowest = max(slowest, took)
				if err != nil {
					if failed++; failed < 5 {
						t.Errorf("image %d (seed %d), the power cut after call %d of %d, %d acknowledged; %s: %v", img.number, seed, img.call, len(calls), img.acked, img.words, err)
					}
				}
				mu.Unlock()
			}
		})
	}
	seen := map[[32]byte]bool{}
	acked = 0
	tries, spent := 0, 0
	d = &disk{files: map[int]*diskFile{}, names: map[string]int{}}
	for i, c := range calls {
		d.do(c)
		if c.kind == "ack" {
			acked++
		}
		spent += weights[i]
		// Those that come out twice are made up for at the next call.
		for try := 0; try < 4*weights[i] && len(seen) < wanted*spent/sum; try++ {
			number := tries
			tries++
			files, words := d.cut(rand.New(rand.NewPCG(seed, uint64(number))))
			id := identity(files, acked)
			if seen[id] {
				continue
			}
			seen[id] = true
			if acked == 0 {
				making++
			}
			images <- image{number, i, acked, files, words}
		}
	}
	close(images)
	workers.Wait()
	if len(seen) < wanted/4 {
		t.Errorf("%d images, wanted %d: too little to choose from", len(seen), wanted)
	}
	return len(seen), making, fmt.Sprintf("the power cut after each of %d calls; %d not opened, not sound, with something lost or half there; slowest start and check %v",
		len(calls), failed, slowest.Round(time.Millisecond))
}

func (d *disk) unsynced() int {
	n := len(d.folder)
	for _, f := range d.files {
		n += len(f.pending)
	}
	return n
}

func identity(files map[string][]byte, acked int) [32]byte {
	h := sha256.New()
	fmt.Fprintln(h, acked)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintln(h, name, len(files[name]))
		h.Write(files[name])
	}
	return [32]byte(h.Sum(nil))
}

// check puts the image into an empty folder and lets it be opened.
func (img image) check(dir string, open func(dir string, acked int) error) (took time.Duration, err error) {
	old, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range old {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return 0, err
		}
	}
	for name, data := range img.files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return 0, err
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	begun := time.Now()
	err = open(dir, img.acked)
	return time.Since(begun), err
}
