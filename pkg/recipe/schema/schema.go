// Package schema holds the JSON Schema (draft 2020-12) of the recipe document,
// for editors and for programs that write recipes. Start with [Recipe].
//
// The schema never decides anything here: recipe.Parse does, and also finds
// what a schema cannot say, such as a template that names a field that is not
// there. What the schema refuses, Parse refuses.
package schema

import _ "embed" // the schema is a file of its own, so that it can be read without the program

//go:embed recipe.schema.json
var text string

// Recipe is the schema as JSON text.
func Recipe() string { return text }
