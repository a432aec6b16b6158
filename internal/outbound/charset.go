package outbound

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

var (
	bomUTF8    = []byte{0xef, 0xbb, 0xbf}
	bomUTF16LE = []byte{0xff, 0xfe}
	bomUTF16BE = []byte{0xfe, 0xff}
)

// UTF8 returns the body as UTF-8 without a byte order mark. A byte order mark
// decides; else the charset parameter of Content-Type does, by the names of the
// WHATWG Encoding standard; else the body is taken for UTF-8 and returned as it
// is, valid or not, for its reader to judge. It fails with RESPONSE_ENCODING for
// an unknown charset, and for bytes that the charset does not have: they are
// never replaced silently.
func (r *Response) UTF8() ([]byte, error) {
	switch {
	case bytes.HasPrefix(r.Body, bomUTF8):
		return r.Body[len(bomUTF8):], nil
	case bytes.HasPrefix(r.Body, bomUTF16LE):
		return r.utf16(r.Body[len(bomUTF16LE):], false)
	case bytes.HasPrefix(r.Body, bomUTF16BE):
		return r.utf16(r.Body[len(bomUTF16BE):], true)
	}
	name := r.charset()
	if name == "" {
		return r.Body, nil
	}
	enc, err := htmlindex.Get(name)
	if err != nil || enc == encoding.Replacement {
		return nil, r.badEncoding("the charset %q is unknown", fault.Shorten(name, 40))
	}
	switch canonical, _ := htmlindex.Name(enc); canonical {
	case "utf-8":
		return r.Body, nil
	case "utf-16le":
		return r.utf16(r.Body, false)
	case "utf-16be":
		return r.utf16(r.Body, true)
	}
	out, err := enc.NewDecoder().Bytes(r.Body)
	if err != nil || bytes.ContainsRune(out, utf8.RuneError) {
		return nil, r.badEncoding("the answer has bytes that its charset %s does not have", fault.Shorten(name, 40))
	}
	return out, nil
}

// charset is the parameter of Content-Type, "" if there is none that can be read.
func (r *Response) charset() string {
	ct := r.Header.Get("Content-Type")
	if strings.IndexByte(ct, ';') < 0 {
		return ""
	}
	_, params, err := mime.ParseMediaType(ct)
	if err != nil {
		return ""
	}
	return strings.Trim(params["charset"], `'" `)
}

func (r *Response) utf16(b []byte, bigEndian bool) ([]byte, error) {
	if len(b)%2 != 0 {
		return nil, r.badEncoding("the answer is UTF-16 with half a character at its end")
	}
	at := func(i int) rune {
		if bigEndian {
			return rune(b[i])<<8 | rune(b[i+1])
		}
		return rune(b[i+1])<<8 | rune(b[i])
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i += 2 {
		c := at(i)
		if utf16.IsSurrogate(c) {
			if i += 2; i >= len(b) {
				return nil, r.badEncoding("the answer is UTF-16 with half a surrogate pair")
			}
			if c = utf16.DecodeRune(c, at(i)); c == utf8.RuneError {
				return nil, r.badEncoding("the answer is UTF-16 with half a surrogate pair")
			}
		}
		out = utf8.AppendRune(out, c)
	}
	return out, nil
}

func (r *Response) badEncoding(format string, args ...any) *fault.Error {
	return fault.New("RESPONSE_ENCODING", format, args...).With(fault.Status(r.Status))
}
