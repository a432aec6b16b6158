package importer

import "strings"

// What an option of curl means here.
type optionKind int

const (
	optIgnored optionKind = iota // changes nothing of the request
	optNoted                     // the same, but its reader may count on it
	optKept                      // understood: curlLine.option
	optRefused                   // changes the request in a way that cannot be sent
)

type curlOption struct {
	short byte // 0: none
	long  string
	arg   bool
	kind  optionKind
	why   string // of a note or a refusal
	code  string
}

// curlOptions are curl's own, by what they do to a request.
var curlOptions = []curlOption{
	// Understood.
	{'X', "request", true, optKept, "", ""},
	{'H', "header", true, optKept, "", ""},
	{'d', "data", true, optKept, "", ""},
	{0, "data-ascii", true, optKept, "", ""},
	{0, "data-raw", true, optKept, "", ""},
	{0, "data-binary", true, optKept, "", ""},
	{0, "data-urlencode", true, optKept, "", ""},
	{0, "json", true, optKept, "", ""},
	{'G', "get", false, optKept, "", ""},
	{'I', "head", false, optKept, "", ""},
	{0, "url", true, optKept, "", ""},
	{0, "url-query", true, optKept, "", ""},
	{'u', "user", true, optKept, "", ""},
	{0, "oauth2-bearer", true, optKept, "", ""},
	{'A', "user-agent", true, optKept, "", ""},
	{'e', "referer", true, optKept, "", ""},
	{'b', "cookie", true, optKept, "", ""},
	{'r', "range", true, optKept, "", ""},
	{'g', "globoff", false, optKept, "", ""},
	{0, "path-as-is", false, optKept, "", ""},

	// Of no consequence for the request.
	{'s', "silent", false, optIgnored, "", ""},
	{'S', "show-error", false, optIgnored, "", ""},
	{'i', "include", false, optIgnored, "", ""},
	{0, "show-headers", false, optIgnored, "", ""},
	{'v', "verbose", false, optIgnored, "", ""},
	{'f', "fail", false, optIgnored, "", ""},
	{0, "fail-with-body", false, optIgnored, "", ""},
	{0, "fail-early", false, optIgnored, "", ""},
	{0, "compressed", false, optIgnored, "", ""},
	{0, "progress-meter", false, optIgnored, "", ""},
	{'#', "progress-bar", false, optIgnored, "", ""},
	{'N', "no-buffer", false, optIgnored, "", ""},
	{0, "buffer", false, optIgnored, "", ""},
	{'L', "location", false, optIgnored, "", ""},
	{'0', "http1.0", false, optIgnored, "", ""},
	{0, "http1.1", false, optIgnored, "", ""},
	{0, "http2", false, optIgnored, "", ""},
	{0, "http2-prior-knowledge", false, optIgnored, "", ""},
	{0, "http3", false, optIgnored, "", ""},
	{0, "http3-only", false, optIgnored, "", ""},
	{'1', "tlsv1", false, optIgnored, "", ""},
	{0, "tlsv1.0", false, optIgnored, "", ""},
	{0, "tlsv1.1", false, optIgnored, "", ""},
	{0, "tlsv1.2", false, optIgnored, "", ""},
	{0, "tlsv1.3", false, optIgnored, "", ""},
	{'4', "ipv4", false, optIgnored, "", ""},
	{'6', "ipv6", false, optIgnored, "", ""},
	{0, "tcp-nodelay", false, optIgnored, "", ""},
	{0, "tcp-fastopen", false, optIgnored, "", ""},
	{'j', "junk-session-cookies", false, optIgnored, "", ""},
	{'O', "remote-name", false, optIgnored, "", ""},
	{0, "remote-name-all", false, optIgnored, "", ""},
	{'J', "remote-header-name", false, optIgnored, "", ""},
	{'R', "remote-time", false, optIgnored, "", ""},
	{'q', "disable", false, optIgnored, "", ""},
	{0, "basic", false, optIgnored, "", ""},
	{'Z', "parallel", false, optIgnored, "", ""},
	{0, "keepalive", false, optIgnored, "", ""},
	{0, "no-keepalive", false, optIgnored, "", ""},
	{0, "no-sessionid", false, optIgnored, "", ""},
	{0, "no-progress-meter", false, optIgnored, "", ""},
	{0, "create-dirs", false, optIgnored, "", ""},
	{0, "suppress-connect-headers", false, optIgnored, "", ""},
	{0, "styled-output", false, optIgnored, "", ""},
	{0, "no-styled-output", false, optIgnored, "", ""},
	{'o', "output", true, optIgnored, "", ""},
	{0, "output-dir", true, optIgnored, "", ""},
	{'w', "write-out", true, optIgnored, "", ""},
	{'D', "dump-header", true, optIgnored, "", ""},
	{'c', "cookie-jar", true, optIgnored, "", ""},
	{0, "stderr", true, optIgnored, "", ""},
	{0, "trace", true, optIgnored, "", ""},
	{0, "trace-ascii", true, optIgnored, "", ""},
	{0, "trace-time", false, optIgnored, "", ""},
	{0, "connect-timeout", true, optIgnored, "", ""},
	{0, "keepalive-time", true, optIgnored, "", ""},
	{0, "ciphers", true, optIgnored, "", ""},
	{0, "curves", true, optIgnored, "", ""},
	{0, "tls-max", true, optIgnored, "", ""},
	{0, "tls13-ciphers", true, optIgnored, "", ""},
	{0, "limit-rate", true, optIgnored, "", ""},
	{0, "max-filesize", true, optIgnored, "", ""},
	{'y', "speed-time", true, optIgnored, "", ""},
	{'Y', "speed-limit", true, optIgnored, "", ""},
	{0, "max-redirs", true, optIgnored, "", ""},
	{0, "retry-connrefused", false, optIgnored, "", ""},
	{0, "retry-all-errors", false, optIgnored, "", ""},
	{0, "retry-delay", true, optIgnored, "", ""},
	{0, "retry-max-time", true, optIgnored, "", ""},

	// Left out with a word.
	{'k', "insecure", false, optNoted, "certificates are always checked: -k is left out", ""},
	{0, "location-trusted", false, optNoted, "no credential is sent to another host: --location-trusted is left out", ""},
	{'m', "max-time", true, optNoted, "the time limit is left out; request.timeoutMs sets one", ""},
	{0, "retry", true, optNoted, "--retry is left out: reads are tried again anyhow", ""},
	{'x', "proxy", true, optNoted, "the proxy is left out", ""},
	{0, "noproxy", true, optNoted, "the proxy is left out", ""},
	{'U', "proxy-user", true, optNoted, "the proxy is left out", ""},
	{0, "proxy-header", true, optNoted, "the proxy is left out", ""},
	{0, "proxy-insecure", false, optNoted, "the proxy is left out", ""},
	{'p', "proxytunnel", false, optNoted, "the proxy is left out", ""},
	{0, "socks5", true, optNoted, "the proxy is left out", ""},
	{0, "socks5-hostname", true, optNoted, "the proxy is left out", ""},
	{0, "resolve", true, optNoted, "--resolve is left out: the name is resolved as usual", ""},
	{0, "dns-servers", true, optNoted, "--dns-servers is left out: the name is resolved as usual", ""},
	{0, "doh-url", true, optNoted, "--doh-url is left out: the name is resolved as usual", ""},
	{0, "interface", true, optNoted, "--interface is left out", ""},
	{0, "cacert", true, optNoted, "--cacert is left out: the system's certificates are used", ""},
	{0, "capath", true, optNoted, "--capath is left out: the system's certificates are used", ""},

	// Cannot be sent.
	{'F', "form", true, optRefused, "a body of several parts (multipart, -F) cannot be sent", "MULTIPART"},
	{0, "form-string", true, optRefused, "a body of several parts (multipart, --form-string) cannot be sent", "MULTIPART"},
	{'T', "upload-file", true, optRefused, "a file (-T) cannot be sent", "FILE"},
	{'K', "config", true, optRefused, "a file of options (-K) is not read", "FILE"},
	{'n', "netrc", false, optRefused, "a file of passwords (-n) is not read; store the credential with hbrestd secret set", "FILE"},
	{0, "netrc-optional", false, optRefused, "a file of passwords (--netrc-optional) is not read; store the credential with hbrestd secret set", "FILE"},
	{0, "netrc-file", true, optRefused, "a file of passwords (--netrc-file) is not read; store the credential with hbrestd secret set", "FILE"},
	{'E', "cert", true, optRefused, "a client certificate (-E) cannot be sent", "CLIENT_CERTIFICATE"},
	{0, "key", true, optRefused, "a client certificate (--key) cannot be sent", "CLIENT_CERTIFICATE"},
	{0, "pass", true, optRefused, "a client certificate (--pass) cannot be sent", "CLIENT_CERTIFICATE"},
	{0, "cert-type", true, optRefused, "a client certificate (--cert-type) cannot be sent", "CLIENT_CERTIFICATE"},
	{0, "digest", false, optRefused, "its authentication (--digest) is not supported", "AUTH_SCHEME"},
	{0, "ntlm", false, optRefused, "its authentication (--ntlm) is not supported", "AUTH_SCHEME"},
	{0, "negotiate", false, optRefused, "its authentication (--negotiate) is not supported", "AUTH_SCHEME"},
	{0, "anyauth", false, optRefused, "its authentication (--anyauth) is not supported", "AUTH_SCHEME"},
	{0, "aws-sigv4", true, optRefused, "its authentication (--aws-sigv4) signs each request, which is not supported", "AUTH_SCHEME"},
	{0, "next", false, optRefused, "it makes several requests (--next); import them one by one", "SEVERAL"},
	{':', "next", false, optRefused, "it makes several requests (-:); import them one by one", "SEVERAL"},
	{0, "unix-socket", true, optRefused, "a Unix socket cannot be called", "OPTION"},
	{0, "abstract-unix-socket", true, optRefused, "a Unix socket cannot be called", "OPTION"},
	{0, "connect-to", true, optRefused, "another host cannot be called in place of the URL's (--connect-to)", "OPTION"},
	{0, "request-target", true, optRefused, "another target cannot be sent in place of the URL's (--request-target)", "OPTION"},
	{'z', "time-cond", true, optRefused, "a condition on the time (-z) cannot be sent", "OPTION"},
	{'C', "continue-at", true, optRefused, "a transfer cannot be continued (-C)", "OPTION"},
	{0, "haproxy-protocol", false, optRefused, "--haproxy-protocol cannot be sent", "OPTION"},
	{0, "crlf", false, optRefused, "--crlf cannot be sent", "OPTION"},
	{0, "variable", true, optRefused, "curl's own variables (--variable) are not read", "OPTION"},
}

func longOption(name string) (curlOption, bool) {
	for _, o := range curlOptions {
		if o.long == name {
			return o, true
		}
	}
	if rest, ok := strings.CutPrefix(name, "no-"); ok {
		for _, o := range curlOptions {
			if o.long == rest && !o.arg && o.kind != optKept {
				o.kind = optIgnored
				return o, true
			}
		}
	}
	return curlOption{}, false
}

func shortOption(c byte) (curlOption, bool) {
	for _, o := range curlOptions {
		if o.short == c && c != 0 {
			return o, true
		}
	}
	return curlOption{}, false
}
