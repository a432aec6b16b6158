package recipe

import (
	"strconv"
	"unicode/utf8"
)

// appendList writes the elements of a list, a scalar being a list of one.
func (w *formatter) appendList(dst []byte, v Value, f *Format, it *itemView, pl place) []byte {
	limit := f.MaxChars
	if limit <= 0 {
		limit = pl.chars
	}
	join := f.Join
	if join == "" {
		join = ", "
	}
	list := w.elements(v, f, it, limit, utf8.RuneCountInString(join))
	if len(list) < 2 {
		var p piece
		if len(list) == 1 {
			p = list[0]
		}
		return appendWrapped(dst, p, f, true, pl)
	}
	if join == "\n" && pl.multi && !pl.raw {
		return appendBullets(dst, list, pl)
	}
	join = cleanEdge(join)
	for i := range list {
		if i > 0 {
			pl.start = false
			dst = appendPiece(dst, piece{kind: pieceText, text: join}, pl)
		}
		at := len(dst)
		if dst = appendPiece(dst, list[i], pl); i > 0 && at < len(dst) && !pl.raw {
			dst = joinSafely(dst, 0, at, false)
		}
	}
	return dst
}

// appendBullets writes a nested list.
func appendBullets(dst []byte, list []piece, pl place) []byte {
	for i := range list {
		if i > 0 || !pl.start {
			dst = append(trimSpaces(dst), '\n')
		}
		dst = append(dst, pl.indent...)
		dst = append(dst, "- "...)
		dst = appendPiece(dst, list[i], place{start: true, base: len(dst)})
	}
	return dst
}

// elements formats the elements that are shown: at most f.MaxItems of those
// that have a value, and at most limit characters of text in all.
func (w *formatter) elements(v Value, f *Format, it *itemView, limit, joinChars int) []piece {
	all, ok := v.(Array)
	if !ok {
		all = Array{v}
	}
	most := f.MaxItems
	if most <= 0 {
		most = listItems
	}
	each := Format{Kind: f.Each, Decimals: -1}
	list, left, extra := w.pieces[:0], limit, 0
	for i, e := range all {
		if len(list) == most && i > countedElements {
			extra += len(all) - i // the rest counts without a look
			break
		}
		if f.Item != nil {
			element := *it
			element.value = e
			e, _ = element.at(*f.Item, false)
		}
		if e == nil || e == "" {
			continue
		}
		if len(list) == most {
			extra++
			continue
		}
		if len(list) > 0 {
			left -= joinChars
		}
		if left <= 0 {
			list = append(list, piece{kind: pieceText, text: ellipsis})
			extra = 0
			break
		}
		p := w.piece(e, elementKind(e, f.Each), &each, it, left, false)
		if p.kind == pieceNone {
			continue
		}
		list = append(list, p)
		if left -= utf8.RuneCountInString(p.text); left < 0 {
			extra = 0 // this one was cut and ends with an ellipsis
			break
		}
	}
	if extra > 0 {
		list = append(list, piece{kind: pieceText, text: ellipsis + " +" + strconv.Itoa(extra) + " more"})
	}
	w.pieces = list
	return list
}

// elementKind is the format of a list element; what is no scalar is shown as
// JSON unless the recipe says otherwise.
func elementKind(v Value, each Kind) Kind {
	if each != KindAuto {
		return each
	}
	switch v.(type) {
	case Array, Object:
		return KindJSON
	}
	return KindText
}
