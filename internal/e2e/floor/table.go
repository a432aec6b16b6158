package main

import (
	"bytes"
	"errors"
)

// The table has these members of each product, under these names.
var (
	members = [5]string{"id", "title", "price", "rating", "stock"}
	header  = "## Products\n\n| ID | Title | Price | Rating | Stock |\n| --- | --- | --- | --- | --- |"
)

var errScan = errors.New("the answer is not the JSON that was expected")

// table writes the first most objects of an array as rows, and walks over all
// of it: who shows fifty of a list has to know that it is a list to its end.
// The array is the member key of the answer, or the answer itself when key is
// "". Nothing is decoded but what is shown.
func table(answer []byte, key string, most int) ([]byte, error) {
	s := &scan{text: answer}
	if key != "" {
		s.need('{')
		for s.err == nil && string(s.name()) != key {
			s.value()
			s.need(',')
		}
	}
	out := append(make([]byte, 0, 64+most*96), header...)
	s.need('[')
	for n := 0; s.err == nil && !s.got(']'); n++ {
		if n > 0 {
			s.need(',')
		}
		if n >= most {
			s.value()
			continue
		}
		out = append(out, '\n')
		for _, cell := range s.row() {
			out = append(out, "| "...)
			out = appendCell(out, cell)
			out = append(out, ' ')
		}
		out = append(out, '|')
	}
	return out, s.err
}

// appendCell writes a string without its quotes, with its pipes escaped, and
// anything else as it came. The strings of the API have no escapes.
func appendCell(out, cell []byte) []byte {
	if len(cell) < 2 || cell[0] != '"' {
		return append(out, cell...)
	}
	for _, c := range cell[1 : len(cell)-1] {
		if c == '|' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return out
}

// A scan is a place in JSON text. After its first error it stays where it is.
type scan struct {
	text []byte
	at   int
	err  error
}

func (s *scan) fail() { s.err, s.at = errScan, len(s.text) }

// got steps over white space, and over c if that comes next.
func (s *scan) got(c byte) bool {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scan) need(c byte) {
	if !s.got(c) {
		s.fail()
	}
}

// name reads a member's name and the colon behind it.
func (s *scan) name() []byte {
	s.got(0) // white space
	v := s.value()
	s.need(':')
	if len(v) < 2 || v[0] != '"' {
		s.fail()
		return nil
	}
	return v[1 : len(v)-1]
}

// row reads an object and returns those members that the table shows.
func (s *scan) row() (cells [len(members)][]byte) {
	s.need('{')
	for first := true; s.err == nil && !s.got('}'); first = false {
		if !first {
			s.need(',')
		}
		name, col := s.name(), -1
		for i, m := range members {
			if string(name) == m {
				col = i
			}
		}
		v := s.value()
		if col >= 0 {
			cells[col] = v
		}
	}
	return cells
}

// value steps over one value and returns its text.
func (s *scan) value() []byte {
	s.got(0) // white space
	start, depth := s.at, 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.str()
			if depth == 0 {
				return s.text[start:s.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.text[start:s.at] // the end of what a number or word stands in
			}
			if depth--; depth == 0 {
				s.at++
				return s.text[start:s.at]
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return s.text[start:s.at]
			}
		}
		s.at++
	}
	s.fail()
	return nil
}

// str steps over a string.
func (s *scan) str() {
	for s.at++; ; {
		n := bytes.IndexByte(s.text[s.at:], '"')
		if n < 0 {
			s.fail()
			return
		}
		end := s.at + n
		s.at = end + 1
		slashes := 0
		for s.text[end-1-slashes] == '\\' { // ends at the opening quote at the latest
			slashes++
		}
		if slashes%2 == 0 {
			return
		}
	}
}
