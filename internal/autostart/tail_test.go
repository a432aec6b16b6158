package autostart

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func TestLastLines(t *testing.T) {
	for _, tc := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""},
		{"a\nb\nc\n", 0, ""},
		{"a\nb\nc\n", 1, "c\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc\n", 3, "a\nb\nc\n"},
		{"a\nb\nc\n", 4, "a\nb\nc\n"},
		{"a\nb\nc", 1, "c"},
		{"\n\n", 1, "\n"},
		{"\n\n", 2, "\n\n"},
	} {
		if got := string(lastLines([]byte(tc.text), tc.n)); got != tc.want {
			t.Errorf("%q, %d: %q, want %q", tc.text, tc.n, got, tc.want)
		}
	}
}

// A followed log goes on after it was put aside, and ends with the context.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hbrestd.log")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	o := Options{LogFile: path}
	if err := tail(ctx, o, LogRequest{Lines: 1, Stdout: &out}); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("no log: %v", err)
	}
	add := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.WriteString(text)
		_ = f.Close()
	}
	add("one\ntwo\n")
	rounds := 0
	o.Sleep = func(context.Context, time.Duration) {
		switch rounds++; rounds {
		case 1:
			add("three\n")
		case 3:
			if err := os.Rename(path, path+".1"); err != nil {
				t.Error(err)
			}
			add("four\n")
		case 5:
			cancel()
		}
	}
	if err := tail(ctx, o, LogRequest{Lines: 1, Follow: true, Stdout: &out}); err != nil {
		t.Error(err)
	}
	if out.String() != "two\nthree\nfour\n" {
		t.Errorf("%q", out.String())
	}
}

// A link that is moved with each version stays in the unit.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	real, link, other := filepath.Join(dir, "1.2.3", "hbrestd"), filepath.Join(dir, "bin", "hbrestd"), filepath.Join(dir, "other", "hbrestd")
	for _, path := range []string{real, link, other} {
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{real, other} {
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no links here")
	}
	t.Setenv("PATH", filepath.Dir(link))
	t.Chdir(dir)
	for arg0, want := range map[string]string{
		link: link, "hbrestd": link, "bin/hbrestd": link, real: real,
		other: real, "nowhere": real, "": real, // a name that leads elsewhere is none of ours
	} {
		if got, err := stable(arg0, real); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", arg0, got, err, want)
		}
	}
	if got, err := stable("hbrestd", "/tmp/go-build123/b001/exe/hbrestd"); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("a passing build: %q %v", got, err)
	}
}
