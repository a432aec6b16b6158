package shim

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxNesting is how deep a message may nest, as in the SDK, whose refusal
// would name no request: the client would wait for ever.
const maxNesting = 1000

// An envelope is what can be told of a line without decoding it.
type envelope struct {
	id   json.RawMessage // of a request, when it is a string or a number
	deep bool            // nested over maxNesting
}

// look reads the places of brackets and strings, and no more, so that it knows
// the id of a line that nothing else wants to read.
func look(line []byte) envelope {
	var e envelope
	var key []byte // the last string of the outermost object
	depth, start := 0, -1
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			end := stringEnd(line, i)
			if depth == 1 && start < 0 {
				key = line[i:end]
			}
			i = end - 1
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				e.deep = true
			}
		case c == ':' && depth == 1:
			start = i + 1
		}
		if c := line[i]; c == '}' || c == ']' || c == ',' && depth == 1 {
			if depth == 1 && start >= 0 && isName(key, "id") {
				e.id = scalar(line[start:i])
			}
			if depth == 1 {
				start = -1
			}
			if c != ',' {
				depth--
			}
		}
	}
	return e
}

// stringEnd is the offset behind the string that opens at i.
func stringEnd(line []byte, i int) int {
	for i++; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(line)
}

func isName(key []byte, name string) bool {
	var s string
	return json.Unmarshal(key, &s) == nil && s == name
}

// scalar is raw when it is a string or a number, and nil otherwise.
func scalar(raw []byte) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' && raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || !json.Valid(raw) {
		return nil
	}
	return raw
}

// spelled marks an id that the SDK would not write as the client did: it holds
// whole numbers as floats, so that 9007199254740993 would come back as another
// id, and 1.5 as 1. Such an id goes through the SDK as a string, this prefix
// and then the client's spelling.
const spelled = "\x00as written:"

// keepID makes r carry its id as raw spells it.
func keepID(r *jsonrpc.Request, raw json.RawMessage) {
	if r.IsCall() && raw != nil && !writtenAs(r.ID, raw) {
		r.ID, _ = jsonrpc.MakeID(spelled + string(raw)) // fails for other types only
	}
	if r.Method != "notifications/cancelled" {
		return
	}
	params := map[string]json.RawMessage{}
	if json.Unmarshal(r.Params, &params) != nil {
		return
	}
	of := scalar(params["requestId"])
	if of == nil {
		return
	}
	var v any
	_ = json.Unmarshal(of, &v) // 1e400 has no value; its spelling is enough
	if id, err := jsonrpc.MakeID(v); err == nil && writtenAs(id, of) {
		return
	}
	params["requestId"], _ = json.Marshal(spelled + string(of)) // a string
	if p, err := json.Marshal(params); err == nil {
		r.Params = p
	}
}

// writtenAs reports whether the SDK writes id as raw. A string that looks like
// one of ours is not, so that ours are never mistaken.
func writtenAs(id jsonrpc.ID, raw json.RawMessage) bool {
	if s, ok := id.Raw().(string); ok && strings.HasPrefix(s, spelled) {
		return false
	}
	return string(raw) == string(idText(id))
}

// idText is an id as it goes over the wire.
func idText(id jsonrpc.ID) []byte {
	if s, ok := id.Raw().(string); ok {
		if raw, ok := strings.CutPrefix(s, spelled); ok {
			return []byte(raw)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(id.Raw()) // a string or a whole number
	return bytes.TrimSpace(b.Bytes())
}

// encode writes a message, with the id as the client spelled it.
func encode(m jsonrpc.Message) ([]byte, error) {
	resp, ok := m.(*jsonrpc.Response)
	if !ok {
		return jsonrpc.EncodeMessage(m)
	}
	if s, isText := resp.ID.Raw().(string); !isText || !strings.HasPrefix(s, spelled) {
		return jsonrpc.EncodeMessage(m)
	}
	named := *resp
	named.ID, _ = jsonrpc.MakeID("?") // fails for other types only
	line, err := jsonrpc.EncodeMessage(&named)
	if err != nil {
		return nil, err
	}
	// The id comes first, after the version.
	return bytes.Replace(line, []byte(`"id":"?"`), append([]byte(`"id":`), idText(resp.ID)...), 1), nil
}
