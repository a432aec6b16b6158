package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// A stamp is what the programs say of themselves.
type stamp struct {
	version string    // as packages write it
	time    time.Time // of the commit
}

// goCommand is the go command for a target, free of what this shell has set.
func goCommand(root string, t target, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	return cmd
}

// compile builds the programs into stage.
func compile(root, stage string, t target) (stamp, error) {
	args := []string{"build", "-trimpath", "-buildvcs=auto", "-ldflags=-s -w", "-o", stage + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	if out, err := goCommand(root, t, args...).CombinedOutput(); err != nil {
		return stamp{}, fmt.Errorf("go build: %w\n%s", err, bytes.TrimSpace(out))
	}
	info, err := buildinfo.ReadFile(filepath.Join(stage, exe(t, "hbrestd")))
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info)
}

func exe(t target, name string) string {
	if t.os == "windows" {
		return name + ".exe"
	}
	return name
}

// stampOf reads version and time of the commit. Without a repository the
// version is 0.0.0~devel and the time 2000-01-01, so that the bytes stay the same.
func stampOf(info *debug.BuildInfo) (stamp, error) {
	s := stamp{version: packageVersion(info.Main.Version), time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, kv := range info.Settings {
		if kv.Key == "vcs.time" {
			at, err := time.Parse(time.RFC3339, kv.Value)
			if err != nil {
				return s, fmt.Errorf("the time of the commit: %w", err)
			}
			s.time = at.UTC()
		}
	}
	return s, nil
}

// packageVersion turns the version of a Go module into one of a package, with
// the same order: v1.2.0 is 1.2.0, and what comes before it sorts before it.
func packageVersion(v string) string {
	v = strings.TrimPrefix(v, "v")
	if v == "" || v == "(devel)" {
		return "0.0.0~devel"
	}
	release, pre, found := strings.Cut(v, "-")
	if !found {
		return release
	}
	return release + "~" + strings.ReplaceAll(pre, "-", ".")
}
