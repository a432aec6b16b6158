package recipe

import (
	"bytes"
	"slices"
	"strings"
)

// appendMarkdown writes a value of format markdown. A single line goes where it
// stands; everything else is a block of its own, behind a blank line unless it
// stands at the start of one.
func (w *formatter) appendMarkdown(dst []byte, s string, f *Format, limit int, pl place) []byte {
	short := atMost(s, limit)
	more := len(short) < len(s)
	text, cut := cutChars(clean(short, true), limit+maxTargetBytes)
	if text == "" {
		return appendWrapped(dst, piece{}, f, true, pl)
	}
	more = more || cut
	if strings.IndexByte(text, '\n') < 0 && !startsBlock(text) {
		md, cut := cutMarkdown(passInline(text), limit+1) // the mark of a cut does not count
		if more && !cut {
			md += ellipsis
		}
		return w.appendInline(dst, md, f, pl)
	}
	lead := w.openBlock(&dst, pl)
	above := dst[:len(dst)-len(lead)]
	filled := len(above) > pl.base && !bytes.HasSuffix(above, []byte("\n\n")) && pl.indent == ""
	md, cut := cutMarkdown(passMarkdown(text, filled), limit+1)
	if more && !cut {
		md += "\n\n" + ellipsis
	}
	for i, line := range strings.Split(md, "\n") {
		if i > 0 {
			dst = append(dst, '\n')
			if line == "" {
				dst = append(dst, strings.TrimRight(lead, " ")...)
				continue
			}
			dst = append(dst, lead...)
		}
		dst = append(dst, line...)
	}
	w.block, w.nested = pl.indent == "", lead != ""
	return dst
}

// appendInline writes a line of Markdown between prefix and suffix.
func (w *formatter) appendInline(dst []byte, md string, f *Format, pl place) []byte {
	if f.Prefix != "" {
		dst = appendPiece(dst, piece{kind: pieceText, text: cleanEdge(f.Prefix)}, pl)
	}
	at := len(dst)
	if dst = append(dst, md...); f.Prefix != "" {
		dst = joinSafely(dst, 0, at, true)
	}
	if f.Suffix != "" {
		pl.start = false
		at = len(dst)
		dst = appendPiece(dst, piece{kind: pieceText, text: cleanEdge(f.Suffix)}, pl)
		if at < len(dst) {
			dst = joinSafely(dst, 0, at, true)
		}
	}
	return dst
}

// openBlock goes to where a block can stand and returns what each of its lines
// but the first needs before it.
func (w *formatter) openBlock(dst *[]byte, pl place) string {
	d := *dst
	if pl.indent != "" {
		*dst = append(append(trimSpaces(d), "\n\n"...), pl.indent...)
		return pl.indent
	}
	from := max(bytes.LastIndexByte(d, '\n')+1, pl.base)
	marks := string(d[from:])
	if marks == "" {
		return ""
	}
	if blockMarks(marks) < len(marks) || marks[len(marks)-1] != ' ' && marks[len(marks)-1] != '>' {
		*dst = append(trimSpaces(d), "\n\n"...)
		return ""
	}
	lead := []byte(marks)
	for i, c := range lead {
		if c != '>' {
			lead[i] = ' '
		}
	}
	if from > pl.base && !bytes.HasSuffix(d[:from], []byte("\n\n")) && strings.IndexByte(marks, '>') < 0 {
		// Without a blank line before it, it might be more of a paragraph.
		*dst = slices.Insert(d, from, '\n')
	}
	return string(lead)
}

// startsBlock reports whether a line is more than text of a paragraph.
func startsBlock(line string) bool {
	return blockMarks(line) > 0 || headingMark(line) > 0 || fenceOf(line) != "" || isUnderline(line) || isTableRule(line)
}
