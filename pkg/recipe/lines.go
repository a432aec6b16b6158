package recipe

import (
	"bytes"
	"errors"
	"fmt"
)

// RecordSeparator is the byte in front of each text of a JSON text sequence
// (RFC 7464, application/json-seq), for ReadLines.
const RecordSeparator = 0x1e

// ReadLines is Read for a body that is not one JSON document but many, as the
// elements of an array: one a line with sep '\n' (NDJSON, JSON Lines), or one
// behind each RecordSeparator. Everything holds for them that Read says of a
// root array. Blank lines are none, and a body without any is an empty list. A
// line that is not exactly one whole JSON value is an error that names it.
func (r *Recipe) ReadLines(body []byte, sep byte, max int, scrub func(string) string) (*Page, error) {
	page, err := r.read(body, sep, max, scrub)
	var d *DecodeError
	if errors.As(err, &d) && d.Kind == "empty" {
		return &Page{list: r.Shape != Columns}, nil
	}
	return page, err
}

// Warn adds a text about the body to Warnings, each text once.
func (p *Page) Warn(text string) { p.note(text) }

// plainSeparators is the body as the JSON scanner takes it, every byte at its
// place. A line feed may stand where a separator may, and is an error wherever
// a separator is one.
func plainSeparators(body []byte, sep byte) []byte {
	if sep != RecordSeparator {
		return body
	}
	return bytes.ReplaceAll(body, []byte{sep}, []byte{'\n'})
}

// lines passes over a body of lines as value does over a root array.
func (s *scan) lines(body []byte, sep byte) error {
	alive := uint64(1)<<len(s.tracks) - 1
	items := false
	if alive&s.ends[0] != 0 { // only the select path: $ among the others means decoding the whole body
		alive &^= s.ends[0]
		if s.shape == Columns {
			s.page.unfit(s.shape, '[')
		} else {
			items, s.page.list = true, true
		}
	}
	mark := s.mark(alive)
	return s.eachLine(body, sep, func(i int) error { return s.element(i, 0, alive, items, &mark) })
}

// DecodeLines is Decode for the bodies that ReadLines reads: an Array of their
// values. A body without any is an error of kind "empty".
func DecodeLines(body []byte, sep byte) (Array, error) {
	rd, err := newReader(plainSeparators(body, sep), DecodeLimits{})
	if err != nil {
		return nil, err
	}
	out := Array{}
	err = rd.eachLine(body, sep, func(int) error {
		v, err := rd.build()
		out = append(out, v)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// readLinesWhole is read without streaming: the reference for what it means.
func (r *Recipe) readLinesWhole(body []byte, sep byte, max int, scrub func(string) string, paths []Path) (*Page, error) {
	if sep == 0 {
		return r.readWhole(body, max, scrub, paths)
	}
	doc, err := DecodeLines(body, sep)
	if err != nil {
		return nil, err
	}
	return r.readDoc(doc, max, scrub, paths), nil
}

// eachLine calls one for each value, which has to read it. body is the text
// with the separators that it came with.
func (r *reader) eachLine(body []byte, sep byte, one func(i int) error) error {
	text := body[r.bom:]
	blank := " \t\r\n"
	if sep == RecordSeparator {
		blank += string(rune(RecordSeparator))
	}
	at := 0
	for i := 0; ; i++ {
		from := len(text) - len(bytes.TrimLeft(text[at:], blank))
		if from == len(text) {
			return nil
		}
		if i > 0 && bytes.IndexByte(text[at:from], sep) < 0 {
			return r.badLine(text, sep, i-1, from, from, "more than one value")
		}
		if err := one(i); err != nil {
			var d *DecodeError
			if !errors.As(err, &d) || d.Kind != "syntax" {
				return err
			}
			return r.badLine(text, sep, i, from, int(d.Offset-r.bom), d.Message)
		}
		if at = int(r.dec.InputOffset()); bytes.IndexByte(text[from:at], sep) >= 0 {
			return r.badLine(text, sep, i, from, at, "")
		}
	}
}

// badLine names the line, or the record, that begins at from and has a fault at.
func (r *reader) badLine(text []byte, sep byte, i, from, at int, what string) error {
	name := fmt.Sprintf("record %d", i+1)
	if sep == '\n' {
		name = fmt.Sprintf("line %d", bytes.Count(text[:from], []byte{sep})+1)
	}
	at = min(at, len(text))
	if end := bytes.IndexByte(text[from:at], sep); end >= 0 {
		at, what = from+end, "the value is cut"
	}
	return &DecodeError{Kind: "syntax", Offset: r.bom + int64(at), Message: name + ": " + what}
}
