package secrets

import (
	"errors"
	"fmt"
	"io"
)

// A value is secret text. It hides behind a pointer because fmt prints what it
// finds in unexported fields without asking their methods.
type value struct{ p *[]byte }

var errNoMarshal = errors.New("a secret value cannot be written out")

// keep takes over b.
func keep(b []byte) value { return value{&b} }

// bytes is the secret itself, still owned by v.
func (v value) bytes() []byte {
	if v.p == nil {
		return nil
	}
	return *v.p
}

// Reveal returns the secret text. Only a Minter has a reason to call it.
func (v value) Reveal() string { return string(v.bytes()) }

func (v value) wipe() { clear(v.bytes()) }

// String is "[secret]", whatever the value.
func (v value) String() string { return "[secret]" }

// GoString is "[secret]".
func (v value) GoString() string { return "[secret]" }

// Format writes "[secret]" for every verb.
func (v value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[secret]") }

// MarshalJSON refuses.
func (v value) MarshalJSON() ([]byte, error) { return nil, errNoMarshal }

// MarshalText refuses.
func (v value) MarshalText() ([]byte, error) { return nil, errNoMarshal }

// MarshalBinary refuses; encoding/gob asks it.
func (v value) MarshalBinary() ([]byte, error) { return nil, errNoMarshal }
