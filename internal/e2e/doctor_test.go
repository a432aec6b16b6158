//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A patient is a home with something wrong, and a person who does what `hbrestd
// doctor` says.
type patient struct {
	t       *testing.T
	bin     string
	dir     string // of HOME and of the daemon's home
	home    string
	env     map[string]string
	limit   string // a line of shell before each doctor
	daemons []*process
}

type diagnosis struct {
	OK     bool
	Checks []struct {
		Check, State, Detail, Fix string
		Run                       []string
	}
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	bin, err := keyringProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "hb-doctor-") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &patient{t: t, bin: bin, dir: dir, home: filepath.Join(dir, "wrap home")}
	p.env = map[string]string{
		"HOME": dir, "HB_WRAP_HOME": p.home, "HB_WRAP_ADDR": freeAddress(t), "PATH": bin + ":/usr/local/bin:/usr/bin:/bin",
	}
	t.Cleanup(func() {
		for _, d := range p.daemons {
			d.kill()
		}
	})
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (p *patient) environ() []string {
	var list []string
	for k, v := range p.env {
		list = append(list, k+"="+v)
	}
	return list
}

// start runs a daemon of this home in the background.
func (p *patient) start() *process { return p.startAs(filepath.Join(p.bin, "hbrestd"), p.environ()...) }

func (p *patient) startAs(program string, env ...string) *process {
	p.t.Helper()
	d := &process{cmd: exec.Command(program, "run"), stderr: newLog()}
	d.cmd.Env = env
	pipe, err := d.cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go d.stderr.collect(bufio.NewScanner(pipe))
	p.daemons = append(p.daemons, d)
	if _, err := d.stderr.waitFor(listening); err != nil {
		p.t.Fatalf("%v\n%s", err, d.stderr)
	}
	return d
}

// sh runs a command as it stands, in a shell.
func (p *patient) sh(line string) (string, int) {
	p.t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = p.environ()
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		p.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (p *patient) doctor() diagnosis {
	p.t.Helper()
	cmd := exec.Command("sh", "-c", p.limit+"exec hbrestd doctor --json")
	cmd.Env = p.environ()
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	begin := time.Now()
	out, err := cmd.Output()
	if took := time.Since(begin); took > 20*time.Second {
		p.t.Errorf("it took %v", took)
	}
	var d diagnosis
	if jerr := json.Unmarshal(out, &d); jerr != nil {
		p.t.Fatalf("%v, %v: %s%s", err, jerr, out, errOut.String())
	}
	if code := cmd.ProcessState.ExitCode(); code != map[bool]int{true: 0, false: 1}[d.OK] {
		p.t.Errorf("exit code %d with ok=%t", code, d.OK)
	}
	if tok, err := os.ReadFile(filepath.Join(p.home, "wrap", "token")); err == nil && bytes.Contains(out, bytes.TrimSpace(tok)) {
		p.t.Error("the token was printed")
	}
	return d
}

// names wants a line that fails, and says so.
func (p *patient) names(d diagnosis, check string, says ...string) {
	p.t.Helper()
	for _, c := range d.Checks {
		if c.Check != check || c.State != "FAIL" {
			continue
		}
		all := true
		for _, s := range says {
			all = all && strings.Contains(c.Detail, s)
		}
		if all {
			return
		}
	}
	p.t.Errorf("no %s fails with %q:\n%s", check, says, d)
}

func (d diagnosis) String() string {
	text, _ := json.MarshalIndent(d, "", " ")
	return string(text)
}

// follow does what is printed below the lines that fail, from the top, as often
// as that changes something, until nothing fails.
func (p *patient) follow(d diagnosis) {
	p.t.Helper()
	for range 4 {
		if d.OK {
			return
		}
		did := map[string]bool{}
		for _, c := range d.Checks {
			if c.State != "FAIL" {
				continue
			}
			if len(c.Run) == 0 {
				p.t.Fatalf("%s has no command: %s", c.Check, d)
			}
			for _, line := range c.Run {
				if !did[line] {
					p.t.Logf("%s: %s", c.Check, line)
					p.do(line)
				}
				did[line] = true
			}
		}
		d = p.doctor()
	}
	if !d.OK {
		p.t.Errorf("what is printed does not mend it:\n%s", d)
	}
}

func (p *patient) do(line string) {
	p.t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "hbrestd run":
		p.start()
	case word == "unset":
		delete(p.env, rest)
	case word == "export":
		name, value, _ := strings.Cut(rest, "=")
		out, _ := p.sh("printf %s " + value)
		p.env[name] = out
	case word == "kill":
		if out, code := p.sh(line); code != 0 {
			p.t.Fatalf("%s: exit %d\n%s", line, code, out)
		}
		pid, err := strconv.Atoi(strings.TrimPrefix(rest, "-9 "))
		if err != nil {
			p.t.Fatal(err)
		}
		p.gone(pid)
	default:
		if out, code := p.sh(line); code != 0 {
			p.t.Fatalf("%s: exit %d\n%s", line, code, out)
		}
	}
}

