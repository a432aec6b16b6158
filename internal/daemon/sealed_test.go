package daemon_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// tamper rewrites the sealed record of a credential in a stopped store, as
// anybody can who can write the file: with the checksum that the store keeps of
// each record, which has no key, or without.
func tamper(t *testing.T, path, name string, sum bool, edit func(record map[string]any)) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("sealed"))
		old := b.Get([]byte(name))
		if len(old) < 33 {
			return fmt.Errorf("no record of %s", name)
		}
		var r map[string]any
		d := json.NewDecoder(bytes.NewReader(old[33:]))
		d.UseNumber()
		if err := d.Decode(&r); err != nil {
			return err
		}
		edit(r)
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		h := sha256.Sum256(slices.Concat([]byte("hbrestd store record\x00"), old[:1], []byte("sealed\x00"+name+"\x00"), text))
		if !sum {
			h = [32]byte(old[1:33])
		}
		return b.Put([]byte(name), slices.Concat(old[:1], h[:], text))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever edits the open part of a record in the database gets nothing opened:
// the sealed value knows what a person decided.
func TestEditedBindings(t *testing.T) {
	t.Parallel()
	thief := newParty(t, nil)
	mint := newParty(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"tok-0123456789","expires_in":3600}`)
	})
	list := func(hosts ...any) []any { return hosts }
	for _, c := range []struct {
		name, auth string
		edit       func(r map[string]any)
	}{
		{"another host", "key", func(r map[string]any) { r["allowedHosts"] = list("thief.test") }},
		{"one more host", "key", func(r map[string]any) { r["allowedHosts"] = list("a.test", "thief.test") }},
		{"another header", "key", func(r map[string]any) { r["headers"].([]any)[0].(map[string]any)["name"] = "X-Other" }},
		{"another prefix", "key", func(r map[string]any) { r["headers"].([]any)[0].(map[string]any)["prefix"] = "Token " }},
		{"another kind", "key", func(r map[string]any) { r["kind"] = "basic" }},
		{"another time", "key", func(r map[string]any) { r["updated"] = "2020-01-01T00:00:00Z" }},
		{"another key id", "key", func(r map[string]any) { r["keyId"] = "0011223344556677" }},
		{"another version", "key", func(r map[string]any) { r["version"] = json.Number("2") }},
		{"one more member", "key", func(r map[string]any) { r["extra"] = true }},
		{"a flipped bit", "key", func(r map[string]any) {
			b, _ := base64.StdEncoding.DecodeString(r["sealed"].(string))
			b[len(b)/2] ^= 1
			r["sealed"] = b
		}},
		{"another token URL", "oauth", func(r map[string]any) { r["oauth"].(map[string]any)["tokenUrl"] = thief.at("thief.test") + "/token" }},
		{"another client id", "oauth", func(r map[string]any) { r["oauth"].(map[string]any)["clientId"] = "client-2" }},
		{"another style", "oauth", func(r map[string]any) { r["oauth"].(map[string]any)["authStyle"] = "basic" }},
		{"another host for a token", "oauth", func(r map[string]any) { r["allowedHosts"] = list("a.test", "thief.test") }},
	} {
		for _, sum := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, checksum %v", c.name, sum), func(t *testing.T) {
				s := newSafe(t)
				up := newParty(t, nil)
				s.put(bearer("key", value, "a.test"))
				s.put(minted("oauth", "client-secret-1", mint.at("a.test")+"/token", "body", "a.test"))
				s.put(bearer("other", "other-0123456789", "a.test"))
				s.create(authed("mine", up.at("a.test")+"/", c.auth))
				s.create(authed("theirs", thief.at("thief.test")+"/", c.auth))
				s.create(authed("other", up.at("a.test")+"/", "other"))
				if a := s.run("mine", `{}`); !a.OK { // and a token is cached
					t.Fatal(a.Raw)
				}
				up.take()
				mint.take()
				s.stop()
				tamper(t, s.cfg.StorePath, c.auth, sum, c.edit)
				s.start()
				for _, id := range []string{"mine", "theirs"} {
					a := s.run(id, `{}`)
					refused := a.Code == "SECRET_DAMAGED" || a.Code == "SECRET_HOST_NOT_ALLOWED" && sum
					if a.OK || !refused || shows(a.Raw, value) != "" {
						t.Errorf("%s: %s", id, a.Raw)
					}
				}
				if n := len(up.take()) + len(thief.take()) + len(mint.take()); n != 0 {
					t.Errorf("%d requests were sent", n)
				}
				if a := s.run("other", `{}`); !a.OK {
					t.Errorf("another credential suffers: %s", a.Raw)
				}
			})
		}
	}
}

// A record under another's name, or yesterday's sealed value in today's record,
// opens nothing either.
func TestMovedRecords(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	up := newParty(t, nil)
	s.put(bearer("key", value, "a.test"))
	s.put(bearer("bait", "bait-0123456789", "thief.test"))
	s.create(authed("w", up.at("thief.test")+"/", "bait"))
	s.stop()
	var key map[string]any
	tamper(t, s.cfg.StorePath, "key", true, func(r map[string]any) { key = r })
	tamper(t, s.cfg.StorePath, "bait", true, func(r map[string]any) {
		for _, member := range []string{"sealed", "updated", "keyId"} {
			r[member] = key[member]
		}
	})
	s.start()
	if a := s.run("w", `{}`); a.Code != "SECRET_DAMAGED" || len(up.take()) != 0 {
		t.Error(a.Raw)
	}
}

// The whole store, minus what a running daemon changes by itself.
func sealedBytes(t *testing.T, path string) string {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out strings.Builder
	err = db.View(func(tx *bbolt.Tx) error {
		for _, bucket := range []string{"sealed", "settings", "allow", "approval", "trust"} {
			b := tx.Bucket([]byte(bucket))
			if b == nil {
				continue
			}
			_ = b.ForEach(func(k, v []byte) error { fmt.Fprintf(&out, "%s %q %x\n", bucket, k, v); return nil })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// D38: every door an agent has, by every verb, with every body that a writer of
// credentials could want: not one byte of a credential changes.
func TestAgentsCannotWriteCredentials(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.put(bearer("key", value, "a.test"))
	s.put(bearer("other", "other-0123456789", "b.test"))
	ctx := context.Background()
	if _, err := s.person.Allow(ctx, &control.AllowRule{Host: "b.test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.person.SetSetting(ctx, &control.SettingChange{Name: "call-timeout-ms", Value: "49000"}); err != nil {
		t.Fatal(err)
	}
	s.create(get("asked", "http://b.test/"))
	if _, err := s.person.SetApprovalPolicy(ctx, &control.ApprovalPolicyChange{Wrapper: "asked", Policy: "always"}); err != nil {
		t.Fatal(err)
	}
	s.stop()
	before := sealedBytes(t, s.cfg.StorePath)
	s.start()
	for _, there := range []string{`sealed "key"`, `allow "b.test`, `settings "`, `approval "asked"`} {
		if !strings.Contains(before, there) {
			t.Fatalf("no %s in the store:\n%s", there, before)
		}
	}
	doors := []string{
		"/wrap/secrets", "/wrap/secret", "/wrap/status", "/wrap/manifest", "/wrap/wrapper", "/wrap/audit", "/wrap/run", "/wrap/test", "/wrap/derive", "/wrap/wrappers",
		"/hello", "/wrap/credentials", "/wrap/vault", "/wrap/keyring", "/wrap/bind", "/wrap/allow", "/wrap/settings", "/wrap/config", "/wrap/approvals", "/wrap/reload",
		// The control socket's own paths, on the port where agents are.
		"/control/secret", "/control/secret/put", "/control/secret/bind", "/control/secret/delete", "/control/secret/test", "/control/secrets", "/control/settings", "/control/allow", "/control/stop",
	}
	guessed := len(doors)
	for _, pkg := range []string{"bridge", "control"} { // every route there is, by the source
		doors = append(doors, routesOf(t, pkg)...)
	}
	var paths []string
	for _, door := range doors {
		paths = append(paths, door, door+"/", door+"/key", door+"?name=key&host=thief.test", strings.ToUpper(door), "/"+door, door+"/../secrets")
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("stolen-value"))
	bodies := []string{
		``, `{}`, `null`,
		`{"name":"key"}`,
		`{"name":"key","wrapper":"w"}`,
		`{"name":"key","add":["thief.test"]}`,
		`{"name":"key","value":"stolen-value","allowedHosts":["thief.test"]}`,
		`{"name":"key","kind":"static","headers":[{"name":"X"}],"allowedHosts":["thief.test"],"values":["` + encoded + `"]}`,
		`{"action":"create","name":"new","kind":"static","allowedHosts":["thief.test"],"values":["` + encoded + `"]}`,
		`{"action":"delete","id":"key"}`,
		`{"action":"delete","id":"../sealed/key"}`,
		`{"action":"update","secret":{"name":"key","allowedHosts":["thief.test"]}}`,
		`{"secrets":[{"name":"key","allowedHosts":["thief.test"]}]}`,
		`{"action":"create","wrapper":{"schemaVersion":1,"id":"x","name":"x","request":{"method":"GET","url":"https://thief.test/","auth":"key","secret":"stolen-value"},"allowedHosts":["thief.test"]}}`,
		`{"action":"create","wrapper":{"schemaVersion":1,"id":"x","name":"x","request":{"method":"GET","url":"https://thief.test/","auth":{"name":"key","value":"stolen-value"}}}}`,
		`{"id":"x","args":{},"secret":{"key":"stolen-value"},"allowedHosts":["thief.test"]}`,
	}
	verbs := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "LINK", "SEARCH"}
	var tried atomic.Int64
	try := func(verb, path, body string) {
		req, err := http.NewRequest(verb, "http://"+s.d.Addr(), strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.URL.Opaque = "//" + s.d.Addr() + path // as written, nothing is cleaned
		req.Header.Set("Authorization", "Bearer "+s.tok)
		req.Header.Set("Content-Type", "application/json")
		resp, err := s.http.Do(req)
		if err != nil {
			t.Errorf("%s %s %s: %v", verb, path, body, err)
			return
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		tried.Add(1)
		if how := shows(string(text), value); how != "" || strings.Contains(string(text), "stolen-value") {
			t.Errorf("%s %s %s shows a value: %s", verb, path, body, text)
		}
	}
	var group sync.WaitGroup
	for n, path := range paths {
		group.Go(func() {
			for v, verb := range verbs {
				for b, body := range bodies {
					if !soak.Long() && (b+v+n)%len(bodies) > 0 {
						continue // a short run takes one of the bodies for each path and verb
					}
					try(verb, path, body)
				}
			}
		})
		if n%8 == 7 {
			group.Wait()
		}
	}
	group.Wait()
	agent := s.agent(s.d.Addr())
	args := append(bodies[3:],
		`{"id":"key","secret":"stolen-value"}`, `{"wrapper":{"id":"key","value":"stolen-value"}}`, `{"credential":{"name":"key","value":"stolen-value"}}`, `{"auth":"stolen-value"}`)
	tools := []string{
		"wrap_list", "wrap_get", "wrap_secret_list", "wrap_derive", "wrap_create", "wrap_update", "wrap_delete", "wrap_run", "wrap_test", "wrap_reload",
		"wrap_secret_set", "wrap_secret_bind", "wrap_secret_delete", "wrap_secret", "wrap_allow", "wrap_config",
	}
	there, err := agent.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range there.Tools {
		tools = append(tools, tool.Name)
	}
	for _, tool := range tools {
		for _, a := range args {
			text, _, _ := agent.call(tool, a) // a tool that is not there is an error
			tried.Add(1)
			if shows(text, value) != "" || strings.Contains(text, "stolen-value") {
				t.Errorf("%s %s shows a value: %s", tool, a, text)
			}
		}
	}
	// A wrapper of the same name may come and go; a credential may not.
	s.post("/wrap/wrappers", `{"action":"create","wrapper":`+get("key", "http://a.test/")+`}`)
	s.post("/wrap/wrappers", `{"action":"delete","id":"key"}`)
	s.stop()
	after := sealedBytes(t, s.cfg.StorePath)
	if after != before {
		t.Errorf("the store changed from\n%sto\n%s", before, after)
	}
	s.start()
	soak.Measured(t, "%d paths (%d routes of bridge and control socket), %d verbs, %d bodies, %d tools: %d tries, credentials, settings, allowed hosts and answers as before: %v",
		len(paths), len(doors)-guessed, len(verbs), len(bodies), len(tools), tried.Load(), after == before)
}

// routesOf are the paths in the source of a package.
func routesOf(t *testing.T, pkg string) (out []string) {
	t.Helper()
	sources, err := filepath.Glob("../" + pkg + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`"(/(?:wrap|control|hello)[a-z/]*)"`).FindAllSubmatch(text, -1) {
			out = append(out, string(m[1]))
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %q in the source of %s", out, pkg)
	}
	return out
}

// A daemon whose keyring does not work says so at once to who asks, and does
// everything that needs no credential (D22).
func TestWithoutAKeyring(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"HB_WRAP_ALLOW_PRIVATE": "1", "HB_WRAP_KEYRING": "off"}, outbound.Options{})
	up := newParty(t, nil)
	w.create(get("plain", up.URL+"/"))
	w.create(authed("w", up.URL+"/", "key"))
	if a := w.run("plain", `{}`); !a.OK {
		t.Error(a.Raw)
	}
	if a := w.run("w", `{}`); a.Code != "SECRET_NOT_FOUND" || !strings.Contains(a.Hint, "hbrestd secret set") {
		t.Error(a.Raw)
	}
	if n := len(up.take()); n != 1 {
		t.Errorf("%d requests, want that of the plain wrapper alone", n)
	}
}

// A copy of the database on another machine, where the keyring has another key
// or none, opens nothing, says why, and changes nothing.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	up := newParty(t, nil)
	s.put(bearer("key", value, "a.test"))
	s.create(authed("w", up.at("a.test")+"/", "key"))
	s.stop()
	before := sealedBytes(t, s.cfg.StorePath)
	s.options.Key = func(context.Context, bool) ([]byte, error) { return bytes.Repeat([]byte{8}, 32), nil }
	s.start()
	a := s.run("w", `{}`)
	if a.Code != "SECRET_LOCKED" || len(up.take()) != 0 {
		t.Error(a.Raw)
	}
	s.stop()
	if sealedBytes(t, s.cfg.StorePath) != before {
		t.Error("the records changed")
	}
	raw, err := os.ReadFile(s.cfg.StorePath)
	if err != nil || shows(string(raw), value) != "" {
		t.Error("the value is in the database in the open", err)
	}
	s.start()
}
