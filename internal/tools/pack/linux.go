package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // formats that nfpm knows by being imported
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// linuxPackages lays out in stage what packaging/nfpm.yaml names, and makes a
// deb and an rpm of it.
func linuxPackages(root, stage, out string, t target, s stamp, notices []byte) ([]string, error) {
	if err := layOut(root, stage, s, notices); err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(root, "packaging", "nfpm.yaml"))
	if err != nil {
		return nil, err
	}
	// The names of files in it are relative to stage.
	if err := os.Chdir(stage); err != nil {
		return nil, err
	}
	defer func() { _ = os.Chdir(out) }() // stage is removed next, and some systems keep a folder that somebody is in
	var names []string
	for _, format := range []string{"deb", "rpm"} {
		name, err := linuxPackage(format, string(config), out, t, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}
		names = append(names, name)
	}
	return names, nil
}

func linuxPackage(format, config, out string, t target, s stamp) (name string, err error) {
	values := map[string]string{"ARCH": t.arch, "VERSION": s.version}
	c, err := nfpm.ParseWithEnvMapping(strings.NewReader(config), func(name string) string { return values[name] })
	if err != nil {
		return "", err
	}
	info, err := c.Get(format)
	if err != nil {
		return "", err
	}
	info.MTime = s.time
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	p, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	name = p.ConventionalFileName(info)
	f, err := os.Create(filepath.Join(out, name))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return name, p.Package(info, f)
}

// layOut writes the compressed pages and the text about copyright beside the
// programs, and copies what else is packed.
func layOut(root, stage string, s stamp, notices []byte) error {
	write := func(name string, data []byte, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(stage, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	}
	copied := map[string]string{"README.md": "README.md", "lintian": "packaging/lintian", "systemd": "systemd/*.service", "docs": "docs/*.md", "completions": "packaging/completions/*", "man": "packaging/man/*"}
	var errs []error
	for to, pattern := range copied {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		errs = append(errs, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			name := to
			if strings.Contains(pattern, "*") {
				name += "/" + filepath.Base(path)
			}
			if to == "man" && err == nil {
				name += ".gz"
				data, err = squeeze(data)
			}
			errs = append(errs, write(name, data, err))
		}
	}
	log, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err == nil {
		log, err = squeeze(log)
	}
	errs = append(errs, write("changelog.gz", log, err))
	small, err := squeeze(notices)
	errs = append(errs, write("THIRD_PARTY_NOTICES.txt.gz", small, err))
	news, err := squeeze(debianChangelog(s))
	errs = append(errs, write("changelog.Debian.gz", news, err))
	text, err := copyright(root, s)
	errs = append(errs, write("copyright", text, err))
	return errors.Join(errs...)
}

// maintainer is the one of packaging/nfpm.yaml.
const maintainer = "The authors of hb-rest <hb-rest@example.invalid>"

// debianChangelog is about the package; what is new in the programs is in changelog.gz.
func debianChangelog(s stamp) []byte {
	return fmt.Appendf(nil, "hb-rest (%s-1) unstable; urgency=medium\n\n  * Packed from the source. What is new: changelog.gz.\n\n -- %s  %s\n",
		s.version, maintainer, s.time.Format(time.RFC1123Z))
}

// copyright is the file of that name in a Debian package.
func copyright(root string, s stamp) ([]byte, error) {
	own, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if errors.Is(err, fs.ErrNotExist) {
		own, err = []byte("The source of hb-rest comes without a file that grants a licence.\n"), nil
	}
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "Source: https://github.com/hyperbolic-gateway/hb-rest\nCopyright (C) %d the authors of hb-rest\n\n%s\n"+
		"The programs are linked with code of others. Which, and under which terms,\nis in THIRD_PARTY_NOTICES.txt.gz beside this file.\n", s.time.Year(), own), nil
}
