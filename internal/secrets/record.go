package secrets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// recordVersion is the only version this program writes and reads.
const recordVersion = 1

// A record is one credential as it is stored: what anybody may know, in the
// open, and what nobody may, sealed. Every open field is additional data of the
// sealed ones.
type record struct {
	Version      int           `json:"version"`
	Name         string        `json:"name"`
	Kind         Kind          `json:"kind"`
	Headers      []HeaderValue `json:"headers"`
	AllowedHosts []string      `json:"allowedHosts"`
	OAuth        *OAuthMeta    `json:"oauth,omitempty"`
	Updated      time.Time     `json:"updated"`
	KeyID        string        `json:"keyId"`
	Sealed       []byte        `json:"sealed"`          // nonce and ciphertext of the values
	Token        []byte        `json:"token,omitempty"` // the same of a cached token
}

func (r *record) meta() *Meta {
	return &Meta{Name: r.Name, Kind: r.Kind, Headers: r.Headers, AllowedHosts: r.AllowedHosts, OAuth: r.OAuth, Updated: r.Updated, Seal: r.seal()}
}

// seal tells two states of a credential apart: each Put seals with a new nonce.
func (r *record) seal() string {
	sum := sha256.Sum256(r.Sealed)
	return hex.EncodeToString(sum[:8])
}

func (r *record) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("a record always encodes: %v", err)) // a programmer's mistake
	}
	return b
}

// decodeRecord reads the record stored under name. It proves nothing about its
// content: only opening the values does.
func decodeRecord(name string, data []byte) (*record, error) {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, damaged(name, "its record cannot be read", err)
	}
	if v.Version > recordVersion {
		return nil, damaged(name, "it was saved by a newer hbrestd", nil).With(fault.Hint("Ask a person to update hbrestd; nothing was changed."))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var r record
	err := d.Decode(&r)
	if err == nil && d.Decode(new(any)) != io.EOF {
		err = errors.New("more than one document")
	}
	if err != nil {
		return nil, damaged(name, "its record cannot be read", err)
	}
	var c checker
	if m := c.normalise(*r.meta()); r.Version != recordVersion || r.Name != name || len(c.details) > 0 || !bytes.Equal(m.binding(), r.meta().binding()) {
		return nil, damaged(name, "its record does not hold together", nil)
	}
	return &r, nil
}

func damaged(name, why string, cause error) *fault.Error {
	return fail("SECRET_DAMAGED", "credential %q cannot be used: %s", name, why).With(fault.Field("request.auth"), fault.Cause(cause))
}

// values opens the record.
func (r *record) values(b *box) ([]value, error) {
	if r.KeyID != b.id {
		return nil, damaged(r.Name, "it was sealed with another key than the keyring has now", nil)
	}
	plain, err := b.open(r.Sealed, r.bound())
	if err != nil {
		return nil, damaged(r.Name, "it was changed since a person saved it", err)
	}
	defer clear(plain)
	vs, err := unpackValues(plain, r.meta().places())
	if err != nil {
		return nil, damaged(r.Name, "its content does not hold together", err)
	}
	return vs, nil
}

// keepValues puts the sealed values of old where values has nil: those of the
// same header, or, when nothing but a header's name changed, of the same place.
func keepValues(m *Meta, old *Meta, sealed []value, values [][]byte) ([]value, *checker) {
	var c checker
	out := make([]value, len(values))
	for i, v := range values {
		if v != nil {
			out[i] = keep(append([]byte{}, v...))
			continue
		}
		from := -1
		if old != nil && old.Kind == m.Kind {
			from = sameplace(m, old, i)
		}
		if from < 0 {
			c.add(fmt.Sprintf("value[%d]", i), "REQUIRED", "there is no saved value to keep here; enter one")
			continue
		}
		out[i] = keep(append([]byte{}, sealed[from].bytes()...))
	}
	return out, &c
}

func sameplace(m, old *Meta, i int) int {
	if m.Kind != Static {
		return i
	}
	named := func(list []HeaderValue, name string) int {
		return slices.IndexFunc(list, func(h HeaderValue) bool { return strings.EqualFold(h.Name, name) })
	}
	if at := named(old.Headers, m.Headers[i].Name); at >= 0 {
		return at
	}
	if len(old.Headers) == len(m.Headers) && named(m.Headers, old.Headers[i].Name) < 0 {
		return i
	}
	return -1
}
