package cli

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func bearer(name string, hosts ...string) control.SecretInfo {
	return control.SecretInfo{
		Name: name, Kind: "static", Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}}, AllowedHosts: hosts,
		Updated: "2026-11-30T08:00:00Z",
	}
}

func someSecrets() control.SecretState {
	orders := bearer("orders-key", "api.example.com", "files.example.com")
	orders.UsedBy = []string{"orders.list", "orders.get"}
	return control.SecretState{Secrets: []control.SecretInfo{
		orders,
		{Name: "shop", Kind: "static", Headers: []control.SecretHeader{{Name: "X-App-Id"}, {Name: "X-App-Key", Prefix: "Key "}}, AllowedHosts: []string{"shop.example.com"}},
		{Name: "build", Kind: "basic", Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "Basic "}}, AllowedHosts: []string{"ci.example.com"}},
		{
			Name: "crm", Kind: "oauth2", Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}}, AllowedHosts: []string{"crm.example.com"},
			OAuth: &control.SecretOAuth{TokenURL: "https://login.example.com/token", ClientID: "7f3a", Scope: "orders.read", AuthStyle: "basic"},
		},
		{Name: "broken", Problem: "the record is damaged"},
	}}
}

const piped = "hbrestd: warning: the value comes through a pipe: whatever wrote it there may keep it, and others may have seen it\n"

