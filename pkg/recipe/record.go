package recipe

import "cmp"

// maxRecordBytes bounds the records of one result, as compact JSON: they go
// into an agent's context, whose size is the scarce thing.
const maxRecordBytes = 80_000

// record makes the record of one item: the recipe's keys, else the labels of
// its fields, with raw values; else the item itself. The members are taken from
// room, which has enough of them.
func (r *Recipe) record(it *itemView, room Object) Value {
	switch {
	case len(r.Record) > 0:
		o := room[:len(r.Record):len(r.Record)]
		for i := range r.Record {
			v, _ := it.at(r.Record[i].Path, false)
			o[i] = Member{r.Record[i].Key, v}
		}
		return o
	case len(r.Fields) > 0:
		o := room[:len(r.Fields):len(r.Fields)]
		for i := range r.Fields {
			v, _ := it.field(&r.Fields[i])
			o[i] = Member{r.Fields[i].Label, v}
		}
		return o
	}
	return it.value
}

// recordsAtOnce is how many records share a piece of memory: few, since a
// caller may keep one of them.
const recordsAtOnce = 16

// Guesses of the size of a record: members when it is the item itself, and
// bytes of a member.
const (
	recordGuess = 8
	memberGuess = 32
)

// recordWidth is the number of members of each record; 0: it is the item.
func (r *Recipe) recordWidth() int {
	if len(r.Record) > 0 {
		return len(r.Record)
	}
	return len(r.Fields)
}

// recordsWithin makes the records of the items, as many from the start as fit
// into maxRecordBytes, and their JSON.
func (r *Recipe) recordsWithin(items []itemView) ([]Value, []byte) {
	records := make([]Value, 0, len(items))
	width := r.recordWidth()
	var room Object
	text := make([]byte, 0, min(64+len(items)*cmp.Or(width, recordGuess)*memberGuess, maxRecordBytes))
	text = append(text, '[')
	for i := range items {
		if len(room) < width {
			room = make(Object, width*min(len(items)-i, recordsAtOnce))
		}
		rec := r.record(&items[i], room)
		room = room[width:]
		before := len(text)
		if i > 0 {
			text = append(text, ',')
		}
		text = appendJSONUpTo(text, rec, len(text)+maxRecordBytes)
		if len(text)+len("]") > maxRecordBytes {
			text = text[:before]
			break
		}
		records = append(records, rec)
	}
	return records, append(text, ']')
}

// emptyFields are the labels of the fields that have a value in no item.
func (r *Recipe) emptyFields(items []itemView) []string {
	if len(items) == 0 {
		return nil
	}
	var empty []string
	for i := range r.Fields {
		found := false
		for j := 0; j < len(items) && !found; j++ {
			v, _ := items[j].field(&r.Fields[i])
			found = v != nil
		}
		if !found {
			empty = append(empty, r.Fields[i].Label)
		}
	}
	return empty
}
