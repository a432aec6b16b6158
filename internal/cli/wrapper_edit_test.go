package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// rounds makes an editor of shell commands, one for each time that it is opened,
// on the file "$1". What it was shown is given back by seen.
func (w *world) rounds(commands ...string) (seen func() []string) {
	w.t.Helper()
	if runtime.GOOS == "windows" {
		w.t.Skip("the editor is a shell script")
	}
	dir := filepath.Join(w.home, "an editor") // a path with a space
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	write("n", "0")
	write("editor", `#!/bin/sh
[ "$1" = --wait ] || exit 9
shift
dir=$(dirname "$0")
n=$(( $(cat "$dir/n") + 1 ))
echo $n >"$dir/n"
cp "$1" "$dir/seen$n"
stat -c %a "$1" >"$dir/mode" 2>/dev/null
. "$dir/do$n"
`)
	for i, c := range commands {
		write(fmt.Sprint("do", i+1), c)
	}
	w.env["EDITOR"] = `"` + filepath.Join(dir, "editor") + `" --wait`
	w.person = true
	return func() []string {
		var out []string
		for i := 1; ; i++ {
			data, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("seen", i)))
			if err != nil {
				break
			}
			out = append(out, string(data))
		}
		if mode, err := os.ReadFile(filepath.Join(dir, "mode")); err != nil || runtime.GOOS == "linux" && string(mode) != "600\n" {
			w.t.Errorf("the file's mode is %s, %v", mode, err)
		}
		return out
	}
}

// drafts are the files that were kept, by name without what is random in it.
func (w *world) drafts() map[string]string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.home, "draft-*"))
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		name := filepath.Base(f)
		out[name[:strings.LastIndexByte(name, '-')]] = string(data)
	}
	return out
}

