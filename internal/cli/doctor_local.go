package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
)

// Room on the disk: under lowDisk a day of audit rows may not fit.
const (
	lowDisk  = 64 << 20
	diskTest = 64 << 10 // written and removed again
)

var ourVariable = regexp.MustCompile(`\b(?:HB|KUANG)_(?:WRAP|MCP)_[A-Z_]+`)

// settings reads them; nil: they can be read.
func (o *checkup) settings() *finding {
	var err error
	if o.d, _, err = config.LoadDaemon(o.app.env, o.app.goos); err == nil {
		o.shim, _, err = config.LoadShim(o.app.env, o.app.goos)
	}
	if err == nil {
		return nil
	}
	f := wrong("settings", err)
	if name := ourVariable.FindString(f.Detail); name != "" {
		if v, _ := o.app.env(name); v != "" {
			f.Run = []string{o.unset(name)}
			f.Fix = "Give " + name + " a value that is allowed, or take it away, also where your shell or your client sets it:"
		}
	}
	return &f
}

func (o *checkup) unset(name string) string {
	if o.app.goos == "windows" {
		return "set " + name + "="
	}
	return "unset " + name
}

// settingsFine is for settings that can be read, with what is to be said of them.
func (o *checkup) settingsFine() []finding {
	out := []finding{fine("settings", "home %s", o.d.Home)}
	_, warnings, _ := config.LoadDaemon(o.app.env, o.app.goos)
	for _, w := range warnings {
		out = append(out, finding{Check: "settings", State: findWarn, Detail: string(w)})
	}
	return out
}

