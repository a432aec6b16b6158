package recipe

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// maxHTMLBytes bounds what is read of one HTML value: style sheets and markup
// without any text in it end somewhere.
const maxHTMLBytes = 1 << 18

// htmlText is the text of an HTML fragment, enough of it for limit characters;
// more says that there is something behind it. Tags are dropped, block tags
// end lines, and scripts, styles and comments go with what is in them.
// Character references are decoded once: what they spell is text.
func htmlText(s string, limit int) (text string, more bool) {
	if strings.IndexByte(s, '<') < 0 {
		// No tag: a plain text under another name, which keeps its lines.
		short := atMost(s, limit)
		return html.UnescapeString(short), len(short) < len(s)
	}
	if len(s) > maxHTMLBytes {
		end := maxHTMLBytes
		for !utf8.RuneStart(s[end]) {
			end--
		}
		s, more = s[:end], true
		if tag := strings.LastIndexByte(s, '<'); tag >= 0 && strings.IndexByte(s[tag:], '>') < 0 {
			s = s[:tag] // half a tag
		}
	}
	var w htmlWriter
	z := html.NewTokenizer(strings.NewReader(s))
	for enough := 16*limit + 256; ; {
		switch z.Next() {
		case html.ErrorToken: // the end: a tokenizer finds no fault
			return string(w.out), more
		case html.TextToken:
			if w.dropped == "" {
				w.text(z.Text())
			}
			if len(w.out) > enough {
				return atMost(string(w.out), limit), true
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			w.open(string(name))
		case html.EndTagToken:
			name, _ := z.TagName()
			w.close(string(name))
		}
	}
}

// An htmlWriter lays out the text of HTML the way a page does: white space is
// one space, and breaks count only between texts.
type htmlWriter struct {
	out     []byte
	gap     htmlGap
	pre     int    // open pre tags
	dropped string // the element whose content is dropped
	depth   int    // of elements of that name
}

type htmlGap uint8

const (
	gapNone htmlGap = iota
	gapSpace
	gapLine
	gapParagraph
)

func (w *htmlWriter) text(t []byte) {
	for _, c := range t {
		switch {
		case c == '\n' && w.pre > 0:
			w.breakLine()
			continue
		case c == ' ' && w.pre > 0:
		case c == ' ', c == '\t', c == '\n', c == '\r', c == '\f':
			w.gap = max(w.gap, gapSpace)
			continue
		}
		if len(w.out) > 0 {
			w.out = append(w.out, [...]string{"", " ", "\n", "\n\n"}[w.gap]...)
		}
		w.gap = gapNone
		w.out = append(w.out, c)
	}
}

// breakLine ends the line; the second one in a row leaves a blank line.
func (w *htmlWriter) breakLine() {
	if w.gap < gapLine {
		w.gap = gapLine
	} else {
		w.gap = gapParagraph
	}
}

func (w *htmlWriter) open(tag string) {
	if w.dropped != "" {
		if tag == w.dropped {
			w.depth++
		}
		return
	}
	switch tag {
	case "script", "style", "noscript", "template", "iframe", "noembed", "noframes":
		// The last five hold what a page with this one does not show.
		w.dropped, w.depth = tag, 1
		return
	case "br":
		w.breakLine()
		return
	case "pre":
		w.pre++
	}
	w.gap = max(w.gap, blockGap(tag))
}

func (w *htmlWriter) close(tag string) {
	if w.dropped != "" {
		if tag == w.dropped {
			if w.depth--; w.depth == 0 {
				w.dropped = ""
			}
		}
		return
	}
	if tag == "pre" && w.pre > 0 {
		w.pre--
	}
	w.gap = max(w.gap, blockGap(tag))
}

// blockGap is the distance that the start or end of a tag makes.
func blockGap(tag string) htmlGap {
	switch tag {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "ul", "ol", "dl", "table", "hr", "figure",
		"article", "section", "header", "footer", "form", "fieldset", "details", "title":
		return gapParagraph
	case "address", "aside", "body", "caption", "center", "dd", "dialog", "dir", "div", "dt", "figcaption", "head", "hgroup",
		"html", "legend", "li", "main", "menu", "nav", "option", "search", "summary", "tbody", "tfoot", "thead", "tr":
		return gapLine
	case "td", "th":
		return gapSpace
	}
	return gapNone
}