// gone waits for the end of a process that was asked to end.
func (p *patient) gone(pid int) {
	p.t.Helper()
	for _, d := range p.daemons {
		if d.cmd.Process.Pid == pid && !d.ended {
			_ = d.wait()
		}
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, code := p.sh("kill -0 " + strconv.Itoa(pid)); code != 0 {
			return
		}
	}
	p.t.Fatalf("process %d did not end", pid)
}

func (p *patient) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// TestHoldPort is the foreign program of TestDoctor.
func TestHoldPort(t *testing.T) {
	addr := os.Getenv("HB_E2E_HOLD")
	if addr == "" {
		t.Skip("a part of TestDoctor, which runs it as another process")
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("held\n")
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.Close()
	}
}

// Every set-up that is broken in one way is named, and mended by what is
// printed. Those with a keyring and with a service manager have tests of their
// own below.
func TestDoctor(t *testing.T) {
	cases := []struct {
		name string
		sick func(p *patient)
		want func(p *patient, d diagnosis)
	}{
		{"well", func(p *patient) { p.start() }, func(p *patient, d diagnosis) {
			if !d.OK {
				p.t.Error(d)
			}
		}},
		{"home missing", func(*patient) {}, func(p *patient, d diagnosis) { p.names(d, "daemon", "it does not run") }},
		{"stale token path", func(p *patient) {
			p.start()
			p.env["HB_WRAP_TOKEN_FILE"] = p.write("old/wrap/token", strings.Repeat("a", 64)+"\n")
		}, func(p *patient, d diagnosis) { p.names(d, "token", "old/wrap/token", p.home+"/wrap/token") }},
		{"changed token", func(p *patient) {
			p.start()
			p.write("wrap home/wrap/token", strings.Repeat("a", 64)+"\n")
		}, func(p *patient, d diagnosis) { p.names(d, "token", "is not the one that the daemon has") }},
		{"foreign port owner", func(p *patient) {
			self, err := os.Executable()
			if err != nil {
				p.t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			p.t.Cleanup(cancel)
			cmd := exec.CommandContext(ctx, self, "-test.run=^TestHoldPort$")
			cmd.Env = []string{"HB_E2E_HOLD=" + p.env["HB_WRAP_ADDR"]}
			out, err := cmd.StdoutPipe()
			if err != nil {
				p.t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				p.t.Fatal(err)
			}
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				p.t.Fatal(err)
			}
			go func() { _ = cmd.Wait() }()
		}, func(p *patient, d diagnosis) {
			p.names(d, "port", p.env["HB_WRAP_ADDR"], "is in use by e2e.test (pid ")
		}},
		{"wrong modes", func(p *patient) {
			p.start()
			for name, mode := range map[string]os.FileMode{".": 0o755, "wrap": 0o750, "wrap/token": 0o644, "wrap/store.db": 0o660} {
				if err := os.Chmod(filepath.Join(p.home, name), mode); err != nil {
					p.t.Fatal(err)
				}
			}
		}, func(p *patient, d diagnosis) {
			p.names(d, "folders", p.home+" has mode 0755")
			p.names(d, "folders", p.home+"/wrap has mode 0750")
			p.names(d, "files", "token has mode 0644")
			p.names(d, "files", "store.db has mode 0660")
		}},
		{"wrong path in a client", func(p *patient) {
			p.start()
			p.write(".cursor/mcp.json", `{"mcpServers":{"hb-rest":{"command":"/opt/old/hb-rest"}}}`)
		}, func(p *patient, d diagnosis) { p.names(d, "client cursor", "/opt/old/hb-rest", "no such file") }},
		{"another program's entry in a client", func(p *patient) {
			p.start()
			p.write(".cursor/mcp.json", `{"mcpServers":{"hb-rest":{"command":"/bin/false"}}}`)
		}, func(p *patient, d diagnosis) { p.names(d, "client cursor", "it ended before it answered") }},
		{"stale token path in a client", func(p *patient) {
			p.start()
			p.write(".cursor/mcp.json", `{"mcpServers":{"hb-rest":{"command":"`+p.bin+`/hb-rest","env":{"HB_WRAP_TOKEN_FILE":"/opt/old/token"}}}}`)
		}, func(p *patient, d diagnosis) { p.names(d, "client cursor", "does not reach the daemon") }},
		{"old entry", func(p *patient) {
			p.start()
			p.write(".gemini/settings.json", `{"mcpServers":{"kuang-wrap":{"command":"node","args":["/opt/kuang/rest-mcp.mjs"]}}}`)
		}, func(p *patient, d diagnosis) { p.names(d, "client gemini-cli", "kuang-wrap") }},
		{"two daemons", func(p *patient) {
			p.startAs(filepath.Join(p.bin, "hbrestd"), "HOME="+p.dir, "HB_WRAP_HOME="+filepath.Join(p.dir, "other"), "HB_WRAP_ADDR="+p.env["HB_WRAP_ADDR"])
		}, func(p *patient, d diagnosis) { p.names(d, "port", "another hbrestd", "which has another home") }},
		{"daemon hangs", func(p *patient) {
			d := p.start()
			if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				p.t.Fatal(err)
			}
		}, func(p *patient, d diagnosis) { p.names(d, "daemon", "it runs, but has not answered") }},
		{"damaged store", func(p *patient) {
			d := p.start()
			for i := range 30 {
				p.write("w.json", `{"schemaVersion":1,"id":"w.`+strconv.Itoa(i)+`","name":"W","description":"`+strings.Repeat("x", 1500)+`","request":{"method":"GET","url":"https://api.example.com/"}}`)
				if out, code := p.sh("hbrestd wrapper apply ~/w.json"); code != 0 {
					p.t.Fatal(out)
				}
			}
			d.kill()
			path := filepath.Join(p.home, "wrap", "store.db")
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()/4)
			}
			if err != nil {
				p.t.Fatal(err)
			}
		}, func(p *patient, d diagnosis) { p.names(d, "wrappers", "store.db is damaged") }},
		{"version skew", func(p *patient) {
			old := filepath.Join(p.dir, "old")
			if err := os.Mkdir(old, 0o700); err != nil {
				p.t.Fatal(err)
			}
			for _, name := range []string{"hbrestd", "hb-rest", "hbrestd-keyring"} {
				older(p.t, filepath.Join(p.bin, name), filepath.Join(old, name))
			}
			p.startAs(filepath.Join(old, "hbrestd"), p.environ()...)
		}, func(p *patient, d diagnosis) { p.names(d, "version", "the running daemon is version ") }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := newPatient(t)
			tc.sick(p)
			d := p.doctor()
			tc.want(p, d)
			p.follow(d)
		})
	}
}