// programs looks for hb-rest, and whether it is of this version.
func (o *checkup) programs(ctx context.Context) finding {
	path, err := (&clientOptions{app: o.app}).shim()
	if err != nil {
		return wrong("programs", err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	out, err := programVersion(ctx, path)
	if err != nil {
		return finding{Check: "programs", State: findFail, Detail: fmt.Sprintf("%s cannot be started: %v", path, err), Fix: "Install hbrestd and hb-rest of one release into one folder."}
	}
	if version := strings.TrimPrefix(out, "hb-rest "); version != o.app.version.Version {
		return finding{
			Check: "programs", State: findFail, Detail: fmt.Sprintf("%s is version %s, and this hbrestd is %s", path, version, o.app.version.Version),
			Fix: "Install hbrestd and hb-rest of one release into one folder.",
		}
	}
	return fine("programs", "hbrestd %s, hb-rest of the same version at %s", o.app.version.Version, path)
}

// programVersion is the first line that a program prints for --version.
func programVersion(ctx context.Context, path string) (string, error) {
	cmd := exec.CommandContext(ctx, path, "--version")
	out := &tail{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, probeGrace
	ownGroup(cmd)
	err := cmd.Run()
	line, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) { // not that we have killed it
		return "", errors.New("it did not print its version in time")
	}
	if err != nil && line != "" {
		err = fmt.Errorf("%w: %s", err, line)
	}
	return line, err
}

// folders are those of the daemon that are there. One that is missing is made
// at the next start.
func (o *checkup) folders() []finding {
	var out []finding
	dirs := []string{o.d.Home, o.d.WrapDir}
	if socket := filepath.Dir(o.d.ControlSocket); o.app.goos != "windows" && socket != o.d.Home {
		dirs = append(dirs, socket)
	}
	there := 0
	for _, dir := range dirs {
		switch _, err := os.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			out = append(out, finding{
				Check: "folders", State: findFail, Detail: fmt.Sprintf("%s cannot be looked at: %v", dir, reasonOf(err)),
				Fix: "Give your user access to the folders above it, or set HB_WRAP_HOME to a folder of your own.", Run: []string{"ls -ld " + o.quote(filepath.Dir(dir))},
			})
			continue
		}
		there++
		if err := config.EnsureDir(dir); err != nil { // it is there, so nothing is made
			out = append(out, wrong("folders", err))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case there == 0:
		return []finding{skipped("folders", "%s is not there yet; the daemon makes it at its first start", o.d.Home)}
	}
	return []finding{fine("folders", "closed to other users")}
}

func reasonOf(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// files are those of the daemon that are there, without what is in them.
func (o *checkup) files() []finding {
	var out []finding
	there := 0
	for _, p := range []string{o.d.StorePath, o.d.AuditPath, o.d.CortexPath, o.d.TokenPath} {
		info, err := os.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		there++
		f := finding{Check: "files", State: findFail}
		uid, foreign := foreignOwner(info)
		switch {
		case err != nil: // its folder is a finding already
			return append(out, skipped("files", "%s cannot be looked at: %v", p, reasonOf(err)))
		case !info.Mode().IsRegular():
			f.Detail, f.Fix = p+" is not a regular file", "Stop the daemon, move that away, and start it again:"
			f.Run = []string{"mv " + o.quote(p) + " " + o.quote(p+".away")}
		case foreign:
			f.Detail, f.Run = fmt.Sprintf("%s belongs to user %d", p, uid), []string{`sudo chown "$(id -u)" ` + o.quote(p)}
		case info.Mode().Perm()&0o077 != 0 && o.app.goos != "windows":
			f.Detail, f.Run = fmt.Sprintf("%s has mode %04o, which lets other users in", p, info.Mode().Perm()), []string{"chmod 600 " + o.quote(p)}
		case info.Mode().Perm()&0o600 != 0o600:
			f.Detail, f.Run = fmt.Sprintf("%s has mode %04o, which keeps its owner out", p, info.Mode().Perm()), []string{"chmod 600 " + o.quote(p)}
		default:
			continue
		}
		out = append(out, f)
	}
	switch {
	case len(out) > 0:
		return out
	case there == 0:
		return []finding{skipped("files", "there are none yet")}
	}
	return []finding{fine("files", "closed to other users")}
}

// disk writes a small file where the daemon writes, and removes it.
func (o *checkup) disk() finding {
	dir := o.d.WrapDir
	switch _, err := os.Lstat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return o.room(dir)
	case err != nil:
		return skipped("disk", "%s cannot be looked at: %v", dir, reasonOf(err))
	}
	if err := writeTest(dir); err != nil {
		return finding{
			Check: "disk", State: findFail, Detail: fmt.Sprintf("nothing can be written in %s: %v", dir, reasonOf(err)),
			Fix: "Make room on that file system, or give your user the right to write there. How full it is:", Run: []string{"df -h " + o.quote(dir)},
		}
	}
	free, err := freeSpace(dir)
	switch {
	case err != nil:
		return fine("disk", "%s can be written", dir)
	case free < lowDisk:
		return finding{
			Check: "disk", State: findWarn, Detail: fmt.Sprintf("only %d MB are free in %s", free>>20, dir),
			Fix: "Make room on that file system. How full it is:", Run: []string{"df -h " + o.quote(dir)},
		}
	}
	return fine("disk", "%d MB are free in %s", free>>20, dir)
}

// room is for a folder that the daemon has yet to make: whether it can.
func (o *checkup) room(dir string) finding {
	above := filepath.Dir(dir)
	for above != filepath.Dir(above) {
		if _, err := os.Stat(above); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		above = filepath.Dir(above)
	}
	if err := writeTest(above); err != nil {
		return finding{
			Check: "disk", State: findFail, Detail: fmt.Sprintf("%s is not there and cannot be made: nothing can be written in %s: %v", dir, above, reasonOf(err)),
			Fix: "Give your user the right to write there and room, or set HB_WRAP_HOME to a folder of your own.", Run: []string{"ls -ld " + o.quote(above)},
		}
	}
	return skipped("disk", "%s is not there", dir)
}

func writeTest(dir string) (err error) {
	f, err := os.CreateTemp(dir, ".doctor-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}()
	if _, err := f.Write(make([]byte, diskTest)); err != nil {
		return err
	}
	return f.Sync()
}
