package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"
)

// KeySize is the length of the master key in bytes: AES-256.
const KeySize = 32

// A box seals and opens with the master key.
type box struct {
	key  []byte // wiped by close; the cipher's own expansion of it can only be dropped
	aead cipher.AEAD
	id   string
}

// newBox takes over key.
func newBox(key []byte) (*box, error) {
	if len(key) != KeySize {
		clear(key)
		return nil, errors.New("the master key has the wrong length")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	// The id tells a record of another key from a damaged one, and nothing of the key.
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, "hbrestd master key id")
	return &box{key, aead, hex.EncodeToString(mac.Sum(nil)[:8])}, nil
}

func (b *box) close() { clear(b.key); b.aead = nil }

// seal returns a random nonce and the ciphertext. 96 random bits are safe for
// 2^32 messages of one key; a person and an hourly token stay far below.
func (b *box) seal(plain, bound []byte) []byte {
	nonce := make([]byte, b.aead.NonceSize(), b.aead.NonceSize()+len(plain)+b.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails: it aborts the program instead
	return b.aead.Seal(nonce, nonce, plain, bound)
}

func (b *box) open(sealed, bound []byte) ([]byte, error) {
	n := b.aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("too short")
	}
	return b.aead.Open(nil, sealed[:n], sealed[n:], bound)
}

// A frame writes fields so that no two different lists of fields look alike:
// each has its length in front.
type frame struct{ b []byte }

func (f *frame) bytes(p []byte) {
	f.b = binary.BigEndian.AppendUint32(f.b, uint32(len(p)))
	f.b = append(f.b, p...)
}

func (f *frame) text(ss ...string) {
	for _, s := range ss {
		f.b = binary.BigEndian.AppendUint32(f.b, uint32(len(s)))
		f.b = append(f.b, s...)
	}
}

func (f *frame) count(n int) { f.b = binary.BigEndian.AppendUint32(f.b, uint32(n)) }

// binding is what a person decided about a credential, in one canonical form.
func (m *Meta) binding() []byte {
	var f frame
	f.text("hbrestd-sealed-1", m.Name, string(m.Kind))
	f.count(len(m.Headers))
	for _, h := range m.Headers {
		f.text(h.Name, h.Prefix)
	}
	f.count(len(m.AllowedHosts))
	f.text(m.AllowedHosts...)
	if m.OAuth == nil {
		f.count(0)
		return f.b
	}
	f.count(1)
	f.text(m.OAuth.TokenURL, m.OAuth.ClientID, m.OAuth.Scope, m.OAuth.Audience, string(m.OAuth.AuthStyle))
	return f.b
}

// bound is the additional data of a record's values: the binding, and the rest
// of the record so that no byte of it can be changed unnoticed.
func (r *record) bound() []byte {
	var f frame
	f.bytes(r.meta().binding())
	f.text("values", r.KeyID, r.Updated.UTC().Format(time.RFC3339Nano))
	f.count(r.Version)
	return f.b
}

// boundToken is the additional data of a cached token: as bound, and the values
// it was minted with.
func (r *record) boundToken() []byte {
	var f frame
	f.bytes(r.bound())
	f.text("token")
	f.bytes(r.Sealed)
	return f.b
}

// padding hides how long a password is from those who see only the database.
const padding = 64

// packValues frames the values and pads them.
func packValues(values []value) []byte {
	size := 4
	for _, v := range values {
		size += 4 + len(v.bytes())
	}
	f := frame{make([]byte, 0, size+padding)}
	f.count(len(values))
	for _, v := range values {
		f.bytes(v.bytes())
	}
	return append(f.b, make([]byte, padding-len(f.b)%padding)...)
}

// unpackValues copies the values out of plain.
func unpackValues(plain []byte, want int) ([]value, error) {
	bad := errors.New("the sealed values are not framed as they should be")
	next := func() (int, bool) {
		if len(plain) < 4 {
			return 0, false
		}
		n := binary.BigEndian.Uint32(plain)
		plain = plain[4:]
		return int(n), n <= 1<<20
	}
	n, ok := next()
	if !ok || n != want {
		return nil, bad
	}
	out := make([]value, 0, n)
	for range n {
		size, ok := next()
		if !ok || size > len(plain) {
			return nil, bad
		}
		out = append(out, keep(append([]byte{}, plain[:size]...)))
		plain = plain[size:]
	}
	if strings.Trim(string(plain), "\x00") != "" {
		return nil, bad
	}
	return out, nil
}

// packToken and unpackToken write a token's times and text.
func packToken(t *token) []byte {
	f := frame{make([]byte, 0, 24+len(t.access.bytes())+padding)}
	f.b = binary.BigEndian.AppendUint64(f.b, uint64(t.minted.UnixNano()))
	f.b = binary.BigEndian.AppendUint64(f.b, uint64(t.expires.UnixNano()))
	f.bytes(t.access.bytes())
	return f.b
}

func unpackToken(plain []byte) (*token, error) {
	if len(plain) < 20 || int(binary.BigEndian.Uint32(plain[16:])) != len(plain)-20 {
		return nil, errors.New("the sealed token is not framed as it should be")
	}
	return &token{
		minted:  time.Unix(0, int64(binary.BigEndian.Uint64(plain))),
		expires: time.Unix(0, int64(binary.BigEndian.Uint64(plain[8:]))),
		access:  keep(append([]byte{}, plain[20:]...)),
	}, nil
}
