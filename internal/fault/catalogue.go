package fault

import "sort"

// An Entry is one row of the catalogue.
type Entry struct {
	Code      Code
	Group     string // heading in docs/errors.md
	HTTP      int    // status of the bridge's answer; 0 for codes made by hb-rest itself
	Retryable bool   // default; the place that knows the cause may change it
	When      string // for docs/errors.md
	Hint      string // one or two imperative sentences, at most MaxHint characters
}

// Groups in the order of docs/errors.md.
const (
	groupBridge   = "Bridge and transport"
	groupDocument = "Wrappers, recipes, arguments"
	groupPolicy   = "Policy (outbound)"
	groupSecret   = "Secrets"
	groupApproval = "Approval by a person"
	groupUpstream = "Upstream"
	groupResponse = "Response"
	groupDerive   = "Derive and Cortex"
	groupClient   = "Files of MCP clients (commands only)"
)

// catalogue is the one table of codes. A hint names only commands that exist;
// a test runs each of them with --help.
var catalogue = []Entry{
	{"UNAUTHORIZED", groupBridge, 401, false, "The bridge token is missing, wrong or from an earlier start of the daemon.", "The token is renewed at every start of hbrestd: read the token file again, or point HB_WRAP_TOKEN_FILE at the one that `hbrestd paths` prints."},
	{"FORBIDDEN_ORIGIN", groupBridge, 403, false, "The Host header is not the loopback bridge, or a browser header (Origin, Referer, Sec-Fetch-Site) is present: a web page is calling.", "Call the bridge only from hb-rest or curl, as http://127.0.0.1 and without browser headers."},
	{"ROUTE_NOT_FOUND", groupBridge, 404, false, "No such route.", "Update hb-rest and hbrestd to the same version."},
	{"METHOD_NOT_ALLOWED", groupBridge, 405, false, "The route exists, but not with this HTTP method.", "Use the method that docs/api.md gives for the route. Credentials are read-only here: only a person writes them."},
	{"BAD_JSON", groupBridge, 400, false, "The request body is not one JSON document.", "Send one JSON object."},
	{"BAD_REQUEST", groupBridge, 400, false, "The body is JSON, but a member is missing, unknown or of the wrong type.", "Fix the named field; docs/api.md lists the members of each route."},
	{"BODY_TOO_LARGE", groupBridge, 413, false, "The request body is over the bridge's own limit.", "Send a smaller body."},
	{"UNSUPPORTED_MEDIA_TYPE", groupBridge, 415, false, "A POST without Content-Type: application/json.", "Send Content-Type: application/json."},
	{"BUSY", groupBridge, 503, true, "Too many calls at once.", "Repeat the call in a moment."},
	{"SHUTTING_DOWN", groupBridge, 503, true, "The daemon is stopping.", "Start it again with `hbrestd service start` or `hbrestd run`, then repeat the call."},
	{"INTERNAL", groupBridge, 500, false, "A bug in hbrestd or hb-rest; the message carries the id of the log line.", "Report the id; the daemon's log has a line with it."},
	{"BRIDGE_UNREACHABLE", groupBridge, 0, true, "hb-rest found no daemon at the bridge's address.", "Start the daemon with `hbrestd service start` or `hbrestd run`, then repeat the call. If it runs at another address, set HB_WRAP_URL to that."},
	{"BRIDGE_TIMEOUT", groupBridge, 0, true, "The daemon did not answer in HB_WRAP_TIMEOUT_MS.", "For a read, repeat the call. For a write, check first whether it took effect."},
	{"TOKEN_FILE_MISSING", groupBridge, 0, true, "No token file in HB_WRAP_TOKEN_FILE or the default places, or it is not safe to use (mode, owner, symbolic link, content).", "Start it with `hbrestd service start` or `hbrestd run`, then repeat the call. If it runs, set HB_WRAP_HOME or HB_WRAP_TOKEN_FILE as it has them; `hbrestd paths` prints the places."},
	{"BRIDGE_BAD_ANSWER", groupBridge, 0, false, "What answers on the bridge's port could not prove that it is hbrestd, or did not answer as the bridge does.", "Another program holds the port: give hbrestd a free one with HB_WRAP_ADDR, and tell hb-rest with HB_WRAP_URL."},
	{"RULE_NOT_FOUND", groupBridge, 404, false, "No allow rule names this host and port.", "Run `hbrestd allow list` to see the rules."},
	{"ADDRESS_IN_USE", groupBridge, 0, false, "Another program listens where the bridge should.", "Stop that program, or choose another port with HB_WRAP_ADDR and tell hb-rest with HB_WRAP_URL."},
	{"SERVICE_FAILED", groupBridge, 0, false, "The service manager (systemd, launchd, the task scheduler) refused, or the daemon did not start (commands only).", "`hbrestd service status` shows its state, `hbrestd service logs` what it said."},
	{"SERVICE_NOT_INSTALLED", groupBridge, 0, false, "hbrestd is not a service of this user (commands only).", "Install it with `hbrestd service install`, or start it here with `hbrestd run`."},

	{"WRAPPER_NOT_FOUND", groupDocument, 404, false, "No wrapper has this id; near ids are named.", "wrap_list or `hbrestd wrapper list` shows the saved ids."},
	{"WRAPPER_EXISTS", groupDocument, 409, false, "Create with an id that is taken (ids are compared without case).", "Replace it with wrap_update or `hbrestd wrapper apply`, or choose another id."},
	{"WRAPPER_INVALID", groupDocument, 422, false, "The wrapper document has problems; each is a detail.", "Fix the named fields and send the whole document again."},
	{"WRAPPER_CHANGED", groupDocument, 409, false, "The wrapper is not any more what it was when the change was begun (commands only).", "Look at it with `hbrestd wrapper show ID`, then make the change again."},
	{"VERSION_NOT_FOUND", groupDocument, 404, false, "The wrapper has no version of this number, or none is kept any more (commands only).", "`hbrestd wrapper history ID` shows the versions."},
	{"VERSION_UNREADABLE", groupDocument, 422, false, "The record of one earlier version is damaged; the others are not affected (commands only).", "Take another version; `hbrestd wrapper history ID` shows them."},
	{"WRAPPER_UNREADABLE", groupDocument, 422, false, "The stored record is damaged. Listing marks it, reading and running it fail, the others are not affected.", "Save it again (wrap_update, `hbrestd wrapper apply`), or remove it (wrap_delete, `hbrestd wrapper rm`)."},
	{"AUDIT_FAILED", groupDocument, 500, true, "The intent row could not be written; nothing was sent.", "Check free disk space, then repeat the call; `hbrestd status` shows the daemon's state."},
	{"CALL_DEADLINE", groupDocument, 200, true, "The call's own deadline ended it before any page was complete.", "Ask for fewer pages or items."},
	{"CALL_CANCELLED", groupDocument, 200, true, "The caller went away before the answer came.", "Repeat the call if the answer is still needed."},
	{"STORE_FAILED", groupDocument, 500, true, "The store could not be read or written (disk full, permissions).", "Check free disk space and the permissions of the folder that `hbrestd paths` prints, then repeat the call."},
	{"ARGS_INVALID", groupDocument, 422, false, "The arguments do not fit the wrapper's input schema; each problem is a detail.", "Fix the named arguments; wrap_get or `hbrestd wrapper show` shows the schema."},
	{"MAX_PAGES_INVALID", groupDocument, 422, false, "max_pages is not a whole number from 1 to 25.", "Use a whole number from 1 to 25."},
	{"MAX_ITEMS_INVALID", groupDocument, 422, false, "max_items is not a whole number from 1 to 1000.", "Use a whole number from 1 to 1000."},
	{"FORMAT_INVALID", groupDocument, 422, false, "format is not markdown, json or both.", "Use markdown, json or both."},
	{"SAMPLE_INVALID", groupDocument, 422, false, "The sample given to wrap_test is not JSON.", "Send the sample as a JSON value, or as a string that holds one."},
	{"IMPORT_INVALID", groupDocument, 422, false, "What is to be imported is no OpenAPI document, curl command, Postman collection or HAR file that can be read (commands only).", "Check the text at the named place, or import it as what it is: openapi, curl, postman or har."},
	{"IMPORT_NO_SERVER", groupDocument, 422, false, "The OpenAPI document does not say where the API is, or says it relative to its own place (commands only).", "Pass the address with --base-url https://HOST/PATH."},

	{"POLICY_SCHEME", groupPolicy, 200, false, "The URL is not http or https, or it is plain http, which is off by default.", "Use https. Plain http: `hbrestd allow add HOST[:PORT] --http`, or start hbrestd with HB_WRAP_ALLOW_HTTP=1 (public hosts) or HB_WRAP_ALLOW_PRIVATE=1 (private ones)."},
	{"POLICY_PRIVATE_ADDRESS", groupPolicy, 200, false, "The host is, or resolves to, a loopback, private, link-local, metadata or other special address.", "Use a public host, or allow this one: `hbrestd allow add HOST[:PORT]`, or start hbrestd with HB_WRAP_ALLOW_PRIVATE=1. Metadata addresses stay closed."},
	{"POLICY_URL", groupPolicy, 200, false, "The URL has user information, no host, a number-shaped host, a forbidden port or control characters after the arguments were filled in.", "Fix the wrapper's request.url, or the argument that became part of it."},
	{"POLICY_REDIRECT", groupPolicy, 200, false, "More than five redirects, or one that fails the policy or goes from https to http.", "Put the final URL into the wrapper's request.url."},
	{"POLICY_REQUEST_TOO_LARGE", groupPolicy, 200, false, "The URL or body is over the limit once the arguments are filled in.", "Send smaller arguments, or split the call."},

	{"AUTH_REQUIRED", groupSecret, 200, false, "The API answered 401, or 403 with a credential attached.", "The API wants a credential: a person stores one, and the wrapper names it in request.auth."},
	{"SECRET_NOT_FOUND", groupSecret, 200, false, "request.auth names a credential that does not exist.", "Call wrap_secret_list to see the names. Only a person can add a credential: `hbrestd secret set NAME --host HOST`."},
	{"SECRET_HOST_NOT_ALLOWED", groupSecret, 200, false, "The request's host is not one of the credential's hosts; nothing was sent.", "Only a person can bind a credential to another host: `hbrestd secret bind NAME --host HOST`."},
	{"SECRET_LOCKED", groupSecret, 200, false, "There is no keyring, it is locked, or the key of the credentials is not in it.", "Ask a person to run `hbrestd secret list`, which says what is wrong with the keyring and how to fix it."},
	{"SECRET_DAMAGED", groupSecret, 200, false, "The sealed record cannot be read: damaged, changed, or sealed with another key.", "Ask a person to enter the value again with `hbrestd secret set NAME`."},
	{"SECRET_INVALID", groupSecret, 422, false, "What was set of a credential has problems; each is a detail (commands only).", "Fix the named fields and set the credential again."},
	{"SECRET_CHANGED", groupSecret, 409, false, "Another command has changed the credential meanwhile (commands only).", "Look at it with `hbrestd secret show NAME`, then run the command again."},
	{"OAUTH_TOKEN_FAILED", groupSecret, 200, false, "The token endpoint answered an error.", "Ask a person to check client id, secret, scope and audience with `hbrestd secret show NAME`."},
	{"OAUTH_TOKEN_UNREACHABLE", groupSecret, 200, true, "The token endpoint did not answer.", "Repeat the call in a moment; if it lasts, ask a person to check the token URL with `hbrestd secret show NAME`."},
	{"OAUTH_TOKEN_BAD_ANSWER", groupSecret, 200, false, "The token endpoint did not answer as RFC 6749 says.", "Ask a person to check the token URL with `hbrestd secret show NAME`."},

	{"APPROVAL_REQUIRED", groupApproval, 200, true, "A person must allow this write, and nobody answered in time; nothing was sent.", "Ask a person to answer what `hbrestd approval list` shows, then repeat exactly the same call."},
	{"APPROVAL_DENIED", groupApproval, 200, false, "A person refused this very request; nothing was sent.", "Do not repeat the call: ask the person what to do instead."},
	{"APPROVAL_EXPIRED", groupApproval, 409, false, "The question is too old, or its answer was used (commands only).", "Let the call be repeated: it brings up a new question. `hbrestd approval list` shows those that wait."},
	{"APPROVAL_NOT_FOUND", groupApproval, 404, false, "No question has this id; ids are forgotten when the daemon stops (commands only).", "Run `hbrestd approval list` to see what waits."},

	{"UPSTREAM_BAD_REQUEST", groupUpstream, 200, false, "Status 400, 411, 414, 415 or 431.", "Compare the dry run (wrap_test, `hbrestd wrapper test`) with the API's documentation."},
	{"UPSTREAM_PAYMENT_REQUIRED", groupUpstream, 200, false, "Status 402.", "The API wants payment or more quota: look at the account there."},
	{"UPSTREAM_FORBIDDEN", groupUpstream, 200, false, "Status 403 without a credential, or 451.", "The API refuses this call to everyone, or to callers without a credential: look at its documentation."},
	{"UPSTREAM_NOT_FOUND", groupUpstream, 200, false, "Status 404 or 410.", "Check the ids in args; the endpoint may have moved."},
	{"UPSTREAM_METHOD", groupUpstream, 200, false, "Status 405 or 501.", "The API does not offer the wrapper's method at this URL."},
	{"UPSTREAM_NOT_ACCEPTABLE", groupUpstream, 200, false, "Status 406.", "Set the header Accept: application/json in the wrapper."},
	{"UPSTREAM_CONFLICT", groupUpstream, 200, false, "Status 409, 412, 423 or 428.", "Read the current state first, then repeat the call with fresh values."},
	{"UPSTREAM_UNPROCESSABLE", groupUpstream, 200, false, "Status 413 or 422.", "Change what the API's message names, then repeat the call."},
	{"UPSTREAM_RATE_LIMITED", groupUpstream, 200, true, "Status 429, or 403 with rate-limit headers.", "Wait, then repeat the call; ask for fewer pages."},
	{"UPSTREAM_CLIENT_ERROR", groupUpstream, 200, false, "Any other 4xx; 408 and 425 are retryable.", "Compare the dry run (wrap_test, `hbrestd wrapper test`) with the API's documentation."},
	{"UPSTREAM_SERVER_ERROR", groupUpstream, 200, true, "Status 500 or another 5xx; not retryable for POST and PATCH.", "The API failed; repeat the call later. Check first whether a write took effect."},
	{"UPSTREAM_UNAVAILABLE", groupUpstream, 200, true, "Status 502, 503, 504 or 52x; for POST and PATCH only 503 is retryable.", "The API is not available now; repeat the call later. Check first whether a write took effect."},
	{"UPSTREAM_REDIRECT", groupUpstream, 200, false, "A 3xx without a usable Location, 304, or a redirect of a write that is not followed.", "Put the final URL into the wrapper's request.url."},
	{"UPSTREAM_REPORTED_ERROR", groupUpstream, 200, false, "A 2xx answer whose recipe's error path has a value.", "Change what the API's message names, then repeat the call."},
	{"UPSTREAM_TIMEOUT", groupUpstream, 200, true, "No complete answer within timeoutMs; not retryable for a write that was sent.", "Repeat the call, or give the API more time: request.timeoutMs in the wrapper, up to 60000. Check first whether a write took effect."},
	{"UPSTREAM_DNS", groupUpstream, 200, true, "The host name could not be resolved.", "Check the host in the wrapper's request.url, or this machine's network connection."},
	{"UPSTREAM_CONNECT", groupUpstream, 200, true, "Connection refused, unreachable, or reset before an answer.", "Check that the API is up, and the host and port in the wrapper's request.url; then repeat the call."},
	{"UPSTREAM_TLS", groupUpstream, 200, false, "The certificate is expired, for another host, or of an unknown issuer.", "Check the API's certificate, or the host in the wrapper's request.url."},
	{"UPSTREAM_PROTOCOL", groupUpstream, 200, false, "The answer is not HTTP, is malformed on its way (chunks, trailer), or has a header that is too large.", "Check the scheme and port in the wrapper's request.url."},

	{"RESPONSE_TOO_LARGE", groupResponse, 200, false, "The answer is over 5 MB after decompression.", "Ask for fewer items or a smaller page."},
	{"RESPONSE_NOT_JSON", groupResponse, 200, false, "The answer is not JSON; the message says what it is, or its content type and the line or byte where reading stopped.", "Check that the URL is the API's JSON endpoint; set Accept: application/json."},
	{"RESPONSE_ENCODING", groupResponse, 200, false, "Invalid UTF-8, or an unknown charset or content encoding.", "The API must answer in UTF-8 or in the charset that it declares."},
	{"RESPONSE_EMPTY", groupResponse, 200, false, "Status 200 without a body where JSON was expected.", "Check the URL; if no content is the normal answer, the API should send status 204."},
	{"RESPONSE_INCOMPLETE", groupResponse, 200, true, "The connection ended before the announced length; not retryable for a write.", "Repeat the call. Check first whether a write took effect."},
	{"RESPONSE_TOO_DEEP", groupResponse, 200, false, "The JSON is nested over 200 levels deep.", "Ask the API for a flatter answer."},

	{"DERIVE_NO_INPUT", groupDerive, 422, false, "Neither or both of sample and url.", "Send either sample (any JSON value) or url."},
	{"DERIVE_SAMPLE_NOT_JSON", groupDerive, 422, false, "The sample is a string that does not hold JSON.", "Send the sample as a JSON value, or as a string that holds one."},
	{"DERIVE_NOTHING", groupDerive, 422, false, "Nothing to show in it, such as [], {} or null, or no shape this version recognises.", "Send a sample with at least one item, or write the recipe by hand."},
	{"DERIVE_MAX_FIELDS", groupDerive, 422, false, "max_fields is not a whole number from 1 to 20.", "Use a whole number from 1 to 20."},
	{"CORTEX_UNAVAILABLE", groupDerive, 200, true, "The local index is not available; the call's own result is complete.", "Use the result as it is; it was not indexed."},
	{"CORTEX_TIMEOUT", groupDerive, 200, true, "The local index was busy for too long, such as with a rebuild; the call's own result is complete.", "Use the result as it is. For a search, repeat it in a moment."},

	{"CLIENT_FILE_INVALID", groupClient, 0, false, "The configuration file of an MCP client cannot be understood; the message gives line and column. It was left alone.", "Mend the file at the named place, or put the entry in by hand: `hbrestd client print` shows it."},
	{"CLIENT_FILE_REFUSED", groupClient, 0, false, "The file of an MCP client is read-only, no regular file, too large, or not one that can surely be edited well. It was left alone.", "Put the entry in by hand: `hbrestd client print` shows it."},
	{"CLIENT_FILE_CHANGED", groupClient, 0, true, "Another program wrote the file between reading and writing it. Nothing was written.", "Run the command again; close the client first if that happens again."},
	{"CLIENT_ENTRY_FOREIGN", groupClient, 0, false, "The file has an entry named hb-rest that starts another program.", "Look at the entry. --force replaces it, or removes it."},
}

