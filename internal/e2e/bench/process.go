package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// A server is a process that says where it listens: the API, or a service.
type server struct {
	cmd *exec.Cmd
	url string
}

// serve starts cmd and waits until it answers over HTTP. Where it listens is
// what the first parenthesis of listening matches on its standard output, or on
// its standard error if it writes its log there.
func serve(cmd *exec.Cmd, listening *regexp.Regexp, onStderr bool) (*server, error) {
	pipe := cmd.StdoutPipe
	if onStderr {
		pipe = cmd.StderrPipe
	}
	out, err := pipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	lines := bufio.NewScanner(out)
	seen := ""
	for s.url == "" && lines.Scan() {
		seen += lines.Text() + "\n"
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			s.url = "http://" + m[1]
		}
	}
	if s.url == "" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("%s ended before it listened:\n%s", cmd.Path, seen)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	resp, err := direct.Get(s.url + "/")            // any answer will do
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd.Path, err)
	}
	return s, resp.Body.Close()
}

// direct asks no proxy.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

// stop ends a server by the signal that a service manager sends.
func (s *server) stop() error {
	if runtime.GOOS == "windows" { // it has no interrupt for other processes
		err := s.cmd.Process.Kill()
		_ = s.cmd.Wait() // says that it was killed
		return err
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	err := ends(s.cmd)
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		return nil // the floor ends by the signal itself
	}
	return err
}

// What the kernel says of processes. Where there is no /proc, known is false.

// processor is the time that processes have used, in seconds: of each thread
// the first number of its schedstat, in nanoseconds.
func processor(pids ...int) (seconds float64, known bool) {
	for _, pid := range pids {
		threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
		if err != nil || len(threads) == 0 {
			return 0, false
		}
		for _, name := range threads {
			text, err := os.ReadFile(name)
			if err != nil {
				continue // a thread that has ended since; Go's hardly ever do
			}
			first, _, _ := strings.Cut(string(text), " ")
			ns, err := strconv.ParseInt(first, 10, 64)
			if err != nil {
				return 0, false
			}
			seconds += float64(ns) / 1e9
		}
	}
	return seconds, true
}

// memory is the resident memory of processes in MiB, pages that they share
// counted in each; with peak, the most that each had since its start.
func memory(peak bool, pids ...int) (mib float64, known bool) {
	name := "VmRSS:"
	if peak {
		name = "VmHWM:"
	}
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			return 0, false
		}
		_, after, found := strings.Cut(string(text), name)
		fields := strings.Fields(after)
		if !found || len(fields) == 0 {
			return 0, false
		}
		kib, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return 0, false
		}
		mib += kib / 1024
	}
	return mib, true
}
