package recipe

import "unicode/utf8"

// appendTable writes the header and one line an item, as many whole lines as
// fit into room characters, and says how many.
func (r *Recipe) appendTable(dst []byte, items []itemView, w *formatter, room int) (out []byte, shown int) {
	start := len(dst)
	for i := range r.Fields {
		dst = append(dst, "| "...)
		dst = appendCell(dst, r.Fields[i].Label)
		dst = append(dst, ' ')
	}
	dst = append(dst, "|\n"...)
	for range r.Fields {
		dst = append(dst, "| --- "...)
	}
	dst = append(dst, '|')
	if room -= utf8.RuneCount(dst[start:]); room < 0 {
		return dst[:start], 0
	}
	for i := range items {
		row := len(dst)
		dst = append(dst, '\n')
		for j := range r.Fields {
			dst = append(dst, "| "...)
			cell := len(dst)
			dst = w.appendField(dst, &items[i], &r.Fields[j], place{table: true, chars: cellChars, base: cell})
			if len(dst) > cell {
				dst = append(dst, ' ')
			}
		}
		dst = append(dst, '|')
		if room -= utf8.RuneCount(dst[row:]); room < 0 {
			return dst[:row], i
		}
	}
	return dst, len(items)
}

// appendCell escapes a label or another text of the recipe for one line.
func appendCell(dst []byte, s string) []byte {
	return appendText(dst, clean(s, false), "", false, len(dst))
}
