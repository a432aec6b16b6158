//go:build unix

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

const (
	oneID = "0123456789abcdef0123456789abcdef"
	twoID = "ffffffffffffffffffffffffffffffff"
)

// someQuestions are one that waits and one that was allowed.
func someQuestions() []control.Approval {
	return []control.Approval{
		{
			ID: oneID, State: "pending", Policy: "always", Wrapper: "orders.create", Name: "Create\u202e order", Version: "saved",
			Method: "POST", URL: "https://api.example.com/orders?a=\u200b1", Headers: []string{"X-A: 1", "Content-Type: application/json"},
			Body: "{\"note\":\"a\u202eb\",\"n\":12345678901234567890,\"list\":[1]}", Credential: "orders-key", Pages: 3,
			Asked: "2026-12-01T08:00:00Z", Expires: "2026-12-01T08:10:00Z", Waiting: 2,
		},
		{
			ID: twoID, State: "allowed", Policy: "first", Wrapper: "notes", Name: "Notes", Version: "other",
			Method: "PUT", URL: "https://api.example.com/notes/7", Body: "line\x1b[2J one\nquestion  forged\u00a0\U000e0041", BodyType: "text", Pages: 1,
			Asked: "2026-12-01T08:00:00Z", Expires: "2026-12-01T08:10:00Z",
		},
	}
}

// here is a moment of the questions as a person's clock shows it.
func here(t *testing.T, moment string) string {
	t.Helper()
	at, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		t.Fatal(err)
	}
	return at.Local().Format("15:04:05")
}

// A question is shown whole, and nothing in it hides or passes for our words.
func TestApprovalShow(t *testing.T) {
	w := newWorld(t, &fake{questions: someQuestions()})
	until := here(t, "2026-12-01T08:10:00Z")
	check(t, "JSON", w.hb("approval", "show", oneID), said{0, `question      ` + oneID + `
state         pending, until ` + until + `; 2 calls wait now
wrapper       orders.create (Create order)
version       the saved wrapper
allow covers  this request, once; --trust covers every request of this version, for good
requests      up to 3, a page each; the first is shown
credential    orders-key

  POST https://api.example.com/orders?a=\u200b1
  X-A: 1
  Content-Type: application/json

  {
    "note": "a\u202eb",
    "n": 12345678901234567890,
    "list": [
      1
    ]
  }
`, ""})
	check(t, "text", w.hb("approval", "show", twoID), said{0, `question    ` + twoID + `
state       allowed, until ` + until + `
wrapper     notes (Notes)
version     not the saved wrapper: that has been edited, or this one was only tried; an answer holds for this one alone
credential  none

  PUT https://api.example.com/notes/7

  line\u001b[2J one
  question  forged\u00a0\U000e0041
`, ""})
	check(t, "unknown", w.hb("approval", "show", "nope"), said{5, "", "hbrestd: error: there is no question \"nope\"\nhbrestd: hint: Run `hbrestd approval list` to see what waits.\n"})
	check(t, "list", w.hb("approval", "list"), said{
		0, oneID + "\tpending\t" + until + "\torders.create\tPOST\thttps://api.example.com/orders?a=\\u200b1\n" +
			twoID + "\tallowed\t" + until + "\tnotes\tPUT\thttps://api.example.com/notes/7\n", "",
	})
	check(t, "nothing", newWorld(t, &fake{}).hb("approval", "list"), said{0, "", "hbrestd: nothing waits for an answer\n"})
}