// older copies a program and makes the copy say that it is of another version.
func older(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	before := []byte("mod\tgithub.com/hyperbolic-gateway/hb-rest\t")
	_, version, found := bytes.Cut(data, before)
	if !found {
		t.Fatal("the program does not say of which version it is")
	}
	version = version[:bytes.IndexAny(version, "\t\n")] // a part of data
	another := []byte("v0.0.1-older" + strings.Repeat("0", len(version)))[:len(version)]
	copy(version, another)
	if err := os.WriteFile(to, data, 0o700); err != nil {
		t.Fatal(err)
	}
}

// A disk that takes nothing more, which a limit on the size of files stands in
// for. There is no command that makes room: the test does.
func TestDoctorFullDisk(t *testing.T) {
	p := newPatient(t)
	p.start()
	p.limit = "ulimit -f 4; "
	d := p.doctor()
	p.names(d, "disk", "nothing can be written in "+p.home+"/wrap", "file too large")
	for _, c := range d.Checks {
		if c.Check == "disk" && (len(c.Run) != 1 || !strings.HasPrefix(c.Run[0], "df -h '")) {
			t.Errorf("%+v", c)
		}
	}
	p.limit = ""
	if d := p.doctor(); !d.OK {
		t.Error(d)
	}
	if left, err := filepath.Glob(filepath.Join(p.home, "wrap", ".doctor-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
