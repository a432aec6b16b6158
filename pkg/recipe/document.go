package recipe

import "strings"

// maxTitleChars bounds a heading.
const maxTitleChars = 200

// body writes one item as the recipe's template or as its list of fields.
func (r *Recipe) body(dst []byte, it *itemView, w *formatter) []byte {
	if r.Body != nil {
		return r.Body.appendBody(dst, it, r.labelled(), w)
	}
	for i := range r.Fields {
		if i > 0 {
			dst = append(dst, '\n')
		}
		dst = append(dst, "- **"...)
		dst = appendCell(dst, r.Fields[i].Label)
		dst = append(dst, ":** "...)
		dst = w.appendField(dst, it, &r.Fields[i], place{multi: true, indent: "  ", chars: documentChars, base: len(dst)})
		dst = trimSpaces(dst)
	}
	return dst
}

func trimSpaces(dst []byte) []byte {
	for len(dst) > 0 && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// A title is a heading as plain text and as Markdown.
type title struct{ plain, markdown string }

// plainTitle makes a title of a text that is not Markdown.
func plainTitle(s string) title {
	s = shortTitle(s)
	return title{s, string(appendHeading(nil, s))}
}

func shortTitle(s string) string {
	s, cut := cutChars(clean(s, false), maxTitleChars)
	if cut {
		s += ellipsis
	}
	return s
}

// title fills the recipe's title from an item. It is empty when the recipe has
// none or when its values are all missing.
func (r *Recipe) title(it *itemView, w *formatter) title {
	if r.Title == nil {
		return title{}
	}
	plain := strings.TrimSpace(string(r.Title.appendTitle(nil, it, r.labelled(), w, true)))
	short := shortTitle(plain)
	if short != plain {
		return title{short, string(appendHeading(nil, short))}
	}
	md := trimSpaces(r.Title.appendTitle(nil, it, r.labelled(), w, false))
	return title{short, strings.TrimLeft(string(closeHeading(md, 0)), " ")}
}
