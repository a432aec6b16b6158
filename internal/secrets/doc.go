// Package secrets keeps sealed credentials, each bound to the hosts that may be
// sent it, and hands out a [Grant]: the right to set one credential's headers on
// a request to one host, for one call.
//
// A value leaves the package in three ways only: into the headers that
// [Grant.Apply] sets, into the request of the injected [Minter], and never any
// other. It logs nothing, opens no connection, knows no database (it is handed
// [Records]) and does not link a keyring: the master key comes from a
// [KeySource], which for a person's machine is a short-lived run of the program
// hbrestd-keyring ([Keyring]).
//
// What a sealed record promises: its value opens only together with the name,
// kind, headers, prefixes, hosts and token endpoint it was saved with. What it
// does not: a program that runs as the same user can ask the same keyring. Start
// with [Vault].
package secrets
