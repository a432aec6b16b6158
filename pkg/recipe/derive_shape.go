package recipe

import (
	"encoding/json"
	"strings"
)

// isThing reports whether an object is a thing of its own: it names itself
// and says at least two more facts, or keeps them in a member for that.
func isThing(o Object) bool {
	facts, ident, kind, holds := 0, false, false, false
	for _, m := range o[:min(len(o), deriveMembers)] {
		if inner, ok := m.Value.(Object); ok && len(inner) > 0 {
			switch m.Key {
			case "attributes", "fields", "properties", "_source", "snippet":
				holds = true
			case "metadata":
				holds = true
				ident = ident || isFullString(memberValue(inner, "name"))
			}
			continue
		}
		kind = kind || m.Key == "kind" && isFullString(m.Value)
		if !isFact(m) {
			continue
		}
		facts++
		ident = ident || identNames[strings.ToLower(m.Key)]
	}
	return ident && (facts >= 3 || holds && (facts >= 1 || kind))
}

// isNamedThing reports whether an object has an identity, a name and more:
// then a list under a name such as "items" is a part of it, not the answer.
func isNamedThing(o Object) bool {
	facts, id, name := 0, false, false
	for _, m := range o[:min(len(o), deriveMembers)] {
		if !isFact(m) {
			continue
		}
		facts++
		switch strings.ToLower(m.Key) {
		case "id", "_id", "sid", "uuid", "key", "iid":
			id = true
		case "name", "title", "number", "full_name", "subject", "summary", "login":
			name = true
		}
	}
	return id && name && facts >= 4
}

// isFact reports whether a member says something about its object.
func isFact(m Member) bool {
	switch v := m.Value.(type) {
	case string:
		return v != "" && !isWebURL(v) && !envelopeNames[strings.ToLower(m.Key)] && !strings.HasPrefix(m.Key, "@")
	case json.Number:
		return !envelopeNames[strings.ToLower(m.Key)]
	default:
		return false
	}
}

// ownFacts counts what an object says itself, its totals aside.
func ownFacts(o Object) int {
	n := 0
	for _, m := range o[:min(len(o), deriveMembers)] {
		if !isFact(m) {
			continue
		}
		switch w := keyWords(m.Key); {
		case len(w) == 0:
		case w[0] == "total" || w[len(w)-1] == "count" || w[0] == "page" || w[0] == "num" || w[0] == "nb":
		case w[len(w)-1] == "uri" || w[len(w)-1] == "url" || w[0] == "status" || w[0] == "message" || w[0] == "start" || w[0] == "end":
		default:
			n++
		}
	}
	return n
}

func countScalars(o Object) int {
	n := 0
	for _, m := range o {
		if m.Value != nil && singleValue(m.Value) {
			n++
		}
	}
	return n
}

// isMap reports whether an object is a map: its keys are data. A map of single
// values, or of lists of them, that has a credential among them is none: all of its values would be
// shown.
func (d *deriver) isMap(o Object) bool {
	if len(o) < 3 {
		return false
	}
	objects, lists, kind, same := 0, 0, "", true
	for _, m := range o {
		switch v := m.Value.(type) {
		case Object:
			objects++
		case Array:
			if c := arrayContent(v); c != foundScalars && c != foundNothing {
				return false
			}
			lists++
		case nil:
		default:
			k := sampleKind(m.Value)
			if kind == "" {
				kind = k
			}
			same = same && k == kind
		}
	}
	switch {
	case lists > 0:
		return lists == len(o) && (len(o) > 20 || keysLookLikeData(o)) && !isParallel(o) && !d.hidesAny(o)
	case objects == 0:
		return same && kind != "" && (len(o) > 20 || keysLookLikeData(o)) && !d.hidesAny(o)
	case objects < len(o):
		return false
	}
	return (shareKeys(o) || len(o) > 20 || keysLookLikeData(o)) && !d.hidesAny(o)
}

// hidesAny reports whether a key of a map, or a text in it, must not be shown.
func (d *deriver) hidesAny(o Object) bool {
	for _, m := range o {
		s, _ := m.Value.(string)
		if d.hidden(m.Key) || looksSecret(m.Key) || looksSecret(s) {
			return true
		}
	}
	return false
}

