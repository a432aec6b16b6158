package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A file is one member of an archive.
type file struct {
	name string // with slashes
	data []byte
	mode fs.FileMode
}

// collect gathers what an archive holds, in the order of names.
func collect(root, stage string, t target, notices []byte) ([]file, error) {
	files := []file{{"THIRD_PARTY_NOTICES.txt", notices, 0o644}}
	add := func(name, path string, mode fs.FileMode) error {
		data, err := os.ReadFile(path)
		if err == nil {
			files = append(files, file{name, data, mode})
		}
		return err
	}
	var errs []error
	for _, p := range programs {
		errs = append(errs, add(exe(t, p), filepath.Join(stage, exe(t, p)), 0o755))
	}
	errs = append(errs, add("README.md", filepath.Join(root, "README.md"), 0o644), add("CHANGELOG.md", filepath.Join(root, "CHANGELOG.md"), 0o644))
	if err := add("LICENSE", filepath.Join(root, "LICENSE"), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	from := map[string]string{"docs": "docs/*.md", "completions": "packaging/completions/*"}
	if t.os != "windows" {
		from["man"] = "packaging/man/*"
	}
	switch t.os {
	case "linux":
		from["systemd"] = "systemd/*.service"
	case "darwin":
		from["launchd"] = "launchd/*.plist"
	}
	for dir, pattern := range from {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err == nil && len(paths) == 0 {
			err = fmt.Errorf("nothing matches %s", pattern)
		}
		errs = append(errs, err)
		for _, path := range paths {
			errs = append(errs, add(dir+"/"+filepath.Base(path), path, 0o644))
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, errors.Join(errs...)
}

// writeArchive writes a zip for Windows and a tar.gz for the others, with one
// folder at the top, and returns its name.
func writeArchive(out string, t target, s stamp, files []file) (string, error) {
	top := fmt.Sprintf("hb-rest-%s-%s-%s", strings.ReplaceAll(s.version, "~", "-"), t.os, t.arch)
	var b bytes.Buffer
	name, write := top+".tar.gz", writeTar
	if t.os == "windows" {
		name, write = top+".zip", writeZip
	}
	if err := write(&b, top, s.time, files); err != nil {
		return "", err
	}
	return name, os.WriteFile(filepath.Join(out, name), b.Bytes(), 0o644)
}

func writeTar(b *bytes.Buffer, top string, at time.Time, files []file) error {
	z, err := gzip.NewWriterLevel(b, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: top + "/" + f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), z.Close())
}

func writeZip(b *bytes.Buffer, top string, at time.Time, files []file) error {
	w := zip.NewWriter(b)
	for _, f := range files {
		h := &zip.FileHeader{Name: top + "/" + f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		m, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := m.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}

// squeeze is gzip as Debian wants it: best, without a name or a time.
func squeeze(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
