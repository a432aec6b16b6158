// Package recipe turns JSON answers into Markdown and records, as a small
// document, the recipe, says.
//
// Start with [Parse], which checks a recipe document and names everything
// wrong in it at once; then [Recipe.Read] each body and [Recipe.Render] the
// pages. [Derive] drafts a recipe from an answer. The format is described in
// docs/recipe-format.md.
//
// The package is pure: a result depends on the recipe, the bodies and the
// options alone. It opens no file and no connection, reads no clock, has no
// expression language and keeps no state between calls, so everything in it
// may be used concurrently. It is safe on input from strangers: nesting,
// lengths and work are bounded, values are escaped, and nothing in the data can
// make Render fail. A path that leads nowhere gives a blank and an entry in
// [Meta], never an error.
//
// Numbers keep the digits of the source from reading to Markdown and records,
// and members keep their order, which is the order of columns and keys. That
// is why the package has its own [Value] instead of Go maps and floats.
package recipe
