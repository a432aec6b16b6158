//go:build unix

package control_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A value goes one way: no answer has a place for one, no fault, no log line,
// and what held it is wiped once the backend is done.
func TestValuesGoOneWay(t *testing.T) {
	const canary = "canary-7f3a-value"
	f := &fake{}
	s := serve(t, f)
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	ctx := context.Background()
	mine := []byte(canary)
	if _, err := c.PutSecret(ctx, &control.SecretPut{Name: "k", Kind: "static", Values: [][]byte{mine, nil}}); err != nil {
		t.Fatal(err)
	}
	if string(mine) != canary {
		t.Errorf("the caller's own bytes are %q", mine)
	}
	if asked := f.asked(); len(asked) != 1 || !strings.Contains(asked[0], base64.StdEncoding.EncodeToString(mine)) {
		t.Errorf("the backend was asked %q", asked)
	}
	if want := [][]byte{make([]byte, len(canary)), nil}; !reflect.DeepEqual(f.values, want) {
		t.Errorf("what the backend was given holds %q afterwards", f.values)
	}

	// The same in every place of a call where it does not belong.
	encoded := base64.StdEncoding.EncodeToString(mine)
	var said strings.Builder
	for _, body := range []string{
		`{"name":"k","kind":"static","values":["` + canary + `"]}`,
		`{"name":"k","kind":"static","values":["` + encoded + `!"]}`,
		`{"name":"k","kind":"static","values":"` + canary + `"}`,
		`{"name":"k","kind":"` + canary + `","values":["` + encoded + `"]}`,
		`{"name":"k","kind":"static","allowedHosts":[{"a":"` + canary + `"}],"values":["` + encoded + `"]}`,
		`{"name":"k","kind":"static","values":["` + encoded + `"`,
	} {
		resp, answer := s.raw(t, message("POST", "/control/secret/put", body))
		if resp.StatusCode != 400 {
			t.Errorf("%s: %d", body, resp.StatusCode)
		}
		said.WriteString(answer)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	said.WriteString(s.log.String())
	for _, form := range []string{canary, encoded, strings.TrimRight(encoded, "=")} {
		if strings.Contains(said.String(), form) {
			t.Errorf("%q is told: %s", form, said.String())
		}
	}
}

// The types that answer have no room for a value: a member of bytes or of any
// JSON would be one.
func TestAnswersHaveNoPlaceForValues(t *testing.T) {
	var members []string
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				members = append(members, typ.Field(i).Name)
				walk(typ.Field(i).Type)
			}
		case reflect.String, reflect.Bool:
		default:
			t.Errorf("a member of type %s", typ)
		}
	}
	walk(reflect.TypeFor[control.SecretState]())
	walk(reflect.TypeFor[control.SecretResult]())
	known := []string{
		"State", "Reason", "Fix", "Detail", "Secrets", "OK", "Secret", "Confirm", "Message",
		"Name", "Kind", "Headers", "AllowedHosts", "OAuth", "Updated", "Seal", "Problem", "UsedBy",
		"Prefix", "TokenURL", "ClientID", "Scope", "Audience", "AuthStyle",
	}
	for _, m := range members {
		if !slices.Contains(known, m) {
			t.Errorf("an answer has a new member %s: if it can hold a value, it must not be there", m)
		}
	}
}

// Whatever the daemon refuses comes back whole.
func TestSecretFaultsComeBack(t *testing.T) {
	f := &failingSecrets{err: fault.New("BAD_REQUEST", "value: is too short").With(fault.Field("value[0]"),
		fault.Details([]fault.Detail{{Field: "value[0]", Code: "TOO_SHORT", Message: "at least 8 characters"}}))}
	s := serveBackend(t, f)
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	ctx := context.Background()
	for name, call := range map[string]func() error{
		"state": func() error { _, err := c.SecretState(ctx); return err },
		"put":   func() error { _, err := c.PutSecret(ctx, &control.SecretPut{Name: "k", Kind: "basic"}); return err },
		"bind": func() error {
			_, err := c.BindSecret(ctx, &control.SecretBind{Name: "k", Add: []string{"a"}})
			return err
		},
		"delete": func() error { _, err := c.DeleteSecret(ctx, &control.SecretName{Name: "k"}); return err },
	} {
		t.Run(name, func(t *testing.T) { mustBe(t, call(), f.err) })
	}
}

// failingSecrets fails every change of a credential.
type failingSecrets struct {
	fake
	err *fault.Error
}

func (f *failingSecrets) SecretState(context.Context) (*control.SecretState, error) {
	return nil, f.err
}

func (f *failingSecrets) PutSecret(context.Context, *control.SecretPut) (*control.SecretResult, error) {
	return nil, f.err
}

func (f *failingSecrets) BindSecret(context.Context, *control.SecretBind) (*control.SecretResult, error) {
	return nil, f.err
}

func (f *failingSecrets) DeleteSecret(context.Context, *control.SecretName) (*control.SecretResult, error) {
	return nil, f.err
}

// A value of the largest size, in every place, still fits into a call.
func TestLargestPutFits(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	q := &control.SecretPut{Name: "k", Kind: "static"}
	for range 4 { // as many headers as a credential may have
		q.Values = append(q.Values, bytes.Repeat([]byte{0xff}, 16<<10))
	}
	if _, err := c.PutSecret(context.Background(), q); err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if asked := f.asked(); len(asked) != 1 || asked[0] != "PutSecret "+string(want) {
		t.Error("the values did not arrive whole")
	}
}
