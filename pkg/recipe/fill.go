package recipe

import (
	"strings"
)

// Render fills the template from an item and the body it came from, which is
// what paths starting with $ are resolved against. Missing values are empty,
// and so is every {{field:Label}}, since a template alone has no fields.
func (t *Template) Render(item, root Value) string {
	it := itemView{value: item, root: root, index: -1}
	return string(t.appendBody(nil, &it, nil, &formatter{}))
}

// appendBody fills a template of several lines.
func (t *Template) appendBody(dst []byte, it *itemView, fields []Field, w *formatter) []byte {
	start := len(dst)
	bang := false // the last placeholder ended with a '!' of its value
	for i := range t.parts {
		p := &t.parts[i]
		before := len(dst)
		if !p.hole {
			dst = append(dst, p.text...)
		} else {
			pl := place{multi: p.spot == spotText, chars: documentChars, table: p.row, base: start}
			pl.start = pl.multi && opensBlock(dst[start:])
			dst = w.appendHole(dst, p, it, fields, pl)
		}
		if bang && len(dst) > before && dst[before] == '[' {
			// "!" and a link would become an image.
			dst = append(dst, 0)
			copy(dst[before:], dst[before-1:])
			dst[before-1] = '\\'
		}
		if len(dst) > before {
			bang = p.hole && dst[len(dst)-1] == '!'
		}
	}
	return dst
}

// appendTitle fills a template of one line, as Markdown or as plain text.
func (t *Template) appendTitle(dst []byte, it *itemView, fields []Field, w *formatter, raw bool) []byte {
	start := len(dst)
	for i := range t.parts {
		p := &t.parts[i]
		if !p.hole {
			dst = append(dst, cleanEdge(p.text)...)
			continue
		}
		dst = w.appendHole(dst, p, it, fields, place{chars: documentChars, raw: raw, base: start})
	}
	return dst
}

// appendHole writes the value of one placeholder, made fit for where it stands.
func (w *formatter) appendHole(dst []byte, p *templatePart, it *itemView, fields []Field, pl place) []byte {
	format, path := &Format{Kind: p.format, Decimals: -1}, p.path
	if p.label != "" {
		f := fieldNamed(fields, p.label)
		if f == nil {
			return dst
		}
		format, path = &f.Format, f.Path
	}
	v, _ := it.at(path, format.Kind == KindList)
	if pl.raw || p.spot == spotText || p.spot == spotLine {
		if pl.start && continuesNumber(dst) {
			pl.start = false
			from := len(dst)
			return guardNumber(w.appendValue(dst, v, format, it, pl), from)
		}
		return w.appendValue(dst, v, format, it, pl)
	}
	pl.raw, pl.multi = true, p.spot == spotFence
	from := len(dst)
	dst = w.appendValue(dst, v, format, it, pl)
	text := string(dst[from:])
	dst = dst[:from]
	switch p.spot {
	case spotFence:
		text = strings.ReplaceAll(strings.ReplaceAll(text, "```", "'''"), "~~~", "'''")
	case spotCode:
		text = strings.ReplaceAll(text, "`", "'")
		if pl.table {
			text = strings.ReplaceAll(strings.ReplaceAll(text, `\|`, "|"), "|", `\|`)
		}
	case spotURLStart:
		if !linkable(text) {
			text = strings.ReplaceAll(text, ":", "%3A") // no scheme of the server's choice
		}
		return appendURL(dst, text)
	case spotURL:
		return appendURL(dst, text)
	}
	return append(dst, text...)
}

func fieldNamed(fields []Field, label string) *Field {
	for i := range fields {
		if fields[i].Label == label {
			return &fields[i]
		}
	}
	return nil
}

// opensBlock reports whether what follows dst stands where a line of Markdown
// begins: at the start, behind a line break, or behind nothing but marks of
// lists and quotations.
func opensBlock(dst []byte) bool {
	for i := len(dst) - 1; i >= 0 && dst[i] != '\n'; i-- {
		if strings.IndexByte(" \t>-+*0123456789.)", dst[i]) < 0 {
			return false
		}
	}
	return true
}

// continuesNumber reports whether the line so far is only digits, which a dot
// or a parenthesis would turn into a list item.
func continuesNumber(dst []byte) bool {
	n := 0
	for i := len(dst) - 1; i >= 0 && dst[i] != '\n'; i-- {
		if !asciiDigit(dst[i]) {
			return false
		}
		n++
	}
	return n > 0
}

// guardNumber escapes the dot or parenthesis behind a number that goes on at
// dst[from:].
func guardNumber(dst []byte, from int) []byte {
	for from < len(dst) && asciiDigit(dst[from]) {
		from++
	}
	if from < len(dst) && (dst[from] == '.' || dst[from] == ')') {
		dst = append(dst, 0)
		copy(dst[from+1:], dst[from:])
		dst[from] = '\\'
	}
	return dst
}
