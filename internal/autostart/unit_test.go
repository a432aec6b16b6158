package autostart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	agents "github.com/hyperbolic-gateway/hb-rest/launchd"
	units "github.com/hyperbolic-gateway/hb-rest/systemd"
)

// Expected by systemd.syntax(7) and systemd.unit(5): quotes around what has a
// space, backslashes doubled inside them, every % doubled.
func TestUnitText(t *testing.T) {
	for _, tc := range []struct{ program, home, want string }{
		{"/usr/bin/hbrestd", "", "ExecStart=/usr/bin/hbrestd run\n"},
		{"/home/ada/.local/bin/hbrestd", "", "ExecStart=/home/ada/.local/bin/hbrestd run\n"},
		{"/opt/my tools/hbrestd", "", "ExecStart=\"/opt/my tools/hbrestd\" run\n"},
		{"/opt/100%h/hbrestd", "/srv/%t", "Environment=HB_WRAP_HOME=/srv/%%t\nExecStart=/opt/100%%h/hbrestd run\n"},
		{"/opt/$HOME/hbrestd", "", "ExecStart=\"/opt/$HOME/hbrestd\" run\n"},
		{"/usr/bin/hbrestd", `/srv/a\x20b`, "Environment=\"HB_WRAP_HOME=/srv/a\\\\x20b\"\nExecStart=/usr/bin/hbrestd run\n"},
		{"/opt/{{Name}}/hbrestd", "", "ExecStart=\"/opt/{{Name}}/hbrestd\" run\n"},
		{"/opt/ü;#/hbrestd", "/home/Ada L", "Environment=\"HB_WRAP_HOME=/home/Ada L\"\nExecStart=\"/opt/ü;#/hbrestd\" run\n"},
	} {
		got, err := UnitText(tc.program, tc.home)
		if err != nil {
			t.Errorf("%s: %v", tc.program, err)
			continue
		}
		if want := strings.Replace(units.UserUnit, "ExecStart=/usr/bin/hbrestd run\n", tc.want, 1); got != want {
			t.Errorf("%s (-want +got):\n%s", tc.program, cmp.Diff(want, got))
		}
	}
}

// hostile are paths that would end a line, a word or an element of a definition.
var hostile = []string{
	"/opt/a\nExecStartPre=/bin/evil\n/hbrestd", "/opt/a\rb/hbrestd", "/opt/\x00/hbrestd", "/opt/\x1b[0m/hbrestd", "/opt/\x7f/hbrestd",
	"/opt/\u0085/hbrestd", "/opt/\u2028/hbrestd", "/opt/\xff/hbrestd", `/opt/a"b/hbrestd`, "/opt/a'b/hbrestd", "/opt/a`b/hbrestd",
}

func TestHostilePathsAreRefused(t *testing.T) {
	const plain = "/usr/bin/hbrestd"
	for _, bad := range hostile {
		for name, err := range map[string]error{
			"unit, program":  second(UnitText(bad, "")),
			"unit, home":     second(UnitText(plain, bad)),
			"agent, program": second(PropertyList(bad, "", "/x")),
			"agent, home":    second(PropertyList(plain, bad, "/x")),
			"agent, log":     second(PropertyList(plain, "", bad)),
			"task, program":  second(TaskText(bad, "", "/x", "S-1")),
			"task, home":     second(TaskText(plain, bad, "/x", "S-1")),
			"task, log":      second(TaskText(plain, "", bad, "S-1")),
		} {
			if !fault.Is(err, "SERVICE_FAILED") {
				t.Errorf("%s %q: %v", name, bad, err)
			}
		}
	}
	if err := second(UnitText(`/opt/a\x20b/hbrestd`, "")); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("a backslash in a unit's program: %v", err)
	}
	if err := second(TaskText(`C:\%TEMP%\hbrestd.exe`, "", "/x", "S-1")); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("a %% in a task: %v", err)
	}
}

func second(_ string, err error) error { return err }

