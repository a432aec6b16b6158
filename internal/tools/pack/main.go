// Command pack makes what people install: Debian and RPM packages, and archives
// for every system, with the licences of all that is linked into the programs.
//
// The same commit, packed anywhere with the same version of Go, gives the same
// bytes: nothing of the machine, the folder or the moment goes in. Version and
// times are those that Go stamps into the programs from the checkout.
//
// It never installs anything. Start with [pack].
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs are what each package holds.
var programs = []string{"hbrestd", "hb-rest", "hbrestd-keyring"}

// A target is a system that programs are built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// notRun are the systems for which the programs are built and vetted, while no
// test of this repository runs them there.
func (t target) notRun() bool { return t.os == "darwin" || t.os == "windows" }

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

func main() {
	root := flag.String("root", "../..", "the checkout")
	out := flag.String("out", "", "where the packages go (default: dist in the checkout)")
	list := flag.String("targets", allTargets, "systems, as GOOS/GOARCH with commas between")
	flag.Parse()
	if err := run(*root, *out, *list, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pack: error:", err)
		os.Exit(1)
	}
}

func run(root, out, list string, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	targets, err := parseTargets(list)
	if err != nil {
		return err
	}
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	if out == "" {
		out = filepath.Join(root, "dist")
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	return pack(root, out, targets)
}

func parseTargets(list string) ([]target, error) {
	var targets []target
	for _, word := range strings.Split(list, ",") {
		system, arch, ok := strings.Cut(word, "/")
		if !ok || !slices.Contains(strings.Split(allTargets, ","), word) {
			return nil, fmt.Errorf("no target %q; there are %s", word, allTargets)
		}
		targets = append(targets, target{system, arch})
	}
	return targets, nil
}

// pack builds the checkout at root for each target and writes the packages, and
// their digests in SHA256SUMS, into out. It prints a line for each.
func pack(root, out string, targets []target) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var made []string
	for _, t := range targets {
		names, err := packTarget(root, out, t)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		made = append(made, names...)
	}
	return writeSums(out, made)
}

// packTarget makes the packages of one system and returns their names.
func packTarget(root, out string, t target) (names []string, err error) {
	stage, err := os.MkdirTemp("", "hb-rest-pack-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := os.RemoveAll(stage); err == nil {
			err = e
		}
	}()
	b, err := compile(root, stage, t)
	if err != nil {
		return nil, err
	}
	notices, err := notices(root, t)
	if err != nil {
		return nil, err
	}
	files, err := collect(root, stage, t, notices)
	if err != nil {
		return nil, err
	}
	name, err := writeArchive(out, t, b, files)
	if err != nil {
		return nil, err
	}
	names = append(names, name)
	if t.os == "linux" {
		more, err := linuxPackages(root, stage, out, t, b, notices)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	remark := ""
	if t.notRun() {
		remark = " (vetted and cross-built, not run)"
	}
	for _, n := range names {
		fmt.Println(n + remark)
	}
	return names, nil
}

// writeSums writes the digests as sha256sum does.
func writeSums(out string, names []string) error {
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
