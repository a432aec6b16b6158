package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// encode is v as a line of JSON. Characters that only HTML minds are not
// escaped: documents come back with those they were saved with.
func encode(v any) ([]byte, error) {
	if run, ok := v.(*api.RunResult); ok && run != nil {
		return encodeRun(run)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// encodeRun is encode for the answer that is sent most, byte for byte the same
// without asking what its members are. Records and headers are compact JSON
// already. What few answers have is left to encoding/json.
func encodeRun(r *api.RunResult) ([]byte, error) {
	size := 512 + len(r.Records)
	if r.Markdown != nil {
		size += len(*r.Markdown) + len(*r.Markdown)/8 // line feeds become two characters
	}
	e := envelope{dst: make([]byte, 0, size)}
	e.flag(`{"ok":`, r.OK)
	if e.text(`,"status":`); r.Status == nil {
		e.text("null")
	} else {
		e.number("", int64(*r.Status))
	}
	e.number(`,"durationMs":`, r.DurationMs)
	e.quoted(`,"wrapper":{"id":`, r.Wrapper.ID)
	e.quoted(`,"name":`, r.Wrapper.Name)
	e.text("}")
	if r.Markdown != nil {
		e.quoted(`,"markdown":`, *r.Markdown)
	}
	if len(r.Records) > 0 {
		e.compact(`,"records":`, r.Records)
	}
	e.meta(&r.Meta)
	if r.Paging != nil {
		e.other(`,"paging":`, r.Paging)
	}
	if r.Indexed != nil {
		e.other(`,"indexed":`, r.Indexed)
	}
	if q := r.Request; q != nil {
		e.quoted(`,"request":{"method":`, q.Method)
		e.quoted(`,"url":`, q.URL)
		if q.FinalURL != "" {
			e.quoted(`,"finalUrl":`, q.FinalURL)
		}
		if q.Headers == nil {
			e.text(`,"headers":null`)
		} else {
			e.compact(`,"headers":`, q.Headers)
		}
		if len(q.Body) > 0 { // as it was sent, perhaps not compact
			e.other(`,"body":`, q.Body)
		}
		if q.BodyType != "" {
			e.quoted(`,"bodyType":`, q.BodyType)
		}
		e.text("}")
	}
	if len(r.Warnings) > 0 {
		e.other(`,"warnings":`, r.Warnings)
	}
	e.text("}\n")
	return e.dst, e.err
}

// An envelope is an answer that is being written.
type envelope struct {
	dst []byte
	err error // the first one
}

func (e *envelope) meta(m *api.Meta) {
	e.quoted(`,"meta":{"mode":`, m.Mode)
	e.number(`,"selected":`, int64(m.Selected))
	e.number(`,"rendered":`, int64(m.Rendered))
	e.flag(`,"truncated":`, m.Truncated)
	if m.Reason != "" {
		e.quoted(`,"reason":`, m.Reason)
	}
	if m.Shown != nil {
		e.number(`,"shown":`, int64(*m.Shown))
	}
	if len(m.EmptyFields) > 0 {
		e.other(`,"emptyFields":`, m.EmptyFields)
	}
	if len(m.Warnings) > 0 {
		e.other(`,"warnings":`, m.Warnings)
	}
	e.text("}")
}

func (e *envelope) text(s string) { e.dst = append(e.dst, s...) }

func (e *envelope) number(before string, n int64) {
	e.dst = strconv.AppendInt(append(e.dst, before...), n, 10)
}

func (e *envelope) flag(before string, b bool) {
	e.dst = strconv.AppendBool(append(e.dst, before...), b)
}

func (e *envelope) quoted(before, s string) {
	e.dst = appendQuoted(append(e.dst, before...), s)
}

// compact writes what is JSON without white space already. That it is JSON is
// looked at all the same: a fault of ours must not make an answer unreadable.
func (e *envelope) compact(before string, v json.RawMessage) {
	if e.err == nil && !jsontext.Value(v).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		e.err = errors.New("json: a member of the answer is not valid")
	}
	e.dst = append(append(e.dst, before...), v...)
}

func (e *envelope) other(before string, v any) {
	text, err := encode(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.dst = append(append(e.dst, before...), bytes.TrimSuffix(text, []byte("\n"))...)
}

// appendQuoted quotes s as encoding/json does: with the short escapes, and
// U+2028, U+2029 and what is not UTF-8 as \u escapes.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(append(dst, s[from:i]...), `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				dst = append(append(dst, s[from:i]...), `\u202`...)
				dst = append(dst, hex[r&15])
			default:
				i += size
				continue
			}
			i += size
			from = i
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}
