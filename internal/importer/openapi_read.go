package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// MaxSource is the most bytes of a document to import: GitHub's own has 13 MB.
const MaxSource = 20 << 20

// Depth of a document. Schemas that were written in place of their references
// are the deepest known, at some sixty levels.
const maxNesting = 200

// readDocument reads JSON or YAML into ordered values with exact numbers.
// Errors say the place, never what stands there: it may be a credential.
func readDocument(data []byte) (recipe.Value, error) {
	if len(data) > MaxSource {
		return nil, fault.New("IMPORT_INVALID", "the document has %d bytes, at most %d are read", len(data), MaxSource)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	text := bytes.TrimLeft(data, " \t\r\n")
	if len(text) == 0 {
		return nil, fault.New("IMPORT_INVALID", "the document is empty")
	}
	if text[0] == '{' || text[0] == '[' {
		v, err := recipe.Decode(data, recipe.DecodeLimits{Depth: maxNesting})
		if err == nil {
			return v, nil
		}
		var bad *recipe.DecodeError
		if errors.As(err, &bad) {
			return nil, fault.New("IMPORT_INVALID", "the document is no JSON: %s", bad)
		}
		return nil, fault.New("IMPORT_INVALID", "the document is no JSON")
	}
	if text[0] == '<' {
		return nil, fault.New("IMPORT_INVALID", "this is an HTML page or XML, not the document").With(
			fault.Hint("Pass the address of the document itself, which ends in .json or .yaml as a rule."))
	}
	return readYAML(data)
}

// readYAML reads the first document of a YAML text. The parser is not ours: what
// it panics on is an error of the text.
func readYAML(data []byte) (v recipe.Value, err error) {
	defer func() {
		if recover() != nil {
			v, err = nil, fault.New("IMPORT_INVALID", "the document is no YAML that can be read")
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var bad yaml.Error
		if errors.As(err, &bad) && bad.GetToken() != nil && bad.GetToken().Position != nil {
			at := bad.GetToken().Position
			return nil, fault.New("IMPORT_INVALID", "the document is no YAML: line %d, column %d", at.Line, at.Column)
		}
		return nil, fault.New("IMPORT_INVALID", "the document is no YAML")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, fault.New("IMPORT_INVALID", "the document is empty")
	}
	y := &yamlReader{anchors: map[string]recipe.Value{}}
	v, err = y.value(file.Docs[0].Body, 0)
	if err != nil {
		return nil, fault.New("IMPORT_INVALID", "the document is no YAML that can be read: %s", err)
	}
	return v, nil
}

// A yamlReader turns nodes into values. What an alias stands for is shared,
// never copied, so that a few lines cannot fill the memory.
type yamlReader struct {
	anchors map[string]recipe.Value
}

func (y *yamlReader) value(n ast.Node, depth int) (recipe.Value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("more than %d levels", maxNesting)
	}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil, nil
	case *ast.MappingNode:
		return y.mapping(n.Values, depth)
	case *ast.MappingValueNode:
		return y.mapping([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		list := make(recipe.Array, 0, len(n.Values))
		for _, e := range n.Values {
			v, err := y.value(e, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case *ast.AnchorNode:
		v, err := y.value(n.Value, depth+1)
		if err == nil && n.Name != nil {
			y.anchors[n.Name.String()] = v
		}
		return v, err
	case *ast.AliasNode:
		v, ok := y.anchors[n.Value.String()]
		if !ok {
			return nil, fmt.Errorf("an alias without its anchor in line %d", n.GetToken().Position.Line)
		}
		return v, nil
	case *ast.TagNode:
		return y.tagged(n, depth)
	}
	return yamlScalar(n)
}

// tagged reads "!!str 5" as text, every other tag as if it were not there.
func (y *yamlReader) tagged(n *ast.TagNode, depth int) (recipe.Value, error) {
	v, err := y.value(n.Value, depth+1)
	if n.Start != nil && n.Start.Value == "!!str" {
		if number, ok := v.(json.Number); ok {
			return string(number), err
		}
		if flag, ok := v.(bool); ok {
			return strconv.FormatBool(flag), err
		}
	}
	return v, err
}

func (y *yamlReader) mapping(values []*ast.MappingValueNode, depth int) (recipe.Value, error) {
	o := make(recipe.Object, 0, len(values))
	var merged []recipe.Object
	for _, m := range values {
		v, err := y.value(m.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if _, ok := m.Key.(*ast.MergeKeyNode); ok {
			switch v := v.(type) {
			case recipe.Object:
				merged = append(merged, v)
			case recipe.Array:
				for _, e := range v {
					if part, ok := e.(recipe.Object); ok {
						merged = append(merged, part)
					}
				}
			}
			continue
		}
		key, err := yamlKey(m.Key)
		if err != nil {
			return nil, err
		}
		o = append(o, recipe.Member{Key: key, Value: v})
	}
	for _, part := range merged { // what is written beside a merge wins
		if len(o)+len(part) > 100_000 {
			return nil, errors.New("more than 100000 members of one mapping")
		}
		have := make(map[string]bool, len(o))
		for _, m := range o {
			have[m.Key] = true
		}
		for _, m := range part {
			if !have[m.Key] {
				o = append(o, m)
			}
		}
	}
	return o, nil
}

// yamlKey is the text of a key: 200 and true are names in a document.
func yamlKey(k ast.Node) (string, error) {
	switch k := k.(type) {
	case *ast.MappingKeyNode:
		return yamlKey(k.Value)
	case *ast.AnchorNode:
		return yamlKey(k.Value)
	case *ast.StringNode:
		return k.Value, nil
	case ast.ScalarNode:
		return k.GetToken().Value, nil
	}
	return "", errors.New("a key that is no text")
}

var jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$`)

func yamlScalar(n ast.Node) (recipe.Value, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.IntegerNode:
		if text := n.GetToken().Value; jsonNumber.MatchString(text) {
			return json.Number(text), nil
		}
		return json.Number(fmt.Sprint(n.Value)), nil
	case *ast.FloatNode:
		if text := n.GetToken().Value; jsonNumber.MatchString(text) {
			return json.Number(text), nil
		}
		return json.Number(strconv.FormatFloat(n.Value, 'g', -1, 64)), nil
	case *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(n.GetToken().Value), nil
	}
	return nil, fmt.Errorf("a kind of value that JSON does not have in line %d", n.GetToken().Position.Line)
}

// Members of a document. Each is the zero value when v is no object, has no
// such member, or one of another type: documents are written by hand.

func get(v recipe.Value, key string) recipe.Value {
	if o, ok := v.(recipe.Object); ok {
		m, _ := o.Get(key)
		return m
	}
	return nil
}

func has(v recipe.Value, key string) bool {
	o, ok := v.(recipe.Object)
	if !ok {
		return false
	}
	_, ok = o.Get(key)
	return ok
}

func object(v recipe.Value, key string) recipe.Object {
	o, _ := get(v, key).(recipe.Object)
	return o
}

func array(v recipe.Value, key string) recipe.Array {
	a, _ := get(v, key).(recipe.Array)
	return a
}

// text is a string, or a number as it was written: "version: 3.0".
func text(v recipe.Value, key string) string {
	switch s := get(v, key).(type) {
	case string:
		return s
	case json.Number:
		return string(s)
	}
	return ""
}

func flag(v recipe.Value, key string) bool {
	switch b := get(v, key).(type) {
	case bool:
		return b
	case string:
		return b == "true"
	}
	return false
}
