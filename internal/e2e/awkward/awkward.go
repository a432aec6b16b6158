// Package awkward has two hundred wrapper documents whose input schemas are
// what descriptions of real APIs hold and some MCP client refuses, under ids
// that are long or give the same tool name. It is for tests only and says what
// has to become of each document, never whether it has. Start with [Documents].
package awkward

import (
	"encoding/json"
	"fmt"
	"strings"
)

// An End is what has to become of a document.
type End int

// The ends, best first.
const (
	Shown       End = iota // saved, and a tool that every client takes
	Quarantined            // saved, and kept out of the tool list with the reason
	Refused                // not saved
)

// A Document is one wrapper that wants to be a tool.
type Document struct {
	Name string // what is awkward about its schema
	ID   string
	JSON json.RawMessage
	End  End
}

var schemas = []struct {
	name, property string
	end            End
}{
	{"plain", `{"type":"string"}`, Shown},
	{"array without items", `{"type":"array"}`, Shown},
	{"empty items", `{"type":"array","items":{}}`, Shown},
	{"any", `{}`, Shown},
	{"only null", `{"type":"null"}`, Shown},
	{"type list", `{"type":["integer","null"]}`, Shown},
	{"type list of arrays", `{"type":["array","null"]}`, Shown},
	{"enum of numbers", `{"type":"integer","enum":[1,2]}`, Shown},
	{"enum with null", `{"type":["string","null"],"enum":["a",null]}`, Shown},
	{"mixed enum", `{"enum":[1,"a",true,[1]]}`, Shown},
	{"formats", `{"type":"string","format":"uuid"}`, Shown},
	{"pattern of RE2", `{"type":"string","pattern":"(?i)^\\pL+\\z"}`, Shown},
	{"named group", `{"type":"string","pattern":"(?P<y>\\d+)"}`, Shown},
	{"big numbers", `{"type":"integer","maximum":9223372036854775807,"default":9007199254740993}`, Shown},
	{"words of OpenAPI", `{"type":"string","description":"<b>HTML</b> & \"quotes\" \u2028 \u202e","examples":["x"],"deprecated":true,"title":"T"}`, Shown},
	{"nested", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":["array","null"]}}}}}}`, Shown},
	{"nested bad name", `{"type":"object","properties":{"a b":{"type":"string"}}}`, Quarantined},
	{"prototype", `{"type":"object","properties":{"__proto__":{"type":"string"}}}`, Quarantined},
	{"brackets", `{"type":"object","properties":{"page[size]":{"type":"integer"}}}`, Quarantined},
	{"$ref", `{"$ref":"#/components/schemas/A"}`, Refused},
	{"oneOf", `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, Refused},
	{"bare true", `true`, Refused},
	{"nullable", `{"type":"string","nullable":true}`, Refused},
	{"x-mcp-header", `{"type":"string","x-mcp-header":{"name":"A"}}`, Refused},
	{"two types", `{"type":["string","integer"]}`, Refused},
}

// Each schema is saved under an id of each kind.
var ids = []func(i int) string{
	func(i int) string { return fmt.Sprintf("a.b.%d", i) },
	func(i int) string { return fmt.Sprintf("a_b_%d", i) }, // the tool name of the one above is taken
	func(i int) string { return fmt.Sprintf("a-b-%d", i) },
	func(i int) string { return fmt.Sprintf("%s%03d", strings.Repeat("n", 77), i) },
	func(i int) string { return fmt.Sprintf("%s%03d", strings.Repeat("n", 97), i) },
	func(i int) string { return fmt.Sprintf("Upper.%d", i) },
	func(i int) string { return fmt.Sprintf("7.%d", i) },
	func(i int) string { return fmt.Sprintf("z%d", i) },
}

// Documents are two hundred documents that send their one argument, p, as the
// body of a POST to url.
func Documents(url string) []Document {
	var all []Document
	for _, id := range ids {
		for i, s := range schemas {
			all = append(all, Document{s.name, id(i), fmt.Appendf(nil,
				`{"schemaVersion":1,"id":%q,"request":{"method":"POST","url":%q,"body":"{{p}}"},"exposeAsTool":true,"inputSchema":{"$schema":"x","type":"object","properties":{"p":%s}}}`,
				id(i), url, s.property), s.end})
		}
	}
	return all
}

// BadIDs are ids that are refused whatever the document is.
func BadIDs() []string {
	return []string{"größe", "日本", "a b", "", ".", strings.Repeat("n", 101)}
}