// b64 is how a value travels.
func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// What is sent for each form of the command line; the values come from stdin.
func TestSecretSet(t *testing.T) {
	const created = "hbrestd: a wrapper uses it with \"auth\": \"new\" in its request\n"
	const kept = "hbrestd: kept the saved value\n"
	static := func(name, headers, hosts, values, more string) string {
		return `put {"name":"` + name + `","kind":"static","headers":[` + headers + `],"allowedHosts":[` + hosts + `]` + values + more + `,"stdin":true}`
	}
	value := func(vs ...string) string {
		for i, v := range vs {
			if vs[i] = "null"; v != "null" {
				vs[i] = `"` + b64(v) + `"`
			}
		}
		return `,"values":[` + strings.Join(vs, ",") + `]`
	}
	const auth = `{"name":"Authorization","prefix":"Bearer "}`
	for _, tc := range []struct {
		args, stdin string
		put         string
		want        said
	}{
		{
			"new --host a.example.com", "s3cret-value\n", static("new", auth, `"a.example.com"`, value("s3cret-value"), `,"create":true`),
			said{0, "saved new: static, Authorization, for a.example.com\n", created},
		},
		{
			"new --host a.example.com --host b.example.com,c.example.com --host a.example.com", "s3cret-value\r\n", static("new", auth, `"a.example.com","b.example.com","c.example.com"`, value("s3cret-value"), `,"create":true`),
			said{0, "saved new: static, Authorization, for a.example.com, b.example.com, c.example.com\n", created},
		},
		{
			"new --host h --header X-Key", " s3cret value ", static("new", `{"name":"X-Key"}`, `"h"`, value(" s3cret value "), `,"create":true`),
			said{0, "saved new: static, X-Key, for h\n", created},
		},
		{
			"new --host h --header Authorization:Token", "s3cret-value", static("new", `{"name":"Authorization","prefix":"Token "}`, `"h"`, value("s3cret-value"), `,"create":true`),
			said{0, "saved new: static, Authorization, for h\n", created},
		},
		{
			"new --host h --header X:key=", "s3cret-value", static("new", `{"name":"X","prefix":"key="}`, `"h"`, value("s3cret-value"), `,"create":true`),
			said{0, "saved new: static, X, for h\n", created},
		},
		{
			"new --host h --header X-Id --header X-Key:Key", "first-value\nsecond-value\n", static("new", `{"name":"X-Id"},{"name":"X-Key","prefix":"Key "}`, `"h"`, value("first-value", "second-value"), `,"create":true`),
			said{0, "saved new: static, X-Id and X-Key, for h\n", created},
		},
		{
			"new --host h --basic", "ada\ncorrect-horse\n", `put {"name":"new","kind":"basic","allowedHosts":["h"]` + value("ada", "correct-horse") + `,"create":true,"stdin":true}`,
			said{0, "saved new: basic, Authorization, for h\n", created},
		},
		{
			"new --host h --basic", "the-key-is-the-user\n\n", `put {"name":"new","kind":"basic","allowedHosts":["h"]` + value("the-key-is-the-user", "") + `,"create":true,"stdin":true}`,
			said{0, "saved new: basic, Authorization, for h\n", created},
		},
		{
			"new --host h --oauth2 --token-url https://t.example.com/x --client-id c --scope s --audience a --auth-style body", "client-s3cret\n",
			`put {"name":"new","kind":"oauth2","allowedHosts":["h"],"oauth":{"tokenUrl":"https://t.example.com/x","clientId":"c","scope":"s","audience":"a","authStyle":"body"}` + value("client-s3cret") + `,"create":true,"stdin":true}`,
			said{0, "saved new: oauth2, Authorization, for h\n", created},
		},

		// Of one that exists, what is not given stays.
		{
			"orders-key", "fresh-value\n", static("orders-key", auth, `"api.example.com","files.example.com"`, value("fresh-value"), ""),
			said{0, "saved orders-key: static, Authorization, for api.example.com, files.example.com\n", ""},
		},
		{
			"orders-key --host other.example.com", "\n", static("orders-key", auth, `"other.example.com"`, value("null"), ""),
			said{0, "saved orders-key: static, Authorization, for other.example.com\n", kept},
		},
		{
			"orders-key --header X-Key", "", static("orders-key", `{"name":"X-Key"}`, `"api.example.com","files.example.com"`, value("null"), ""),
			said{0, "saved orders-key: static, X-Key, for api.example.com, files.example.com\n", kept},
		},
		{
			"shop", "\nsecond-new\n", static("shop", `{"name":"X-App-Id"},{"name":"X-App-Key","prefix":"Key "}`, `"shop.example.com"`, value("null", "second-new"), ""),
			said{0, "saved shop: static, X-App-Id and X-App-Key, for shop.example.com\n", kept},
		},
		{
			"crm --scope orders.write --auth-style body", "", `put {"name":"crm","kind":"oauth2","headers":[` + auth + `],"allowedHosts":["crm.example.com"],"oauth":{"tokenUrl":"https://login.example.com/token","clientId":"7f3a","scope":"orders.write","authStyle":"body"}` + value("null") + `,"stdin":true}`,
			said{0, "saved crm: oauth2, Authorization, for crm.example.com\n", kept},
		},
		{
			"crm --scope=", "new-client-secret", `put {"name":"crm","kind":"oauth2","headers":[` + auth + `],"allowedHosts":["crm.example.com"],"oauth":{"tokenUrl":"https://login.example.com/token","clientId":"7f3a","authStyle":"basic"}` + value("new-client-secret") + `,"stdin":true}`,
			said{0, "saved crm: oauth2, Authorization, for crm.example.com\n", ""},
		},
		{
			"orders-key --basic", "ada\ncorrect-horse", `put {"name":"orders-key","kind":"basic","allowedHosts":["api.example.com","files.example.com"]` + value("ada", "correct-horse") + `,"stdin":true}`,
			said{0, "saved orders-key: basic, Authorization, for api.example.com, files.example.com\n", ""},
		},
		{
			"broken --host h", "a-fresh-value", static("broken", auth, `"h"`, value("a-fresh-value"), ""),
			said{0, "saved broken: static, Authorization, for h\n", ""},
		},
	} {
		f := &fake{secrets: someSecrets()}
		w := newWorld(t, f)
		w.stdin = tc.stdin
		got := w.hb(append([]string{"secret", "set", "--stdin"}, strings.Fields(tc.args)...)...)
		tc.want.ErrOut = piped + tc.want.ErrOut
		check(t, tc.args, got, tc.want)
		if calls := strings.Join(f.asked(), "\n"); calls != tc.put {
			t.Errorf("%s:\n got %s\nwant %s", tc.args, calls, tc.put)
		}
	}
}

