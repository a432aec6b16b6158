// Package schema admits the small part of JSON Schema that a wrapper's
// inputSchema may use, fills defaults into arguments and checks them.
//
// A schema passes a gate that knows every keyword: some are validated, some
// are kept as words for the reader, a few are dropped with a warning, all
// others are refused by name, $ref first. What is left is judged twice: by
// the walk in validate.go, which words each problem with its exact place and
// compares numbers exactly, and by gojsonschema, which sees only a schema that
// was rebuilt here from the admitted keywords, never the author's text, and
// has no way to load another document. Arguments pass when both agree.
//
// The package never fetches or opens anything, never converts a value (the
// string "5" is no number) and never prints a value longer than 80 characters.
// Start with [Parse].
package schema
