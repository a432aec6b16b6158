package control

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// What the strict reader accepts, it reads as encoding/json does; and it
// refuses everything that encoding/json refuses with unknown fields disallowed.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"documents":[{"source":"a","wrapper":{"x":[1,"]}\"",{}]}},{"wrapper":null}],"dryRun":true}`, ` { "documents" : [ ] } `,
		`{"documents":null,"dryRun":null}`, `{"documents":[{}]}`, `{"dryRun":1}`, `{"documents":[{"source":"\ud83d\ude00\\","wrapper":-1.5e3}]}`,
		`{"documents":[{"wrapper":"x"},{"wrapper":true},{"wrapper":[]}]}`, `{"dryRun":true,"dryRun":false}`, `{"dry\u0052un":true}`, `{"":0}`, `[`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want ApplyRequest
		err := decode(data, &got)
		d := json.NewDecoder(strings.NewReader(string(data)))
		d.DisallowUnknownFields()
		wantErr := d.Decode(&want)
		if err != nil {
			return
		}
		if wantErr != nil {
			t.Fatalf("%q was accepted; encoding/json says %v", data, wantErr)
		}
		if len(want.Documents) == 0 { // [] and null are the same here
			want.Documents = got.Documents
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", data, d)
		}
	})
}

// Every member of the wire types has a kind that fill knows.
func TestDecodeKnowsEveryMember(t *testing.T) {
	n := 7
	yes := true
	raw := json.RawMessage(`{"a":[1.50,"x\"]"]}`)
	for _, v := range []any{
		&api.RunRequest{ID: "a", Args: raw, Format: "json", MaxPages: &n},
		&api.TestRequest{ID: "a", Wrapper: raw, Args: raw, Sample: raw, DryRun: &yes, Format: "json", MaxPages: &n},
		&api.DeriveRequest{Sample: raw, URL: "u", ID: "i", Name: "n", Description: "d", MaxFields: &n},
		&api.ChangeRequest{Action: "create", ID: "a", Wrapper: raw},
		&ApplyRequest{Documents: []ApplyDocument{{Source: "s", Wrapper: raw}, {Source: "t", Wrapper: json.RawMessage("0")}}, DryRun: true},
		&ExposeRequest{ID: "a", Hide: true, Priority: &n},
		&AllowRule{Host: "h", Port: "1", HTTP: true},
		&SettingChange{Name: "n", Value: "v", Unset: true},
		&AuditVerifyRequest{Head: "h"},
		&SecretPut{
			Name: "n", Kind: "k", Headers: []SecretHeader{{Name: "h", Prefix: "p"}, {}}, AllowedHosts: []string{"a", ""},
			OAuth:  &SecretOAuth{TokenURL: "u", ClientID: "c", Scope: "s", Audience: "a", AuthStyle: "body"},
			Values: [][]byte{[]byte("v\x00\xff"), nil, {}}, Create: true, Confirm: []string{"c"}, Stdin: true,
		},
		&SecretBind{Name: "n", Add: []string{"a"}, Remove: []string{"r"}, Confirm: []string{"c"}},
		&SecretName{Name: "n"},
		&SecretTest{Name: "n", Wrapper: "w"},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := decode(text, got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if d := cmp.Diff(v, got); d != "" {
			t.Errorf("%T (-want +got):\n%s", v, d)
		}
	}
}
