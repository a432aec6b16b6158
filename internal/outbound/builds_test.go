package outbound_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// hostRows are hosts as people, programs and attackers write them: those of
// internal/hostname's vectors, every step-th character of Unicode in three
// places, and numbers of one to five parts in every spelling of a part.
func hostRows(t *testing.T, step int) iter.Seq[string] {
	var file struct{ Canonical []struct{ In string } }
	text, err := os.ReadFile("../hostname/testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{"1", "127", "0", "255", "256", "0x7f", "0X7F", "0177", "00", "08", "0x", "4294967295", "4294967296", "1e1", "１", "٣", "a", ""}
	return func(yield func(string) bool) {
		for _, v := range file.Canonical {
			if !yield(v.In) {
				return
			}
		}
		for c := rune(0); c <= utf8.MaxRune; c += rune(step) {
			for _, host := range []string{string(c), "a" + string(c) + "b.example", "xn--" + string(c) + "-.example." + string(c)} {
				if !yield(host) {
					return
				}
			}
		}
		numbers := []string{""}
		for range 5 {
			var longer []string
			for i, n := range numbers {
				for j, p := range parts {
					if dotted := strings.TrimPrefix(n+"."+p, "."); len(numbers) < 400 || (i+j)%(7*step) == 0 {
						longer = append(longer, dotted)
					}
				}
			}
			for _, n := range longer {
				if !yield(n) || !yield(n+".") || !yield("["+n+"]") {
					return
				}
			}
			numbers = longer
		}
	}
}

// verdict is what a strict daemon makes of a host.
func verdict(host string) string {
	u, err := url.Parse("https://" + host + "/")
	if err != nil {
		return "no URL"
	}
	if err := (outbound.Policy{}).CheckURL(u); err != nil {
		return err.Error()
	}
	name, _, err := hostname.FromURL(u)
	if err != nil {
		return err.Error()
	}
	return "passes as " + name
}

const rowsInABlock = 1000

// verdicts is the digest of each thousand rows with their verdicts, to be
// compared without writing them all.
func verdicts(rows iter.Seq[string]) (digests []string, n int) {
	h := sha256.New()
	for row := range rows {
		_, _ = fmt.Fprintf(h, "%q %s\n", row, verdict(row))
		if n++; n%rowsInABlock == 0 {
			digests = append(digests, fmt.Sprintf("%x", h.Sum(nil)))
			h.Reset()
		}
	}
	return append(digests, fmt.Sprintf("%x", h.Sum(nil))), n
}

// Promise 3: a host has the same verdict in every build. A build without cgo and
// one with it, which bring different resolvers, agree on every row; a host that
// is a number in any spelling never comes to a resolver, which is where systems
// differ.
func TestSameVerdictInEveryBuild(t *testing.T) {
	step := soak.Rounds(97, 1)
	if os.Getenv("HB_TEST_VERDICTS") != "" {
		digests, _ := verdicts(hostRows(t, step))
		if err := os.WriteFile(os.Getenv("HB_TEST_VERDICTS"), []byte(strings.Join(digests, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	ours, rows := verdicts(hostRows(t, step))
	info, _ := debug.ReadBuildInfo()
	cgo := slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"})
	other := map[bool]string{true: "CGO_ENABLED=0", false: "CGO_ENABLED=1"}[cgo]
	if _, err := exec.LookPath("cc"); err != nil && !cgo {
		t.Skip("no C compiler here: there is only the build without cgo")
	}
	bin, out := filepath.Join(t.TempDir(), "other.test"), filepath.Join(t.TempDir(), "verdicts")
	build := exec.Command("go", "test", "-c", "-o", bin, ".")
	build.Env = append(os.Environ(), other)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	run := exec.Command(bin, "-test.run=^TestSameVerdictInEveryBuild$")
	run.Env = append(os.Environ(), "HB_TEST_VERDICTS="+out)
	if said, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	theirs, differ := strings.Fields(string(text)), 0
	if len(theirs) != len(ours) {
		t.Fatalf("%d blocks of rows here, %d there", len(ours), len(theirs))
	}
	for i := range ours {
		if ours[i] != theirs[i] {
			differ++
			t.Errorf("rows %d to %d have other verdicts with %s", i*rowsInABlock+1, (i+1)*rowsInABlock, other)
		}
	}
	numbers := 0
	for row := range hostRows(t, step) {
		last := strings.ToLower(strings.TrimSuffix(row, "."))
		last = last[strings.LastIndexByte(last, '.')+1:]
		if last == "" || strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x") {
			continue
		}
		numbers++
		if host, passes := strings.CutPrefix(verdict(row), "passes as "); passes && !isQuad(host) {
			t.Errorf("%q would be resolved", row)
		}
	}
	soak.Measured(t, "%d hosts, %d of them numbers, with cgo and without: %d of %d blocks of %d verdicts differ", rows, numbers, differ, len(ours), rowsInABlock)
}

// isQuad says that a host is four plain decimal numbers.
func isQuad(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is4()
}

// On every other system the verdict comes from the same source: nothing that
// decides it has a file for one system, or for cgo, alone.
func TestVerdictHasOneSource(t *testing.T) {
	var first []byte
	for _, system := range []string{"linux/amd64", "linux/386", "darwin/arm64", "windows/amd64", "freebsd/arm64"} {
		for _, cgo := range []string{"0", "1"} {
			goos, goarch, _ := strings.Cut(system, "/")
			cmd := exec.Command("go", "list", "-f", "{{.ImportPath}} {{.GoFiles}} {{.CgoFiles}}", "../hostname", "golang.org/x/net/idna", "golang.org/x/net/publicsuffix")
			cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED="+cgo)
			text, err := cmd.Output()
			if err != nil || len(text) < 100 {
				t.Fatalf("%s: %v: %s", system, err, text)
			}
			if first == nil {
				first = text
			}
			if !bytes.Equal(text, first) {
				t.Errorf("%s with CGO_ENABLED=%s is made of\n%s, the first of\n%s", system, cgo, text, first)
			}
		}
	}
}