func alike[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const (
	keptMessage = "hbrestd: your text is kept in DRAFT; `hbrestd wrapper apply DRAFT` saves it\n"
	editTop     = "// Change the wrapper a below, then save and close.\n"
	editEnd     = "// Mend it, then save and close; or close the file as it is to give up.\n"
	editBefore  = "{\n  \"id\": \"a\",\n  \"n\": 12345678901234567890\n}\n"
	editAfter   = "{\n  \"id\": \"a\",\n  \"n\": 2\n}\n"
)

var draftName = regexp.MustCompile(`HOME/draft-[A-Za-z0-9._-]+\.json`)

// nameless takes what is random out of what was said.
func nameless(s said) said {
	s.ErrOut = draftName.ReplaceAllString(s.ErrOut, "DRAFT")
	return s
}

func TestEdit(t *testing.T) {
	put := func(text string) string { return "cat >\"$1\" <<'EOF'\n" + text + "EOF\n" }
	change := `sed -i 's/12345678901234567890/2/' "$1"`
	for _, tc := range []struct {
		name   string
		rounds []string
		want   said
		stored string // "": as it was
		kept   string // "": nothing
		seen   []string
	}{
		{name: "changed", rounds: []string{change}, want: said{0, "updated    a\n", ""}, stored: `{"id":"a","n":2}`},
		{name: "left as it is", rounds: []string{"true"}, want: said{0, "", "hbrestd: a is as it was\n"}},
		{name: "emptied", rounds: []string{`: >"$1"`}, want: said{1, "", "hbrestd: error: the file was emptied, and nothing was saved\n"}},
		{name: "only comments are left", rounds: []string{put("// x\n\n  // y\n")}, want: said{1, "", "hbrestd: error: the file was emptied, and nothing was saved\n"}},
		{
			name: "not JSON, then mended", rounds: []string{put("{\n  \"id\": \"a\",\n  \"n\" 2\n}\n"), put(editAfter)},
			want: said{0, "updated    a\n", ""}, stored: `{"id":"a","n":2}`,
			seen: []string{"// Nothing is saved yet:\n// - line 6, column 7: "},
		},
		{
			name: "another id, then given up", rounds: []string{put(`{"id":"b"}` + "\n"), "true"},
			want: said{1, "", keptMessage + "hbrestd: error: the file was left as it is, and nothing was saved\n"}, kept: `{"id":"b"}` + "\n",
			seen: []string{"// Nothing is saved yet:\n// - wrapper.id: is \"b\"; an edit keeps the id (`hbrestd wrapper new` makes another wrapper)\n" + editEnd + `{"id":"b"}` + "\n"},
		},
		{
			name: "two documents, then emptied", rounds: []string{put(editAfter + editAfter), `: >"$1"`},
			want: said{1, "", keptMessage + "hbrestd: error: the file was emptied, and nothing was saved\n"}, kept: editAfter + editAfter,
			seen: []string{"// Nothing is saved yet:\n// - the file: holds 2 documents (leave one of them)\n" + editEnd + editAfter + editAfter},
		},
		{
			name: "a byte order mark and other line ends", rounds: []string{`printf '\357\273\277// c\r\n{"id":"a",\r\n"n":2}\r\n' >"$1"`},
			want: said{0, "updated    a\n", ""}, stored: `{"id":"a","n":2}`,
		},
		{
			name: "the editor fails after a change", rounds: []string{change + "\nexit 3"},
			want: said{1, "", keptMessage + "hbrestd: error: the editor HOME/an editor/editor: exit status 3\n"}, kept: editAfter,
		},
		{name: "the editor fails at once", rounds: []string{"exit 3"}, want: said{1, "", "hbrestd: error: the editor HOME/an editor/editor: exit status 3\n"}},
		{name: "the file is removed", rounds: []string{`rm "$1"`}, want: said{1, "", "hbrestd: error: nothing was saved: stat DRAFT: no such file or directory\n"}},
		{
			name: "the file is removed after a change", rounds: []string{put(`{"id":"b"}` + "\n"), `rm "$1"`},
			want: said{1, "", keptMessage + "hbrestd: error: nothing was saved: stat DRAFT: no such file or directory\n"}, kept: `{"id":"b"}` + "\n",
		},
		{
			name: "the file is removed and the editor fails", rounds: []string{put(`{"id":"b"}` + "\n"), `rm "$1"; exit 3`},
			want: said{1, "", keptMessage + "hbrestd: error: the editor HOME/an editor/editor: exit status 3; and stat DRAFT: no such file or directory\n"}, kept: `{"id":"b"}` + "\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fake{docs: docs(`{"id":"a","n":12345678901234567890}`)}
			w := newWorld(t, f)
			seen := w.rounds(tc.rounds...)
			got := nameless(w.hb("wrapper", "edit", "a"))
			check(t, tc.name, got, tc.want)
			shown := seen()
			if len(shown) != len(tc.rounds) || shown[0] != editTop+editBefore {
				t.Errorf("the editor saw %q", shown)
			}
			for i, want := range tc.seen {
				if !strings.HasPrefix(shown[i+1], want) {
					t.Errorf("round %d: the editor saw\n%s\nwant\n%s", i+2, shown[i+1], want)
				}
			}
			want := tc.stored
			if want == "" {
				want = `{"id":"a","n":12345678901234567890}`
			}
			if got := compactJSON(f.docs["a"]); got != want {
				t.Errorf("stored %s, want %s", got, want)
			}
			kept := map[string]string{}
			if tc.kept != "" {
				kept["draft-a"] = tc.kept
			}
			alike(t, "kept", w.drafts(), kept)
		})
	}
}

// The place of a fault is that of the file as it is opened again.
func TestEditPlaces(t *testing.T) {
	w := newWorld(t, &fake{docs: docs(`{"id":"a"}`)})
	seen := w.rounds(`printf '{\n  "id": "a",\n  "n" 2\n}\n' >"$1"`, "true")
	w.hb("wrapper", "edit", "a")
	shown := seen()
	lines := strings.Split(shown[1], "\n")
	if !strings.Contains(lines[1], "line 6, column 7:") || lines[5] != `  "n" 2` {
		t.Errorf("%q", lines)
	}
}

// What somebody else has saved meanwhile is shown, and not overwritten.
func TestEditOvertaken(t *testing.T) {
	f := &fake{docs: docs(`{"id":"a","n":1}`)}
	w := newWorld(t, f)
	w.rounds(`sed -i 's/"n": 1/"n": 2/' "$1"; mkfifo "$dir/go"; read x <"$dir/go"`)
	go func() {
		// The editor is open once somebody can write into the pipe.
		var pipe *os.File
		for pipe == nil {
			pipe, _ = os.OpenFile(filepath.Join(w.home, "an editor", "go"), os.O_WRONLY, 0)
			runtime.Gosched()
		}
		f.mu.Lock()
		f.docs["a"] = json.RawMessage(`{"id":"a","n":9}`)
		f.mu.Unlock()
		fmt.Fprintln(pipe, "on")
		pipe.Close()
	}()
	got := nameless(w.hb("wrapper", "edit", "a"))
	check(t, "said", got, said{
		1, "--- a as you opened it\n+++ a as it is now\n@@ -1,4 +1,4 @@\n {\n   \"id\": \"a\",\n-  \"n\": 1\n+  \"n\": 9\n }\n",
		keptMessage + "hbrestd: error: wrapper \"a\" was changed meanwhile\nhbrestd: hint: Look at it with `hbrestd wrapper show ID`, then make the change again.\n",
	})
	alike(t, "stored", string(f.docs["a"]), `{"id":"a","n":9}`)
	alike(t, "kept", w.drafts(), map[string]string{"draft-a": "{\n  \"id\": \"a\",\n  \"n\": 2\n}\n"})
}

