package recipe

import "encoding/json"

// A Value is a decoded JSON value: nil, bool, json.Number, string, Array or
// Object. Numbers keep their source text.
type Value any

// An Array is a JSON array.
type Array []Value

// An Object is a JSON object with its members in document order, which is
// meaning: column order, record order, body order.
type Object []Member

// A Member is one name and value of an Object.
type Member struct {
	Key   string
	Value Value
}

// Get returns the value of the last member called key.
func (o Object) Get(key string) (Value, bool) {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].Key == key {
			return o[i].Value, true
		}
	}
	return nil, false
}

var _ Value = json.Number("") // the number type of a Value
