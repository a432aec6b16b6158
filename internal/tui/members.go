package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// members are the members of a JSON object in their order, their values as
// they were written: a form changes some and leaves all others alone.
type members []member

type member struct {
	key string
	raw json.RawMessage
}

func parseMembers(data []byte) (members, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is JSON, but not an object")
	}
	var ms members
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("reading a member: %w", err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("reading a member: %w", err)
		}
		ms = append(ms, member{key.(string), raw}) // inside an object a key is a string
	}
	return ms, nil
}

// checkJSON says where a text stops being JSON.
func checkJSON(data []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(data, &any)
	var bad *json.SyntaxError
	if !errors.As(err, &bad) {
		return err
	}
	before := data[:min(max(int(bad.Offset)-1, 0), len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("it is not JSON: line %d, column %d: %w", line, column, bad)
}

func (ms members) get(key string) json.RawMessage {
	for _, m := range ms {
		if m.key == key {
			return m.raw
		}
	}
	return nil
}

// text is a member that is a string; "" for any other.
func (ms members) text(key string) string {
	var s string
	if json.Unmarshal(ms.get(key), &s) != nil {
		return ""
	}
	return s
}

// object is a member that is an object; none for any other.
func (ms members) object(key string) members {
	o, err := parseMembers(ms.get(key))
	if err != nil {
		return nil
	}
	return o
}

// set changes a member where it is, or adds it.
func (ms *members) set(key string, v any) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		raw = encode(v)
	}
	for i := range *ms {
		if (*ms)[i].key == key {
			(*ms)[i].raw = raw
			return
		}
	}
	*ms = append(*ms, member{key, raw})
}

func (ms *members) drop(key string) {
	*ms = slices.DeleteFunc(*ms, func(m member) bool { return m.key == key })
}

func (ms members) bytes() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range ms {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(m.key))
		b.WriteByte(':')
		b.Write(m.raw)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// encode writes a string, a bool, a list of strings or members as JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null") // not for these
	}
	return bytes.TrimSpace(b.Bytes())
}

// sameJSON reports whether two documents are equal but for white space.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}
