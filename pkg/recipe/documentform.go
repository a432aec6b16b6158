package recipe

import (
	"encoding/json"
	"strconv"
)

// Document gives the recipe as a document: known keys in the order of the
// format's page, without those that say what is the default. Parse of it gives
// an equal recipe. A recipe made by Plain has no document and gives nil.
func (r *Recipe) Document() Object {
	if r.plain {
		return nil
	}
	var o Object
	o.add("schemaVersion", number1Doc)
	o.add("select", r.Select.text)
	if r.Shape != List && r.Shape != "" {
		o.add("shape", string(r.Shape))
	}
	switch h := r.header(); {
	case h.First:
		o.add("header", "first")
	case !h.Path.IsZero():
		o.add("header", h.Path.text)
	}
	o.add("mode", string(r.Mode))
	if r.Title != nil {
		o.add("title", r.Title.String())
	}
	if r.Body != nil {
		o.add("template", r.Body.String())
	}
	if len(r.Fields) > 0 {
		fields := make(Object, 0, len(r.Fields))
		for i := range r.Fields {
			fields.add(r.Fields[i].Label, r.Fields[i].document())
		}
		o.add("fields", fields)
	}
	if len(r.Record) > 0 {
		record := make(Object, 0, len(r.Record))
		for i := range r.Record {
			record.add(r.Record[i].Key, r.Record[i].Path.text)
		}
		o.add("record", record)
	}
	if r.Error != nil {
		o.add("error", r.Error.text)
	}
	var limits Object
	limits.addInt("maxItems", r.Limits.MaxItems, defaultMaxItems)
	limits.addInt("maxChars", r.Limits.MaxChars, defaultMaxChars)
	if limits != nil {
		o.add("limits", limits)
	}
	if r.Pagination.Type != "" {
		o.add("pagination", r.Pagination.document())
	}
	if r.Index != "" {
		o.add("index", r.Index)
	}
	return o
}

const number1Doc = json.Number("1")

func (o *Object) add(key string, v Value) { *o = append(*o, Member{key, v}) }

// addText adds a string that is neither empty nor the default.
func (o *Object) addText(key, s, standard string) {
	if s != "" && s != standard {
		o.add(key, s)
	}
}

// addInt adds a number that is neither 0 nor the default.
func (o *Object) addInt(key string, n, standard int) {
	if n != 0 && n != standard {
		o.add(key, json.Number(strconv.Itoa(n)))
	}
}

// document is the path alone, or an object when there is more to say.
func (f *Field) document() Value {
	var o Object
	t := &f.Format
	o.add("path", f.Path.text)
	o.addText("format", string(t.Kind), "")
	o.addText("prefix", t.Prefix, "")
	o.addText("suffix", t.Suffix, "")
	o.addText("default", t.Default, "")
	o.addInt("maxChars", t.MaxChars, 0)
	// Decimals of a Format written in Go by its zero value mean nothing for
	// kinds that have none.
	if t.Decimals >= 0 && (t.Kind == KindNumber || t.Kind == KindCurrency || t.Kind == KindPercent) {
		o.add("decimals", json.Number(strconv.Itoa(t.Decimals)))
	}
	if t.Scale != "" {
		o.add("scale", json.Number(t.Scale))
	}
	if t.Group {
		o.add("group", true)
	}
	o.addText("currency", t.Currency, "")
	o.addText("unit", t.Unit, "")
	o.addText("true", t.True, "")
	o.addText("false", t.False, "")
	if t.Text != nil {
		o.add("text", t.Text.text)
	}
	o.addText("join", t.Join, "")
	if t.Item != nil {
		o.add("item", t.Item.text)
	}
	o.addText("each", string(t.Each), "")
	o.addInt("maxItems", t.MaxItems, 0)
	if len(o) == 1 {
		return f.Path.text
	}
	return o
}

func (p *Pagination) document() Object {
	var o Object
	o.add("type", p.Type)
	o.addSource("next", p.Next)
	o.addText("cursorParam", p.CursorParam, "")
	o.addSource("nextUrl", p.NextURL)
	o.addText("rel", p.Rel, "next")
	o.addText("offsetParam", p.OffsetParam, "")
	o.addInt("start", p.Start, 0)
	o.addText("step", p.Step, "items")
	if p.In != "query" {
		o.addText("in", p.In, "")
	}
	o.addText("limitParam", p.LimitParam, "")
	o.addInt("pageSize", p.PageSize, 0)
	o.addSource("total", p.Total)
	o.addSource("hasMore", p.HasMore)
	// true is the default of paged types, false the only value without one.
	if p.HasMore != nil && p.HasMoreWhen != p.Paged() {
		o.add("hasMoreWhen", p.HasMoreWhen)
	}
	standard := defaultMaxPages
	if !p.Paged() {
		standard = 0
	}
	o.addInt("maxPages", p.MaxPages, standard)
	return o
}

func (o *Object) addSource(key string, s *Source) {
	switch {
	case s == nil:
	case s.Header != "":
		o.add(key, "header:"+s.Header)
	default:
		o.add(key, s.Path.text)
	}
}