// Each answer reaches the daemon as it was given, and says what it covers.
func TestApprovalAnswers(t *testing.T) {
	f := &fake{questions: someQuestions()}
	w := newWorld(t, f)
	const request = `POST https://api.example.com/orders?a=\u200b1 of wrapper orders.create`
	check(t, "allow", w.hb("approval", "allow", oneID), said{0, "allowed: " + request + "\n", ""})
	check(t, "trust", w.hb("approval", "allow", oneID, "--trust"), said{0, "allowed for good, with every request of this version of the wrapper: " + request + "\n", ""})
	check(t, "deny", w.hb("approval", "deny", oneID), said{0, "denied: " + request + "\n", ""})
	f.questions[0].Waiting = 0
	check(t, "later", w.hb("approval", "allow", oneID), said{0, "allowed once, until " + here(t, "2026-12-01T08:10:00Z") + ", when the same call comes again: " + request + "\n", ""})
	check(t, "first, edited", w.hb("approval", "allow", twoID), said{
		0, "allowed until the daemon stops, with every request of this version of the wrapper: PUT https://api.example.com/notes/7 of wrapper notes\n",
		"hbrestd: warning: the saved wrapper notes is another version; this answer does not hold for it\n",
	})
	check(t, "unknown", w.hb("approval", "deny", "nope"), said{5, "", "hbrestd: error: there is no question \"nope\"\nhbrestd: hint: Run `hbrestd approval list` to see what waits.\n"})
	want := []string{
		`answer {"id":"` + oneID + `","answer":"allow"}`, `answer {"id":"` + oneID + `","answer":"trust"}`, `answer {"id":"` + oneID + `","answer":"deny"}`,
		`answer {"id":"` + oneID + `","answer":"allow"}`, `answer {"id":"` + twoID + `","answer":"allow"}`,
	}
	if got := f.asked(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the daemon was asked %q", got)
	}
	for _, args := range [][]string{{"allow"}, {"deny", "a", "b"}, {"show"}, {"list", "x"}, {"deny", oneID, "--trust"}, {"policy", "a", "sometimes"}, {"policy", "a", "off", "b"}} {
		if got := w.hb(append([]string{"approval"}, args...)...); got.Exit != exitUsage {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestApprovalPolicyCommand(t *testing.T) {
	f := &fake{
		docs: nil,
		policies: control.ApprovalPolicies{
			Policy: "first", Origin: "stored", Variable: "HB_WRAP_APPROVAL",
			Wrappers: []control.WrapperApproval{
				{Wrapper: "broken", Holds: "always", Damaged: true},
				{Wrapper: "edited", Policy: "off", Holds: "first", Edited: true},
				{Wrapper: "Orders", Policy: "always", Holds: "always"},
				{Wrapper: "stale", Holds: "first", Stale: true},
				{Wrapper: "trusted", Holds: "first", Trusted: true},
			},
		},
	}
	w := newWorld(t, f)
	const all = "first (stored)\n\n" +
		"broken\talways\t\tits policy cannot be read: set it again\n" +
		"edited\tfirst\toff\tedited since its policy was set\n" +
		"Orders\talways\talways\t\n" +
		"stale\tfirst\t\ttrusted was another version than the saved one\n" +
		"trusted\ttrusted\t\tthe saved version is trusted: nobody is asked\n"
	for _, tt := range []struct {
		args []string
		want said
	}{
		{nil, said{0, all, ""}},
		{[]string{"always"}, said{0, all, ""}},
		{[]string{"orders"}, said{0, "Orders: always (its own)\n", ""}},
		{[]string{"edited"}, said{0, "edited: first (the daemon's, since it asks more than its own off); edited since its policy was set\n", ""}},
		{[]string{"trusted"}, said{0, "trusted: trusted (the daemon's); the saved version is trusted: nobody is asked\n", ""}},
		{[]string{"nobody"}, said{5, "", "hbrestd: error: no wrapper \"nobody\"; near: orders.list\nhbrestd: hint: `hbrestd wrapper list` shows the saved ids.\n"}},
		{[]string{"other", "default"}, said{0, "other: first (the daemon's)\n", ""}},
		{[]string{"off", "off"}, said{0, "off: first (the daemon's)\n", ""}}, // a wrapper may be called off
	} {
		check(t, strings.Join(tt.args, " "), w.hb(append([]string{"approval", "policy"}, tt.args...)...), tt.want)
	}
	want := []string{`policy {"policy":"always"}`, `policy {"wrapper":"other","policy":"default"}`, `policy {"wrapper":"off","policy":"off"}`}
	if got := f.asked(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the daemon was asked %q", got)
	}
	f.policies = control.ApprovalPolicies{Policy: "always", Origin: "environment", Variable: "HB_WRAP_APPROVAL", Wrappers: []control.WrapperApproval{}}
	check(t, "environment", w.hb("approval", "policy", "off"), said{0, "always (environment)\n", "hbrestd: warning: HB_WRAP_APPROVAL is set where the daemon was started, and wins\n"})
}

// Where an agent seems to run it, only a person's word in a window lets an
// answer or a policy through; they see what it is about.
func TestAgentsCannotAnswer(t *testing.T) {
	f := &fake{questions: someQuestions(), settings: []control.Setting{{Name: "approval", Value: "always", Origin: "stored", Default: "off"}}}
	verbs := [][]string{
		{"approval", "allow", oneID},
		{"approval", "allow", oneID, "--trust"},
		{"approval", "deny", oneID},
		{"approval", "policy", "off"},
		{"approval", "policy", "orders.create", "off"},
		{"config", "set", "approval", "off"},
		{"config", "unset", "approval"},
	}
	for _, marker := range someMarkers {
		w := newWorld(t, f)
		w.env[marker], w.stdin, w.person = "1", "y\n", true
		w.tty = "/dev/null"
		for _, args := range verbs {
			only := "change when a person is asked"
			if args[1] == "allow" || args[1] == "deny" {
				only = "answer for a person"
			}
			check(t, marker+" "+strings.Join(args, " "), w.hb(args...), said{
				4, "",
				"hbrestd: error: " + marker + " is set, so an agent seems to run this command, and only a person may " + only + "\n" +
					"hbrestd: hint: Run it in a terminal of your own. Where pinentry can show a window, a person can allow it there.\n",
			})
		}
		for _, args := range [][]string{{"approval", "list"}, {"approval", "show", oneID}, {"approval", "policy"}} {
			if got := w.hb(args...); got.Exit != 0 {
				t.Errorf("%s: looking is for everyone: %+v", marker, got)
			}
		}
	}
	if got := f.asked(); len(got) > 0 {
		t.Errorf("the daemon was asked %q", got)
	}

	w := newWorld(t, f)
	dir, log := w.script("\tCONFIRM) echo OK ;;")
	w.env["PATH"], w.env["DISPLAY"], w.env["CLAUDECODE"] = dir+":/usr/bin:/bin", ":7", "1"
	if got := w.hb("approval", "allow", oneID); got.Exit != 0 {
		t.Errorf("allowed in the window: %+v", got)
	}
	told := logged(t, log)
	for _, want := range []string{"let out the request POST https://api.example.com/orders?a=\\u200b1 of wrapper orders.create", `with the body {"note":"a\u202eb","n":12345678901234567890`} {
		if !strings.Contains(told, want) {
			t.Errorf("the window does not show %q:\n%s", want, told)
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain äß 漢字 😀":        "plain äß 漢字 😀",
		"a\tb":                 "a    b",
		"\x00\x1b\x7f\u0085":   `\u0000\u001b\u007f\u0085`,
		"\u202e\u2066\u200d":   `\u202e\u2066\u200d`,
		"\u00a0\u3000\u2003":   `\u00a0\u3000\u2003`,
		"\u2028\ufeff\u00ad":   `\u2028\ufeff\u00ad`,
		"\U000e0041\U000e0100": `\U000e0041\U000e0100`,
		"\u3164\u115f\uffa0":   `\u3164\u115f\uffa0`,
		"\u2800\u034f\u17b4":   `\u2800\u034f\u17b4`,
		"\U0001d159\U000e01f0": `\U0001d159\U000e01f0`,
		"\ufdd0\U0003ffff":     `\ufdd0\U0003ffff`, // of no character
		"\xff":                 `\ufffd`,
	} {
		if got := control.Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
