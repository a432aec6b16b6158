package bridge

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// fill gives v any value that its type can have: zero, empty but not nil, odd.
func fill(r *rand.Rand, v reflect.Value) {
	text := func() string {
		var b []byte
		for range r.IntN(12) {
			switch r.IntN(6) {
			case 0:
				b = append(b, byte(r.IntN(256)))
			case 1:
				b = append(b, string(rune(0x2020+r.IntN(16)))...)
			case 2:
				b = append(b, []string{"\"", "\\", "<", "&", ">", "\x7f", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\xe2\x80", "\U0010ffff", "\ufeff", "\ufffd"}[r.IntN(13)]...)
			case 3:
				b = append(b, byte(r.IntN(0x20)))
			default:
				b = append(b, byte('a'+r.IntN(26)))
			}
		}
		return string(b)
	}
	switch v.Type() {
	case reflect.TypeFor[json.RawMessage]():
		switch r.IntN(4) {
		case 0:
			v.SetZero()
		case 1:
			v.SetBytes([]byte{})
		default:
			s := standardText(text())
			raw := []string{"[]", "null", "{}", "0", `""`, `[` + s + `]`, `{"k":` + s + `,"k":1e400}`, `{"a":"\ud800\u2028<&>"}`, "[\"\u2028\xff\"]", `[9007199254740993,-0,1.0]`}[r.IntN(10)]
			v.SetBytes([]byte(raw))
		}
		return
	case reflect.TypeFor[time.Time]():
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
			for i := range n - 1 {
				fill(r, v.Index(i))
			}
		}
	case reflect.String:
		v.SetString(text())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 200, math.MaxInt64, math.MinInt64}[r.IntN(6)])
	default:
		panic("a member of a type that fill does not know: " + v.Type().String())
	}
}

func standardText(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Every member that an answer can have, with every kind of value, is written as
// encoding/json does. A new member that encodeRun does not know shows here.
func TestEveryMemberIsEncodedAsStandard(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		v := &api.RunResult{}
		fill(r, reflect.ValueOf(v).Elem())
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		werr := enc.Encode(v)
		got, err := encode(v)
		if (err != nil) != (werr != nil) {
			t.Fatalf("%v, encoding/json %v", err, werr)
		}
		if werr == nil && string(got) != b.String() {
			t.Fatalf("got  %q\nwant %q", got, b.String())
		}
	}
}