func TestEditWithoutTerminal(t *testing.T) {
	w := newWorld(t, &fake{docs: docs(`{"id":"a"}`)})
	check(t, "edit", w.hb("wrapper", "edit", "a"), said{1, "", "hbrestd: error: an editor needs a terminal, and there is none\n" +
		"hbrestd: hint: `hbrestd wrapper show a > FILE` writes it, and `hbrestd wrapper apply FILE` saves it again.\n"})
	check(t, "new", w.hb("wrapper", "new", "b"), said{1, "", "hbrestd: error: an editor needs a terminal, and there is none\n" +
		"hbrestd: hint: Write the document to a file, and save it with `hbrestd wrapper apply FILE`; docs/wrapper-format.md describes it.\n"})
	w.person = true
	w.env["VISUAL"] = "/nowhere/ed --wait"
	got := w.hb("wrapper", "edit", "a")
	if got.Exit != 1 || !strings.HasPrefix(got.ErrOut, "hbrestd: error: VISUAL is \"/nowhere/ed --wait\", which cannot be started: ") {
		t.Errorf("%+v", got)
	}
}

func TestNew(t *testing.T) {
	const top = "// Complete the wrapper below, then save and close. Lines that begin with // up here are not part of it.\n// docs/wrapper-format.md describes each member.\n"
	f := &fake{docs: docs(`{"id":"example.orders"}`)}
	f.warn = []api.Warning{{Field: "f", Message: "m"}}
	w := newWorld(t, f)
	sample := filepath.Join(w.home, "answer.json")
	if err := os.WriteFile(sample, []byte(`[{"id":1,"title":"one"},{"id":2,"title":"two"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := w.rounds(`sed -i 's/"id": "example.orders-2"/"id": ""/' "$1"`, `sed -i 's/"id": ""/"id": "example.orders"/' "$1"`, `sed -i 's/"id": "example.orders"/"id": "mine"/' "$1"`)
	got := w.hb("wrapper", "new", "--url", "https://user:pw@api.example.com:8443/v1/orders/42?q=a%20b&tag=x&tag=y&api_key=c4n4ry#frag", "--from-sample", sample)
	check(t, "said", got, said{0, "created    mine\n", "hbrestd: warning: mine: f: m\n"})
	alike(t, "kept", w.drafts(), map[string]string{})
	shown := seen()
	if len(shown) != 3 {
		t.Fatalf("%d rounds", len(shown))
	}
	const left = " was left out: a wrapper holds no credential. Store it with `hbrestd secret set NAME --host api.example.com`, and write \"auth\": \"NAME\" into request.\n"
	want := top + "// The user name in the address" + left + "// The query parameter api_key" + left +
		"// What an agent chooses becomes {{name}} in url, query or body, with a property of that name in inputSchema.\n" + `{
  "schemaVersion": 1,
  "id": "example.orders-2",
  "name": "example.orders-2",
  "description": "",
  "request": {
    "method": "GET",
    "url": "https://api.example.com:8443/v1/orders/42",
    "query": {
      "q": "a b",
      "tag": [
        "x",
        "y"
      ]
    }
  },
  "inputSchema": {
    "type": "object",
    "properties": {}
  },
  "response": {
`
	if !strings.HasPrefix(shown[0], want) || !strings.Contains(shown[0], `"Title"`) {
		t.Errorf("the draft is\n%s\nwant\n%s", shown[0], want)
	}
	if all := strings.Join(shown, ""); strings.Contains(all, "c4n4ry") || strings.Contains(all, "pw") {
		t.Error("a credential is in the draft")
	}
	if want := "// Nothing is saved yet:\n// - wrapper.id: is missing (Give it an id.)\n" + editEnd + "{\n"; !strings.HasPrefix(shown[1], want) {
		t.Errorf("the second round shows\n%s", shown[1])
	}
	if want := "// Nothing is saved yet:\n// - there is a wrapper with the id \"example.orders\" already\n" + editEnd + "{\n"; !strings.HasPrefix(shown[2], want) {
		t.Errorf("the third round shows\n%s", shown[2])
	}
}

// A curl line becomes the draft without its credential.
func TestNewFromCurl(t *testing.T) {
	f := &fake{docs: docs()}
	w := newWorld(t, f)
	w.stdin = "curl -X POST 'https://api.example.com/v1/orders?dry=1' \\\n -H 'Authorization: Bearer c4n4ry-c4n4ry-c4n4ry' --json '{\"n\":12345678901234567890}'\n"
	seen := w.rounds(`sed -i 's/"description": ""/"description": "x"/; $s/$/ /' "$1"`)
	got := w.hb("wrapper", "new", "orders.create", "--curl", "-")
	check(t, "said", got, said{0, "created    orders.create\n", "hbrestd: paste the curl line, then press Ctrl-D on a line of its own\n"})
	draft := seen()[0]
	for _, want := range []string{
		"// Left out, because a wrapper holds no credential: header Authorization", "// Store it with `hbrestd secret set ",
		`  "id": "orders.create",`, `    "method": "POST",`, `"url": "https://api.example.com/v1/orders`, "12345678901234567890",
	} {
		if !strings.Contains(draft, want) {
			t.Errorf("the draft has no %s:\n%s", want, draft)
		}
	}
	if strings.Contains(draft, "c4n4ry") || strings.Contains(string(f.docs["orders.create"]), "c4n4ry") {
		t.Error("a credential is in the draft")
	}
	got = w.hb("wrapper", "new", "up", "--curl", "curl -F f=@x.png https://api.example.com/up")
	if got.Exit != 6 || !strings.Contains(got.ErrOut, "no wrapper can be made of this curl line: ") {
		t.Errorf("%+v", got)
	}
}

// A draft that nobody touched is kept: it was made of something.
func TestNewLeftAsItIs(t *testing.T) {
	w := newWorld(t, &fake{docs: docs()})
	w.rounds("true")
	check(t, "said", nameless(w.hb("wrapper", "new", "../x")), said{1, "", keptMessage + "hbrestd: error: the file was left as it is, and nothing was saved\n"})
	kept := w.drafts()["draft-.._x"]
	if !strings.HasPrefix(kept, "{\n") || !json.Valid([]byte(kept)) {
		t.Errorf("kept %q", w.drafts())
	}
}

func TestNewRefusals(t *testing.T) {
	w := newWorld(t, &fake{docs: docs(`{"id":"Taken"}`)})
	w.person = true
	for _, tc := range []struct {
		args string
		exit int
		says string
	}{
		{"taken", 1, `there is a wrapper with the id "taken" already`},
		{"--url api.example.com", 2, "--url is no address"},
		{"--url ftp://h/", 2, "--url is no address"},
		{"--url https:///x", 2, "--url is no address"},
		{"--url https://h/ --curl x", 2, "--url and --curl do not go together"},
		{"--curl wget", 6, "no curl command"},
		{"--from-sample -", 2, "stdin is the editor's"},
		{"--from-sample /nowhere/x", 1, "no such file"},
	} {
		got := w.hb(append([]string{"wrapper", "new"}, strings.Fields(tc.args)...)...)
		if got.Exit != tc.exit || !strings.Contains(got.ErrOut, tc.says) {
			t.Errorf("%s: %+v", tc.args, got)
		}
	}
}

func TestIDOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.example.com/v1/orders":                   "example.orders",
		"https://www.example.com/":                            "example",
		"https://example.co/a/b/2":                            "example.b",
		"https://localhost:8080/Items":                        "localhost.items",
		"https://192.0.2.1/x":                                 "api.x",
		"https://api.example.com/v2/%C3%A9t%C3%A9":            "example.t",
		"https://api.example.com/" + strings.Repeat("x", 200): "example." + strings.Repeat("x", 82),
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := idOf(u); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for in, want := range map[string][]string{
		"vi":                        {"vi"},
		"  code   --wait\t":         {"code", "--wait"},
		`"/a b/ed" -x 'y z' a"b c"`: {"/a b/ed", "-x", "y z", "ab c"},
		`C:\ed\ed.exe -n`:           {`C:\ed\ed.exe`, "-n"},
		`ed ""`:                     {"ed", ""},
		`"open`:                     nil,
		`""`:                        nil,
		" ":                         nil,
	} {
		got, err := splitWords(in)
		if (err != nil) != (want == nil) {
			t.Errorf("%q: %v", in, err)
		}
		alike(t, in, got, want)
	}
}
