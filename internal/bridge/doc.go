// Package bridge is the agent's face of the daemon: the HTTP handler of /hello
// and /wrap/*. It checks who is calling before it does anything else, decodes
// strictly, calls a [Backend] and encodes what comes back.
//
// It never opens a file, a database or an outgoing connection, and it holds no
// rule about wrappers: documents and arguments pass through as the bytes that
// came. A [Backend] has no method that takes a credential's value, so no route
// can write one. Start with [New]; docs/api.md is the page for callers.
package bridge