// What is refused, before the daemon is asked to change anything.
func TestSecretSetRefusals(t *testing.T) {
	const hint = "hbrestd: hint: `hbrestd secret set --help` shows how it is used.\n"
	misused := func(text string) said { return said{2, "", "hbrestd: error: " + text + "\n" + hint} }
	const oauth = "new --host h --oauth2"
	for _, tc := range []struct {
		args, stdin string
		want        said
	}{
		{"", "", misused("the name of a credential is missing")},
		{"new", "", misused("--host is missing: name each host that may be sent new")},
		{"broken", "", misused("--host is missing: name each host that may be sent broken")},
		{"new --host h --basic --oauth2", "", misused("--basic and --oauth2 are different kinds; give one")},
		{"new --host h --basic --header X", "", misused("--basic is always sent in the Authorization header; leave --header out")},
		{"build --header X", "", misused("build is of kind basic, which is always sent in the Authorization header; remove it first to make it one of another kind")},
		{"crm --header X --header Y", "", misused("crm is of kind oauth2, whose token is sent in one header; give --header once")},
		{oauth + " --header X --header Y", "", misused("a token is sent in one header; give --header once")},
		{"new --host h --scope s", "", misused("--scope is for a credential of kind oauth2; give --oauth2")},
		{"new --host h --basic --client-id s", "", misused("--client-id is for --oauth2, not for --basic")},
		{oauth, "", misused("--token-url is missing")},
		{oauth + " --token-url u", "", misused("--client-id is missing")},
		{oauth + " --token-url u --client-id c", "", misused("--auth-style is missing: body or basic, as the API's documentation says; a guess would send the secret twice")},
		{"crm --auth-style header", "", misused("--auth-style must be body or basic")},
		{"crm --client-id=", "", misused("--client-id is missing")},
		{"new --host h --header :Bearer", "", misused("--header is NAME or NAME:PREFIX; the name is missing")},
		{"new --host h", "", said{6, "", piped + "hbrestd: error: no value for Authorization was given; nothing was changed\n"}},
		{"new --host h", "\r\n", said{6, "", piped + "hbrestd: error: no value for Authorization was given; nothing was changed\n"}},
		{"new --host h --basic", "\nonly-the-password\n", said{6, "", piped + "hbrestd: error: no user name was given; nothing was changed\n"}},
		{"new --host h --header X --header Y", "a-value\n", said{2, "", piped + "hbrestd: error: stdin has 1 line, and the credential has 2 values: give one line for each\n" + hint}},
		{"new --host h", "two\nlines\n", said{2, "", piped + "hbrestd: error: stdin has 2 lines, and the credential has 1 value: give one line for each\n" + hint}},
		{"new --host h", strings.Repeat("x", 64<<10+1), said{1, "", piped + "hbrestd: error: the value has over 64 KiB\n"}},
		{"orders-key", "\n", said{1, "", piped + "hbrestd: error: nothing was changed\n"}},
	} {
		f := &fake{secrets: someSecrets()}
		w := newWorld(t, f)
		w.stdin = tc.stdin
		check(t, tc.args, w.hb(append([]string{"secret", "set", "--stdin"}, strings.Fields(tc.args)...)...), tc.want)
		if calls := f.asked(); len(calls) > 0 {
			t.Errorf("%s: the daemon was asked %q", tc.args, calls)
		}
	}
}