func TestTemplatesHaveWhatIsReplaced(t *testing.T) {
	for text, once := range map[string][]string{
		units.UserUnit: {execLine, "[Service]\n", "\nWantedBy=default.target\n", "\nType=notify\n", "\nRestart=on-failure\n", "\nRestartSec=1\n", "\nRestartPreventExitStatus=8\n", "\nUMask=0077\n", "\nLimitCORE=0\n"},
		agents.Agent:   {"<string>/usr/local/bin/hbrestd</string>", "\t<dict/>\n", "<string>/Users/Shared/hbrestd.log</string>", "<string>" + label + "</string>"},
		taskXML:        {"PROGRAM", "ARGUMENTS"},
	} {
		for _, part := range once {
			if n := strings.Count(text, part); n != 1 {
				t.Errorf("%q is there %d times", part, n)
			}
		}
	}
	if n := strings.Count(taskXML, "USER"); n != 2 {
		t.Errorf("USER is there %d times", n)
	}
}

func TestEdited(t *testing.T) {
	text, err := UnitText("/usr/bin/hbrestd", "")
	if err != nil {
		t.Fatal(err)
	}
	ours := signed(text)
	for unit, want := range map[string]bool{
		ours: false, ours + "\n": true, strings.Replace(ours, "RestartSec=1", "RestartSec=5", 1): true, text: true, "": true, written + "\n" + text: true,
	} {
		if got := edited(unit); got != want {
			t.Errorf("%.60q...: %v", unit, got)
		}
	}
}

func TestChanges(t *testing.T) {
	got := changes("# a\n[Service]\nExecStart=/a run\nRestartSec=1\nEnvironment=A=1\n", "# b\n\n[Service]\nExecStart=/b run\nRestartSec=1\nUMask=0077\n")
	want := []string{"- ExecStart=/a run", "- Environment=A=1", "+ ExecStart=/b run", "+ UMask=0077"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := changes("A=1\nA=1\n", "A=1\n"); !cmp.Equal(got, []string{"- A=1"}) {
		t.Error(got)
	}
}

// The agent, read as XML: what comes back is what went in.
func TestPropertyList(t *testing.T) {
	program, home, log := "/Applications/A & <B>/hbrestd", "/Users/ada/x&y", "/Users/ada/Library/Logs/hbrestd.log"
	text, err := PropertyList(program, home, log)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(words(t, text), "\n")
	want := strings.Join([]string{
		"Label", "com.github.hyperbolic-gateway.hbrestd", "ProgramArguments", program, "run", "--final-exit=0", "EnvironmentVariables", "HB_WRAP_HOME", home,
		"RunAtLoad", "KeepAlive", "SuccessfulExit", "ThrottleInterval", "1", "ExitTimeOut", "20", "ProcessType", "Background", "Umask", "63",
		"HardResourceLimits", "Core", "0", "StandardOutPath", "/dev/null", "StandardErrorPath", log,
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text, err = PropertyList("/usr/local/bin/hbrestd", "", "/Users/Shared/hbrestd.log"); err != nil || text != agents.Agent {
		t.Errorf("the agent's own example: %v\n%s", err, cmp.Diff(agents.Agent, text))
	}
}

// words are the texts of an XML document, in order.
func words(t *testing.T, text string) (list []string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(text))
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if c, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(c)) != "" {
			list = append(list, string(c))
		}
	}
}

func TestTaskText(t *testing.T) {
	text, err := TaskText(`C:\Program Files\A & B\hbrestd.exe`, `D:\hb home\`, `C:\Users\Ada\hbrestd.log`, "S-1-5-21-1-2-3-1001")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"hbrestd: REST APIs as tools for AI agents", "S-1-5-21-1-2-3-1001", "S-1-5-21-1-2-3-1001", "InteractiveToken", "LeastPrivilege", "IgnoreNew",
		"false", "false", "PT0S", "true", "PT1M", "10", `C:\Program Files\A & B\hbrestd.exe`,
		`run --final-exit=0 --home "D:\hb home" --log "C:\Users\Ada\hbrestd.log"`,
	}
	if diff := cmp.Diff(want, words(t, text)); diff != "" {
		t.Error(diff)
	}
	if b := utf16Text("aü\n"); string(b) != "\xff\xfea\x00\xfc\x00\r\x00\n\x00" {
		t.Errorf("% x", b)
	}
}
