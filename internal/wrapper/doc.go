// Package wrapper reads wrapper documents and turns a wrapper and the
// arguments of one call into the exact request to send.
//
// [Parse] checks everything at once and compiles every template, so that a
// wrapper that was saved can only fail because of its arguments. [Wrapper.Build]
// is a pure function: defaults, validation, interpolation. The same arguments
// always make the same request, byte for byte; what an argument holds can never
// change the host, the method, a header's name or the structure around it.
//
// The package sends nothing, resolves nothing and never sees the value of a
// credential: a Call carries the credential's name. The format is described in
// docs/wrapper-format.md. Start with Parse.
package wrapper
