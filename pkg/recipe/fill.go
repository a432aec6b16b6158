package recipe

import (
	"slices"
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
	marks := 0 // of the next text, around nothing
	for i := range t.parts {
		p := &t.parts[i]
		if w.block {
			dst = w.leaveBlock(dst, p.text)
		}
		before := len(dst)
		if !p.hole {
			dst = append(dst, p.text[marks:]...)
			marks = 0
		} else {
			pl := place{multi: p.spot == spotText, chars: documentChars, table: p.row, base: start}
			pl.start = pl.multi && opensBlock(dst[start:])
			dst = w.appendHole(dst, p, it, fields, pl)
			if len(dst) == before {
				marks = t.marksAround(i)
				dst = dst[:before-marks]
				continue
			}
		}
		dst = t.seam(dst, start, before, i)
	}
	if w.block {
		w.block = false
		for len(dst) > start && dst[len(dst)-1] == '\n' {
			dst = dst[:len(dst)-1]
		}
	}
	return dst
}

// leaveBlock separates what comes behind a block of Markdown, whose last line
// nothing may join. text is the author's; "" stands for a placeholder.
func (w *formatter) leaveBlock(dst []byte, text string) []byte {
	w.block = false
	lines := strings.TrimLeft(text, " \t")
	switch {
	case text != "" && lines == "":
		w.block = true // only spaces: what comes then decides
	case !strings.HasPrefix(lines, "\n"):
		dst = append(dst, "\n\n"...)
	case !w.nested && !strings.HasPrefix(strings.TrimLeft(lines[1:], " \t"), "\n"):
		dst = append(dst, '\n')
	}
	return dst
}

// marksAround is the length of the run of marks, as in **{{path}}**, that stands
// on both sides of placeholder i: with nothing between them they would be a rule
// or show themselves.
func (t *Template) marksAround(i int) int {
	if i == 0 || i+1 >= len(t.parts) || t.parts[i].spot == spotFence || t.parts[i].spot == spotURL {
		return 0
	}
	before, after := t.parts[i-1].text, t.parts[i+1].text // "" of a placeholder
	if before == "" || after == "" || strings.IndexByte("*_~`", after[0]) < 0 {
		return 0
	}
	inner := strings.TrimRight(before, after[:1])
	n := len(before) - len(inner)
	if n != len(after)-len(strings.TrimLeft(after, after[:1])) || strings.HasSuffix(inner, `\`) {
		return 0
	}
	return n
}

// seam keeps what part i wrote at dst[at:] from meaning something together
// with what stands before it: an image, a link, a reference, an escape.
func (t *Template) seam(dst []byte, start, at, i int) []byte {
	if at == len(dst) || at == start {
		return dst
	}
	hole := t.parts[i].hole
	spot := t.parts[i].spot
	if !hole {
		if i == 0 {
			return dst
		}
		spot = t.parts[i-1].spot
	}
	if spot != spotText && spot != spotLine {
		return dst
	}
	return joinSafely(dst, start, at, hole)
}

// joinSafely escapes the byte before dst[at] or that byte itself where the two
// would act together, and sets code spans apart. value says that dst[at:] is a value and not the author's.
func joinSafely(dst []byte, start, at int, value bool) []byte {
	before := dst[at-1]
	if escaped(dst[start:], at-1-start) {
		return dst
	}
	switch {
	case before == '!' && dst[at] == '[':
		at--
	case value && before == ']' && (dst[at] == '(' || dst[at] == ':'):
	case value && before == '\\':
	case before == '`' && dst[at] == '`':
		return slices.Insert(dst, at, ' ') // two code spans; no escape counts beside them
	default:
		return dst
	}
	return slices.Insert(dst, at, '\\')
}

// appendTitle fills a template of one line, as Markdown or as plain text.
func (t *Template) appendTitle(dst []byte, it *itemView, fields []Field, w *formatter, raw bool) []byte {
	start := len(dst)
	marks := 0 // of the next text, around nothing
	for i := range t.parts {
		p := &t.parts[i]
		before := len(dst)
		if !p.hole {
			dst = append(dst, cleanEdge(p.text[marks:])...)
			marks = 0
		} else {
			dst = w.appendHole(dst, p, it, fields, place{chars: documentChars, raw: raw, base: start})
			if len(dst) == before && !raw {
				marks = t.marksAround(i)
				dst = dst[:before-marks]
				continue
			}
		}
		if !raw {
			dst = t.seam(dst, start, before, i)
		}
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
	pl.raw, pl.multi, pl.target = true, p.spot == spotFence, p.spot == spotURL
	if url, ok := v.(string); ok && pl.target && isAddress(format.Kind) && format.Prefix == "" && format.Suffix == "" {
		if len(url) > 2*maxLinkURL {
			return dst // a part of an address leads elsewhere
		}
		if url = strings.Trim(url, " \t\r\n"); url != "" {
			return appendTarget(dst, url, p.after)
		}
	}
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
	case spotURL:
		return appendTarget(dst, text, p.after)
	}
	return append(dst, text...)
}

// isAddress reports whether a text of the format is an address as it is.
func isAddress(k Kind) bool {
	return k == KindAuto || k == KindText || k == KindLink || k == KindImage
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