var byCode = func() map[Code]Entry {
	m := make(map[Code]Entry, len(catalogue))
	for _, e := range catalogue {
		m[e.Code] = e
	}
	return m
}()

// Lookup finds the catalogue's row of a code.
func Lookup(c Code) (Entry, bool) {
	e, ok := byCode[c]
	return e, ok
}

// Catalogue returns every code in the order of docs/errors.md.
func Catalogue() []Entry { return append([]Entry(nil), catalogue...) }

// DetailCodes are the codes that occur only inside details, by group.
func DetailCodes() map[string][]Code {
	return map[string][]Code{
		"general":      {"REQUIRED", "TYPE", "UNKNOWN_FIELD", "ENUM", "TOO_LONG", "TOO_SHORT", "TOO_MANY", "TOO_FEW", "RANGE", "PATTERN", "DUPLICATE", "VERSION_UNSUPPORTED", "ID_INVALID", "NOT_SUPPORTED"},
		"request":      {"URL_INVALID", "URL_SCHEME", "URL_USERINFO", "METHOD_UNKNOWN", "BODY_NOT_ALLOWED", "BODY_TYPE", "QUERY_STYLE", "RATE_INVALID", "HEADER_INVALID", "TIMEOUT_RANGE", "CREDENTIAL_HEADER", "CREDENTIAL_QUERY", "PLACEHOLDER_UNKNOWN", "PLACEHOLDER_SYNTAX", "RAW_OUTSIDE_URL", "PLACEHOLDER_IN_HOST"},
		"input schema": {"SCHEMA_KEYWORD", "SCHEMA_TYPE", "SCHEMA_DEFAULT", "PATTERN_INVALID", "SCHEMA_TOO_DEEP"},
		"recipe":       {"PATH_SYNTAX", "PATH_ROOT", "PATH_TOO_LONG", "FORMAT_UNKNOWN", "OPTION_NOT_FOR_FORMAT", "OPTION_VALUE", "MODE_UNKNOWN", "NEEDS_FIELDS", "TEMPLATE_SYNTAX", "TEMPLATE_MODE", "LIMIT_RANGE", "PAGING_TYPE", "PAGING_KEY", "PAGING_MODE", "INDEX_UNKNOWN"},
		"warnings":     {"ARGUMENT_UNUSED", "PAGING_NEXT", "TOOL_PORTABILITY", "TOOL_QUARANTINED", "TOOL_OVER_CAP", "TOOLS_DISABLED", "NO_DESCRIPTION", "NO_FIELDS", "NO_PAGINATION", "WRITES_UNASKED", "CORTEX_CAPPED"},
		"arguments":    {"PATH_SEGMENT", "CONTROL_CHARACTER", "NULL_NOT_ALLOWED", "METHOD_NOT_OFFERED", "REFUSED_BY_API"},
	}
}

// HTTPStatus is the status of the bridge's answer: 200 when the bridge did its
// part and the outcome is a failure, 4xx when the call or a document in it is
// wrong, 5xx when the bridge itself failed or cannot serve now. Codes that
// hb-rest makes, and unknown ones, are 500 here: the bridge never sends them.
func (c Code) HTTPStatus() int {
	if e, ok := byCode[c]; ok && e.HTTP != 0 {
		return e.HTTP
	}
	return 500
}

// Codes returns all top-level codes, sorted.
func Codes() []Code {
	var cs []Code
	for _, e := range catalogue {
		cs = append(cs, e.Code)
	}
	sort.Slice(cs, func(i, j int) bool { return cs[i] < cs[j] })
	return cs
}