// shareKeys reports whether the members of a map of objects have at least half
// of their keys in common, judged by the first.
func shareKeys(o Object) bool {
	first, _ := o[0].Value.(Object)
	if len(first) == 0 {
		return false
	}
	first = first[:min(len(first), 100)]
	n := min(len(o), deriveItems)
	for _, m := range o[1:n] {
		other, _ := m.Value.(Object)
		keys := make(map[string]bool, min(len(other), 100))
		for _, x := range other[:min(len(other), 100)] {
			keys[x.Key] = true
		}
		common := 0
		for _, x := range first {
			if keys[x.Key] {
				common++
			}
		}
		if common*2 < max(len(first), len(keys)) {
			return false
		}
	}
	return true
}

// keysLookLikeData reports whether the keys look like values: codes, digits, dates,
// generated ids, pairs, hexadecimal.
func keysLookLikeData(o Object) bool {
	for _, m := range o[:min(len(o), deriveItems)] {
		if !isDataKey(m.Key) {
			return false
		}
	}
	return true
}

func isDataKey(k string) bool {
	if k == "" || len(k) > deriveKey {
		return false
	}
	var digits, upper, lower, other int
	for i := 0; i < len(k); i++ {
		switch c := k[i]; {
		case digitByte(c):
			digits++
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		default:
			other++
		}
	}
	switch {
	case upper == len(k):
		return len(k) >= 2 && len(k) <= 6
	case digits > 0 && upper == 0 && lower == 0:
		return true // digits, dates, times, signed numbers
	case k[0] == '-' && len(k) >= 16:
		return true // a push id
	case len(k) >= 8 && other == 0 && digits > 0 && allHex(k):
		return true
	case len(k) == 7 && k[3] == '_' && lower+upper == 6:
		return true // usd_eur
	default:
		return false
	}
}

// isParallel reports whether an object is at least two equally long arrays of
// single values and at most two other values.
func isParallel(o Object) bool {
	n, length, others := 0, 0, 0
	for _, m := range o[:min(len(o), deriveMembers)] {
		a, ok := m.Value.(Array)
		if !ok {
			others++
			continue
		}
		if len(a) < 2 || arrayContent(a) != foundScalars || n > 0 && len(a) != length {
			return false
		}
		length = len(a)
		n++
	}
	return n >= 2 && others <= 2
}

// onlyMember gives the one object in an object that holds nothing else but
// the words of an envelope.
func onlyMember(o Object) (string, Object) {
	var key string
	var inner Object
	for _, m := range o {
		if v, ok := m.Value.(Object); ok && !isAside(m.Key) {
			if inner != nil {
				return "", nil
			}
			key, inner = m.Key, v
			continue
		}
		switch k := strings.ToLower(m.Key); {
		case m.Value == nil || asideNames[k] || envelopeNames[k]:
		case k == "message" || k == "code" || k == "version":
		default:
			return "", nil
		}
	}
	if len(inner) == 0 {
		return "", nil
	}
	return key, inner
}

// emptyListIn gives the key of an empty list that would have been the answer.
func emptyListIn(o Object) string {
	for _, name := range listNames {
		if key, a := arrayMember(o, name); a != nil && len(a) == 0 {
			return key
		}
	}
	if ownFacts(o) > 0 {
		return ""
	}
	for _, m := range o {
		if a, ok := m.Value.(Array); ok && len(a) == 0 && !asideNames[strings.ToLower(m.Key)] {
			return m.Key
		}
	}
	return ""
}

// arrayMember gives the array of o under a name, ignoring case.
func arrayMember(o Object, name string) (string, Array) {
	for _, m := range o {
		if len(m.Key) == len(name) && strings.EqualFold(m.Key, name) {
			if a, ok := m.Value.(Array); ok {
				return m.Key, a
			}
		}
	}
	return "", nil
}

func memberValue(o Object, key string) Value {
	v, _ := o.Get(key)
	return v
}

// withoutDuplicates gives an object without its overwritten duplicates, at most
// deriveMembers wide unless it is a map of more.
func withoutDuplicates(o Object) Object {
	at := make(map[string]int, len(o))
	out := make(Object, 0, len(o))
	for _, m := range o {
		if i, ok := at[m.Key]; ok {
			out[i].Value = m.Value
			continue
		}
		at[m.Key] = len(out)
		out = append(out, m)
	}
	return out
}
