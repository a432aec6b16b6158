package shim

import (
	"bytes"
	"encoding/json"
	"strconv"
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
	// The members of a message, with what stands around their values, and
	// whether the line is an object of these alone, each once and plainly named.
	version, anyID, method, params []byte
	plain                          bool
}

// look reads the places of brackets and strings, and no more, so that it knows
// the id of a line that nothing else wants to read.
func look(line []byte) envelope {
	e := envelope{plain: len(line) > 0 && line[0] == '{'}
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
			if depth == 1 && start >= 0 {
				e.member(key, line[start:i])
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

func (e *envelope) member(key, value []byte) {
	place := &e.version
	switch string(key) {
	case `"jsonrpc"`:
	case `"id"`:
		place = &e.anyID
	case `"method"`:
		place = &e.method
	case `"params"`:
		place = &e.params
	default:
		e.plain = false
		if !isName(key, "id") {
			return
		}
		e.id = scalar(value)
		return
	}
	if *place != nil {
		e.plain = false // the last counts, as in the SDK
	}
	*place = value
	if place == &e.anyID {
		e.id = scalar(value)
	}
}

// request is the request that a plain envelope of valid JSON holds; nil where
// the SDK has to say what it makes of the line. The SDK would read a buffer of
// 32 KiB for each of the line, the method and the id.
func (e *envelope) request() *jsonrpc.Request {
	method := bytes.TrimSpace(e.method)
	if !e.plain || string(bytes.TrimSpace(e.version)) != `"2.0"` || !isPlainString(method) {
		return nil
	}
	r := &jsonrpc.Request{Method: string(method[1 : len(method)-1])}
	if params := bytes.TrimSpace(e.params); len(params) > 0 {
		r.Params = params
	}
	var id any
	switch raw := bytes.TrimSpace(e.anyID); {
	case len(raw) == 0:
		return r // a notification
	case isPlainString(raw):
		id = string(raw[1 : len(raw)-1])
	default:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n > maxExact || n < -maxExact || strconv.FormatInt(n, 10) != string(raw) {
			return nil
		}
		id = float64(n)
	}
	var err error
	if r.ID, err = jsonrpc.MakeID(id); err != nil {
		return nil
	}
	return r
}

// maxExact is the largest whole number up to which a float64 holds all.
const maxExact = 1 << 53

// isPlainString reports whether raw is a JSON string whose text is what stands
// between the quotes, and that every encoder writes in the same way.
func isPlainString(raw []byte) bool {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return false
	}
	for _, c := range raw[1 : len(raw)-1] {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
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
	if !bytes.Contains(key, []byte{'\\'}) {
		return len(key) == len(name)+2 && string(key[1:len(key)-1]) == name
	}
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
	if n, ok := id.Raw().(int64); ok {
		return strconv.AppendInt(nil, n, 10)
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
	if line := envelop(resp); line != nil {
		return line, nil
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

// envelop writes the line of a result that the SDK has made, as the SDK would,
// but without reading it once more; nil where it must.
func envelop(resp *jsonrpc.Response) []byte {
	if resp.Error != nil || len(resp.Result) == 0 || bytes.IndexByte(resp.Result, '\n') >= 0 {
		return nil
	}
	id := idText(resp.ID)
	line := make([]byte, 0, len(`{"jsonrpc":"2.0","id":,"result":}`)+len(id)+len(resp.Result)+1) // and the line feed
	line = append(line, `{"jsonrpc":"2.0","id":`...)
	line = append(line, id...)
	line = append(line, `,"result":`...)
	line = append(line, resp.Result...)
	return append(line, '}')
}
