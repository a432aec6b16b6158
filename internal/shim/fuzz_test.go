package shim

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Whatever the arguments are, reading them ends with members that are bytes of
// what came, or with a refusal that is not empty.
func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"id":"a","args":{"n":9007199254740993},"max_pages":3}`))
	f.Add([]byte(`{"id":"\ud800","id":1}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return // the transport has seen to that
		}
		for _, m := range metaTools() {
			a, err := parseArguments(m, raw)
			if err != nil {
				if err.Error() == "" {
					t.Fatal("an empty refusal")
				}
				continue
			}
			for name, value := range a.members {
				if !bytes.Contains(raw, value) {
					t.Fatalf("%s became %s", name, value)
				}
			}
		}
	})
}