// A value that somebody put onto the command line is repeated nowhere.
func TestArgumentsAreNotRepeated(t *testing.T) {
	const canary = "c4n4ry-7f3a9b2e"
	f := &fake{secrets: someSecrets()}
	for _, args := range [][]string{
		{"set", "new", canary},
		{"set", "new", "--value=" + canary},
		{"set", "new", "-p" + canary},
		{"set", "new", "-y" + canary},
		{"set", "new", "--stdin=" + canary},
		{"set", "new", "--host", "h", "--header", "X-Key:" + canary},
		{"set", "new", "--host", "h", "--header", "X-Key: " + canary},
		{"set", "new", "--host", "h", "--header", "Authorization: Bearer " + canary},
		{"set", "new", "--host", "h", "--header", "X-Key:abcdefghijklmnopqrstuvwxyz" + canary},
		{"set", "new", "--host", "h", "--header", "X-Key=" + canary},
		{"set", "new", "--host", "h", "--header", "Authorization Bearer " + canary},
		{"set", "new", "--host", "h", "--header", "X-Key\t" + canary + ":Bearer"},
		{"rotate", "orders-key", canary},
		{"rotate", "orders-key", "--yes=" + canary},
		{"bind", "orders-key", canary, "--host", "h"},
		{"test", "orders-key", canary, "--wrapper", "w"},
		{"show", "orders-key", canary},
	} {
		w := newWorld(t, f)
		w.stdin = "a-good-value\n"
		got := w.hb(append([]string{"secret"}, args...)...)
		if got.Exit != 2 || strings.Contains(got.Out+got.ErrOut, canary) || strings.Contains(got.ErrOut, "7f3a") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if calls := f.asked(); len(calls) > 0 {
		t.Errorf("the daemon was asked %q", calls)
	}
}

func TestParseHeader(t *testing.T) {
	for text, want := range map[string]control.SecretHeader{
		"X-Key":                                      {Name: "X-Key"},
		"X-Key:":                                     {Name: "X-Key"},
		"Authorization:Bearer":                       {Name: "Authorization", Prefix: "Bearer "},
		"Authorization: Bearer ":                     {Name: "Authorization", Prefix: "Bearer "},
		"Authorization:Token token=":                 {Name: "Authorization", Prefix: "Token token="},
		"Authorization:GoogleLogin auth=":            {Name: "Authorization", Prefix: "GoogleLogin auth="},
		"Authorization:SharedAccessSignature":        {Name: "Authorization", Prefix: "SharedAccessSignature "},
		"Authorization:Klaviyo-API-Key":              {Name: "Authorization", Prefix: "Klaviyo-API-Key "},
		"Authorization:Zoho-oauthtoken":              {Name: "Authorization", Prefix: "Zoho-oauthtoken "},
		"X-Signature:v1:":                            {Name: "X-Signature", Prefix: "v1:"},
		"Authorization:Basic ":                       {Name: "Authorization", Prefix: "Basic "},
		"X:" + strings.Repeat("a", 24):               {Name: "X", Prefix: strings.Repeat("a", 24) + " "},
		"X:" + strings.Repeat("a", 10) + "1":         {Name: "X", Prefix: strings.Repeat("a", 10) + "1 "},
		"X:" + strings.Repeat("word ", 10) + "final": {Name: "X", Prefix: strings.Repeat("word ", 10) + "final "},
	} {
		if got, err := parseHeader(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"X:" + strings.Repeat("a", 25), "X:" + strings.Repeat("a", 11) + "1", "X: Bearer 0123456789abcdef"} {
		if got, err := parseHeader(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestSecretList(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	check(t, "for a program", w.hb("secret", "list"), said{0, strings.Join([]string{
		"orders-key\tstatic\tapi.example.com, files.example.com\tAuthorization\torders.list, orders.get\t2026-11-30T08:00:00Z",
		"shop\tstatic\tshop.example.com\tX-App-Id, X-App-Key\t\t",
		"build\tbasic\tci.example.com\tAuthorization\t\t",
		"crm\toauth2\tcrm.example.com\tAuthorization\t\t",
		"broken\tdamaged: the record is damaged\t\t\t\t",
	}, "\n") + "\n", ""})
	w.width = 200
	if got := w.hb("secret", "list"); !strings.HasPrefix(got.Out, "NAME        KIND  ") || !strings.Contains(got.Out, "HOSTS                               HEADERS              USED BY                  UPDATED\n") {
		t.Errorf("%s", got.Out)
	}

	f.secrets = control.SecretState{State: "locked", Reason: "the login keyring is locked", Fix: "Unlock it: log in on the desktop.", Detail: "Cannot get secret of a locked object", Secrets: []control.SecretInfo{bearer("k", "h")}}
	check(t, "locked", w.hb("secret", "list"), said{
		0, "NAME  KIND    HOSTS  HEADERS        USED BY  UPDATED\nk     static  h      Authorization  -        2026-11-30T08:00:00Z\n",
		"hbrestd: keyring: the login keyring is locked (Cannot get secret of a locked object)\nhbrestd: hint: Unlock it: log in on the desktop.\n",
	})
	check(t, "JSON", w.hb("secret", "list", "--json"), said{0, `{
  "state": "locked",
  "reason": "the login keyring is locked",
  "fix": "Unlock it: log in on the desktop.",
  "detail": "Cannot get secret of a locked object",
  "secrets": [
    {
      "name": "k",
      "kind": "static",
      "headers": [
        {
          "name": "Authorization",
          "prefix": "Bearer "
        }
      ],
      "allowedHosts": [
        "h"
      ],
      "updated": "2026-11-30T08:00:00Z"
    }
  ]
}
`, "hbrestd: keyring: the login keyring is locked (Cannot get secret of a locked object)\nhbrestd: hint: Unlock it: log in on the desktop.\n"})
	f.secrets = control.SecretState{State: "none", Reason: "there is no session bus"}
	check(t, "none", w.hb("secret", "list"), said{0, "", "hbrestd: no credential is stored; `hbrestd secret set NAME --host HOST` stores one\nhbrestd: keyring: there is no session bus\n"})
	f.secrets = control.SecretState{State: "not asked", Reason: "the keyring is asked when a credential is first used"}
	check(t, "not asked", w.hb("secret", "list"), said{0, "", "hbrestd: no credential is stored; `hbrestd secret set NAME --host HOST` stores one\n"})
}

func TestSecretShow(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	check(t, "static", w.hb("secret", "show", "orders-key"), said{0, `name     orders-key
kind     static
hosts    api.example.com, files.example.com
header   Authorization: Bearer ...
used by  orders.list, orders.get
updated  2026-11-30T08:00:00Z
`, ""})
	check(t, "oauth2", w.hb("secret", "show", "crm"), said{0, `name        crm
kind        oauth2
hosts       crm.example.com
header      Authorization: Bearer ...
token URL   https://login.example.com/token
client id   7f3a
scope       orders.read
auth style  basic
`, ""})
	check(t, "damaged", w.hb("secret", "show", "broken"), said{0, "name     broken\ndamaged  the record is damaged\n", ""})
	check(t, "JSON", w.hb("secret", "show", "build", "--json"), said{0, `{
  "name": "build",
  "kind": "basic",
  "headers": [
    {
      "name": "Authorization",
      "prefix": "Basic "
    }
  ],
  "allowedHosts": [
    "ci.example.com"
  ]
}
`, ""})
	missing := said{4, "", "hbrestd: error: no credential \"x\"\nhbrestd: hint: There are orders-key, shop, build, crm, broken.\n"}
	check(t, "missing", w.hb("secret", "show", "x"), missing)
	check(t, "rotate missing", w.hb("secret", "rotate", "x"), missing)
	check(t, "rm missing", w.hb("secret", "rm", "orders-key", "x"), missing)
	f.secrets.Secrets = nil
	check(t, "none", w.hb("secret", "show", "x"), said{4, "", "hbrestd: error: no credential \"x\"\nhbrestd: hint: `hbrestd secret list` shows the names; `hbrestd secret set NAME --host HOST` stores one.\n"})
	if calls := f.asked(); len(calls) > 0 {
		t.Errorf("the daemon was asked %q", calls)
	}
}

// A person does not type a value that cannot be saved.
func TestUnusableKeyring(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	for state, reason := range map[string]string{"locked": "the keyring is locked", "none": "there is no keyring", "key missing": "the keyring has no key"} {
		f.secrets.State, f.secrets.Reason, f.secrets.Fix = state, reason, "Do this."
		want := said{4, "", "hbrestd: error: credentials cannot be used now: " + reason + "\nhbrestd: hint: Do this.\n"}
		check(t, "set", w.hb("secret", "set", "new", "--host", "h"), want)
		check(t, "rotate", w.hb("secret", "rotate", "orders-key", "--stdin"), want)
	}
	if calls := f.asked(); len(calls) > 0 {
		t.Errorf("the daemon was asked %q", calls)
	}
}

func TestSecretBind(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	check(t, "bind", w.hb("secret", "bind", "shop", "--host", "a", "--host", "b,a"), said{0, "bound shop: static, X-App-Id and X-App-Key, for shop.example.com, a, b\n", ""})
	check(t, "unbind", w.hb("secret", "unbind", "orders-key", "--host", "files.example.com"), said{0, "unbound orders-key: static, Authorization, for api.example.com\n", ""})
	check(t, "JSON", w.hb("secret", "unbind", "build", "--host", "x", "--json"), said{0, `{
  "ok": true,
  "secret": {
    "name": "build",
    "kind": "basic",
    "headers": [
      {
        "name": "Authorization",
        "prefix": "Basic "
      }
    ],
    "allowedHosts": [
      "ci.example.com"
    ]
  }
}
`, ""})
	want := []string{
		`bind {"name":"shop","add":["a","b"]}`, `bind {"name":"orders-key","remove":["files.example.com"]}`, `bind {"name":"build","remove":["x"]}`,
	}
	if got := f.asked(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked %q, want %q", got, want)
	}
	check(t, "no host", w.hb("secret", "bind", "shop"), said{2, "", "hbrestd: error: --host is missing\nhbrestd: hint: `hbrestd secret bind --help` shows how it is used.\n"})
	check(t, "missing", w.hb("secret", "bind", "x", "--host", "h"), said{4, "", "hbrestd: error: no credential \"x\"\nhbrestd: hint: `hbrestd secret list` shows the names; `hbrestd secret set NAME --host HOST` stores one.\n"})
}

func TestSecretRotate(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	w.stdin = "a-new-value\n"
	check(t, "static", w.hb("secret", "rotate", "orders-key", "--stdin"), said{0, "rotated orders-key: static, Authorization, for api.example.com, files.example.com\n", piped})
	check(t, "oauth2", w.hb("secret", "rotate", "crm", "--stdin"), said{0, "rotated crm: oauth2, Authorization, for crm.example.com\n", piped})
	w.stdin = "\nthe-password\n"
	check(t, "half of Basic", w.hb("secret", "rotate", "build", "--stdin"), said{0, "rotated build: basic, Authorization, for ci.example.com\n", piped})
	want := []string{
		`put {"name":"orders-key","kind":"static","headers":[{"name":"Authorization","prefix":"Bearer "}],"allowedHosts":["api.example.com","files.example.com"],"values":["` + b64("a-new-value") + `"],"stdin":true}`,
		`put {"name":"crm","kind":"oauth2","headers":[{"name":"Authorization","prefix":"Bearer "}],"allowedHosts":["crm.example.com"],"oauth":{"tokenUrl":"https://login.example.com/token","clientId":"7f3a","scope":"orders.read","authStyle":"basic"},"values":["` + b64("a-new-value") + `"],"stdin":true}`,
		`put {"name":"build","kind":"basic","headers":[{"name":"Authorization","prefix":"Basic "}],"allowedHosts":["ci.example.com"],"values":[null,"` + b64("the-password") + `"],"stdin":true}`,
	}
	if got := f.asked(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked %q, want %q", got, want)
	}
	w.stdin = ""
	check(t, "nothing", w.hb("secret", "rotate", "orders-key", "--stdin"), said{6, "", piped + "hbrestd: error: no value for Authorization was given; nothing was changed\n"})
	check(t, "nothing, of two", w.hb("secret", "rotate", "build", "--stdin"), said{1, "", piped + "hbrestd: error: nothing was changed\n"})
	check(t, "damaged", w.hb("secret", "rotate", "broken", "--stdin"), said{4, "", "hbrestd: error: the record of broken cannot be read: the record is damaged\nhbrestd: hint: Set it again with `hbrestd secret set NAME --host HOST`.\n"})
	if got := f.asked(); len(got) != len(want) {
		t.Errorf("asked %q", got[len(want):])
	}
}

func TestSecretTest(t *testing.T) {
	f := &fake{secrets: someSecrets(), run: func(*api.RunRequest) (*api.RunResult, error) { return theRun(), nil }}
	w := newWorld(t, f)
	check(t, "works", w.hb("secret", "test", "orders-key", "--wrapper", "typed"), said{0, "orders-key works: typed answered with 200 in 42 ms\n", ""})
	if got := f.asked(); len(got) != 1 || got[0] != `try {"name":"orders-key","wrapper":"typed"}` {
		t.Errorf("asked %q", got)
	}
	if got := w.hb("secret", "test", "orders-key", "--wrapper", "typed", "--json"); got.Exit != 0 || !strings.HasPrefix(got.Out, "{\n  \"ok\": true,\n  \"status\": 200,") {
		t.Errorf("%+v", got)
	}
	f.run = func(*api.RunRequest) (*api.RunResult, error) {
		return nil, fault.New("AUTH_REQUIRED", `the API rejected credential "orders-key"`).With(fault.Status(401), fault.Hint("Set it again."))
	}
	check(t, "rejected", w.hb("secret", "test", "orders-key", "--wrapper", "typed"), said{4, "", "hbrestd: error: the API rejected credential \"orders-key\"\nhbrestd: hint: Set it again.\n"})
	f.run = func(*api.RunRequest) (*api.RunResult, error) {
		return nil, fault.New("OAUTH_TOKEN_FAILED", "the token endpoint answered 400: invalid_client").With(fault.Hint("h"))
	}
	check(t, "no token", w.hb("secret", "test", "crm", "--wrapper", "typed"), said{4, "", "hbrestd: error: the token endpoint answered 400: invalid_client\nhbrestd: hint: h\n"})
	check(t, "no wrapper", w.hb("secret", "test", "crm"), said{2, "", "hbrestd: error: --wrapper is missing: the id of a saved wrapper that reads and names crm\nhbrestd: hint: `hbrestd secret test --help` shows how it is used.\n"})
}

func TestSecretRm(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	w.person, w.stdin = true, "n\n"
	check(t, "no", w.hb("secret", "rm", "orders-key"), said{1, "", "Remove orders-key? orders-key is used by orders.list, orders.get. [y/N] hbrestd: error: nothing was changed\n"})
	w.stdin = "y\n"
	check(t, "yes", w.hb("secret", "rm", "shop", "build", "shop"), said{0, "removed shop\nremoved build\n", "Remove shop, build? [y/N] "})
	check(t, "not asked", w.hb("secret", "rm", "broken", "--yes", "--json"), said{0, "{\n  \"ok\": true,\n  \"dryRun\": false,\n  \"removed\": [\n    \"broken\"\n  ]\n}\n", ""})
	w.person = false
	check(t, "a script", w.hb("secret", "rm", "crm"), said{0, "removed crm\n", ""})
	want := `delete {"name":"shop"} delete {"name":"build"} delete {"name":"broken"} delete {"name":"crm"}`
	if got := strings.Join(f.asked(), " "); got != want {
		t.Errorf("asked %s", got)
	}
}

// Every failure of the daemon comes through with its code's exit, and no value.
func TestSecretFailures(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	w.stdin = "sh0rt-canary\n"
	details := fault.Details([]fault.Detail{{Field: "value[0]", Code: "TOO_SHORT", Message: "a value under 8 characters cannot be hidden"}})
	for _, tc := range []struct {
		fail error
		exit int
		says string
	}{
		{fault.New("SECRET_INVALID", "value[0]: a value under 8 characters cannot be hidden").With(details), 6, "error: value for Authorization: a value under 8 characters cannot be hidden\nhbrestd: hint: Correct what is named, and run the command again.\n"},
		{fault.New("SECRET_LOCKED", "credentials cannot be used now"), 4, "credentials cannot be used now"},
		{fault.New("POLICY_PRIVATE_ADDRESS", "the token URL is private").With(fault.Field("oauth.tokenUrl")), 7, "the token URL is private"},
		{fault.New("STORE_FAILED", "disk full"), 1, "disk full"},
		{fault.New("SHUTTING_DOWN", "hbrestd is stopping"), 3, "stopping"},
		{errors.New("open /x: sh0rt-canary"), 1, "internal fault "},
	} {
		f.failPut = tc.fail
		got := w.hb("secret", "set", "new", "--host", "h", "--stdin")
		if got.Exit != tc.exit || got.Out != "" || !strings.Contains(got.ErrOut, tc.says) || strings.Contains(got.ErrOut, "canary") {
			t.Errorf("%v: %+v", tc.fail, got)
		}
	}
	got := newWorld(t, nil).hb("secret", "list")
	if got.Exit != 3 {
		t.Errorf("no daemon: %+v", got)
	}
}

// A refusal names the flags and the prompts, not the members of the call.
func TestRefusalsNameFlags(t *testing.T) {
	refuse := func(field string) *fault.Error {
		return fault.New("SECRET_INVALID", "%s: is wrong", field).With(fault.Details([]fault.Detail{{Field: field, Code: "PATTERN", Message: "is wrong"}}))
	}
	const two = "set shop --stdin --host a.example.com --host b.example.com"
	const oauth = "set crm --stdin --scope s"
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	for _, tc := range []struct{ args, stdin, field, want string }{
		{"set new --stdin --host h", "a-good-value\n", "value[0]", "value for Authorization"},
		{"rotate orders-key --stdin", "a-good-value\n", "value[0]", "value for Authorization"},
		{two, "a-value-1\na-value-2\n", "value[1]", "value for X-App-Key (line 2 of stdin)"},
		{"rotate build --stdin", "ada\ncorrect-horse\n", "value[1]", "password (line 2 of stdin)"},
		{"rotate crm --stdin", "a-good-value\n", "value[0]", "client secret"},
		{two, "a-value-1\na-value-2\n", "value", "the value"},
		{two, "a-value-1\na-value-2\n", "allowedHosts[1]", "--host b.example.com"},
		{two, "a-value-1\na-value-2\n", "allowedHosts[7]", "--host"},
		{two, "a-value-1\na-value-2\n", "allowedHosts", "--host"},
		{two, "a-value-1\na-value-2\n", "headers[1]", "--header X-App-Key"},
		{two, "a-value-1\na-value-2\n", "headers", "--header"},
		{two, "a-value-1\na-value-2\n", "name", "NAME"},
		{oauth, "", "oauth", "--oauth2"},
		{oauth, "", "oauth.tokenUrl", "--token-url"},
		{oauth, "", "oauth.clientId", "--client-id"},
		{oauth, "", "oauth.scope", "--scope"},
		{oauth, "", "oauth.audience", "--audience"},
		{oauth, "", "oauth.authStyle", "--auth-style"},
	} {
		f.failPut, w.stdin = refuse(tc.field), tc.stdin
		args := append([]string{"secret"}, strings.Fields(tc.args)...)
		check(t, tc.args+" "+tc.field, w.hb(args...), said{6, "", piped + "hbrestd: error: " + tc.want + ": is wrong\nhbrestd: hint: Correct what is named, and run the command again.\n"})
		if got := w.hb(append(args, "--json")...); strings.Contains(got.ErrOut, `"`+tc.field+`"`) || !strings.Contains(got.ErrOut, `"field": "`+tc.want+`"`) {
			t.Errorf("--json: %s", got.ErrOut)
		}
	}
	// Several problems are all named, once each.
	f.failPut = fault.New("SECRET_INVALID", "value[0]: too short").With(fault.Details([]fault.Detail{
		{Field: "value[0]", Code: "TOO_SHORT", Message: "too short"}, {Field: "allowedHosts[0]", Code: "URL_INVALID", Message: "no host"},
	}))
	w.stdin = "a-good-value\n"
	check(t, "two", w.hb("secret", "set", "new", "--stdin", "--host", "h"), said{6, "", piped + "hbrestd: error: nothing was changed: there are 2 problems\n" +
		"  value for Authorization: too short\n  --host h: no host\nhbrestd: hint: Correct what is named, and run the command again.\n"})
	f.failPut, f.fail = nil, fault.New("SECRET_INVALID", "credential \"shop\" would have no host left; nothing was changed").
		With(fault.Field("hosts"), fault.Hint("Remove it with `hbrestd secret rm shop`, or bind it to another host first."))
	check(t, "the last host", w.hb("secret", "unbind", "shop", "--host", "shop.example.com"), said{6, "", "hbrestd: error: credential \"shop\" would have no host left; nothing was changed\n" +
		"hbrestd: hint: Remove it with `hbrestd secret rm shop`, or bind it to another host first.\n"})
}

// What is wrong whatever the value is, is said before one is asked for, read, or
// waited for.
func TestRefusedBeforeTheValue(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	f.failCheck = fault.New("SECRET_INVALID", "allowedHosts[0]: no host").With(fault.Details([]fault.Detail{{Field: "allowedHosts[0]", Code: "URL_INVALID", Message: "no host"}}))
	w := newWorld(t, f)
	w.stdin = "a-good-value\n"
	want := said{6, "", "hbrestd: error: --host h:1: no host\nhbrestd: hint: Correct what is named, and run the command again.\n"}
	check(t, "stdin", w.hb("secret", "set", "new", "--stdin", "--host", "h:1"), want)
	check(t, "terminal", w.hb("secret", "set", "new", "--host", "h:1"), want)
	f.failCheck = fault.New("SECRET_CHANGED", "credential %q was changed", "shop").With(fault.Field("name"))
	if got := w.hb("secret", "rotate", "shop"); got.Exit != 1 || !strings.Contains(got.ErrOut, "was changed") {
		t.Errorf("%+v", got)
	}
	if got := f.asked(); len(got) > 0 {
		t.Errorf("asked %q", got)
	}
}

// What was shown when a command began is what it changes.
func TestChangesWhatWasSeen(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	f.secrets.Secrets[0].Seal = "0123456789abcdef"
	w := newWorld(t, f)
	for _, args := range [][]string{{"set", "orders-key", "--stdin"}, {"rotate", "orders-key", "--stdin"}} {
		w.stdin = "a-new-value\n"
		if got := w.hb(append([]string{"secret"}, args...)...); got.Exit != 0 {
			t.Errorf("%+v", got)
		}
	}
	for _, call := range f.asked() {
		if !strings.Contains(call, `"seen":"0123456789abcdef"`) || strings.Contains(call, `"create"`) {
			t.Errorf("asked %s", call)
		}
	}
	f.failPut = fault.New("SECRET_CHANGED", "credential %q was changed by another command meanwhile; this one has changed nothing", "orders-key").With(fault.Field("name"))
	check(t, "changed", w.hb("secret", "rotate", "orders-key", "--stdin"), said{1, "", piped +
		"hbrestd: error: credential \"orders-key\" was changed by another command meanwhile; this one has changed nothing\n" +
		"hbrestd: hint: Look at it with `hbrestd secret show NAME`, then run the command again.\n"})
}

// The daemon asks before a client secret may go to another site than the hosts.
func TestTokenHost(t *testing.T) {
	const args = "secret set new --stdin --host api.example.com --oauth2 --token-url https://login.other.net/t --client-id c --auth-style body"
	const ask = "the token URL login.other.net is on another site than api.example.com"
	f := &fake{ask: ask}
	w := newWorld(t, f)
	w.stdin = "client-s3cret\n"
	check(t, "nobody there", w.hb(strings.Fields(args)...), said{
		4, "",
		"hbrestd: error: " + ask + "; somebody must say yes to that, and nobody can be asked: there is no terminal\n" +
			"hbrestd: hint: Run it in a terminal, or say yes beforehand with --yes.\n",
	})
	if got := f.asked(); len(got) > 0 {
		t.Errorf("asked %q", got)
	}
	got := w.hb(strings.Fields(args + " --yes")...)
	check(t, "--yes", got, said{0, "saved new: oauth2, Authorization, for api.example.com\n", piped + "hbrestd: a wrapper uses it with \"auth\": \"new\" in its request\n"})
	put := `put {"name":"new","kind":"oauth2","allowedHosts":["api.example.com"],"oauth":{"tokenUrl":"https://login.other.net/t","clientId":"c","authStyle":"body"},"values":["` + b64("client-s3cret") + `"],"create":true,`
	if got := f.asked(); len(got) != 1 || got[0] != put+`"confirm":["token-host"],"stdin":true}` {
		t.Errorf("asked %q", got)
	}
	f.secrets = someSecrets()
	check(t, "bind --yes", w.hb("secret", "bind", "crm", "--host", "a", "--yes"), said{0, "bound crm: oauth2, Authorization, for crm.example.com, a\n", ""})
}

func TestCompleteSecrets(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	got := w.hb("__complete", "secret", "rotate", "")
	if !strings.HasPrefix(got.Out, "orders-key\tapi.example.com, files.example.com\nshop\tshop.example.com\nbuild\t") {
		t.Errorf("%s", got.Out)
	}
}
