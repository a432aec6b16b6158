package redact_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
)

func each(t *testing.T, what string, f func(string) bool, want bool, names string) {
	t.Helper()
	for _, n := range strings.Fields(names) {
		if f(n) != want {
			t.Errorf("%s(%q) = %v", what, n, !want)
		}
	}
}

func TestCredentialHeader(t *testing.T) {
	each(t, "CredentialHeader", redact.CredentialHeader, true, `
		Authorization authorization AUTHORIZATION Proxy-Authorization X-Authorization X-Forwarded-Authorization
		Cookie Set-Cookie cookie WWW-Authenticate X-Api-Key x_api_key X.API.KEY Api-Key apikey
		X-Auth-Token X-Auth-Key X-Auth-Email X-Auth X-Access-Token X-CSRF-Token X-XSRF-TOKEN
		X-Amz-Security-Token X-Goog-Api-Key Ocp-Apim-Subscription-Key X-Vault-Token
		Private-Token JOB-TOKEN X-Gitlab-Token X-Functions-Key Authentication X-Session-Id X-Session
		X-Shopify-Access-Token X-Figma-Token X-Token Token X-RapidAPI-Key X-Client-Secret
		X-Password X-Passwd X-Credential X-Hub-Signature-256 Signature X-Master-Key X-Access-Key
		X-Secretary-Secret DPoP X-Bearer X-My-JWT X-Token-Sig
	`)
	each(t, "CredentialHeader", redact.CredentialHeader, false, `
		Accept Accept-Language Content-Type User-Agent X-Request-Id Idempotency-Key If-None-Match
		X-Author X-Authored-By X-Monkey X-Keyboard X-Api-Version X-Secretary X-Max-Tokens X-Tokens-Remaining X-Token-Count X-Tokenizer
		X-Continuation-Token X-Next-Page-Token Key X-Key-Format X-Correlation-Id Notion-Version X-GitHub-Api-Version
		X-Amz-Date Prefer Range Origin-Country X-Passenger-Count X-Design
	`)
}

func TestCredentialQuery(t *testing.T) {
	each(t, "CredentialQuery", redact.CredentialQuery, true, `
		api_key apikey API-KEY apiKey api.key key token access_token accessToken refresh_token id_token
		password passwd pwd pass passphrase secret client_secret client_assertion assertion auth authorization
		bearer credential credentials session session_id sessionid sid jwt sig signature hmac code_verifier
		otp pin private_key AWSAccessKeyId X-Amz-Signature X-Amz-Credential X-Amz-Security-Token
		X-Goog-Signature X-Goog-Credential hapikey app_key app_secret consumer_secret mysql_pwd
		csrf csrf_token xsrf_token PHPSESSID connect.sid x-api-key token[] user[password] auth[token][]
	`)
	each(t, "CredentialQuery", redact.CredentialQuery, false, `
		monkey author authors keyboard keyword keywords keys token_count tokens max_tokens page_token pageToken
		next_page_token code Code filter[code] country_code zip_code codes passenger passage pinned pincode session_type signed
		design secretary q page limit id authority author_id sort_key q[author] sv se sp
	`)
	// Names in the shapes in which servers take nested data, and behind the
	// characters at which some of them split.
	each(t, "CredentialQuery", redact.CredentialQuery, true, `
		token[0] user[token][0] api_key[a] [token] [0][token] token[user][0] user[api-key][] api/key api:key user:password
		$token token$ data(token) data{token} data/token a;token a;token;b a,token a|secret user[data:token][0]
		access_token_secret accessTokenSecret token_secret api+key api\key @token !token *token*
	`)
	each(t, "CredentialQuery", redact.CredentialQuery, false, `
		monkey[0] author[token_count] keyboard[a] page[token] page[token][0] next[token] next:token page/token page(token)
		filter[token_count] filter[author][eq] filter:author country:code sort/key $filter $orderby $select(name) a;b
		geo:lat fields[users] include[author.name] x;page_token filter(page_token) tokens[0] keys[0] sort_keys[a]
	`)
	for _, name := range []string{"to\u200bken", "token\x00", "api\tkey", "a; token"} {
		if !redact.CredentialQuery(name) {
			t.Errorf("%q", name)
		}
	}
	if redact.CredentialQuery("") || redact.CredentialQuery("[]") || redact.CredentialQuery(";/[]") {
		t.Error("an empty name is not a credential")
	}
}

// A code is a credential when it is as long as one, of 20 bytes.
func TestCredentialPair(t *testing.T) {
	const long = "abcdefghijklmnopqrst"
	for name, want := range map[string][2]bool{ // with a short value, with a long one
		"code": {false, true}, "CODE": {false, true}, "filter[code]": {false, true}, "code[]": {false, true},
		"country:code": {false, false}, "country_code": {false, false}, "codes": {false, false}, "q": {false, false},
		"token": {true, true}, "user[api_key]": {true, true},
	} {
		if got := [2]bool{redact.CredentialPair(name, long[1:]), redact.CredentialPair(name, long)}; got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	if got, want := redact.Query("code=500&a[code]=DE&code="+long+"&country_code="+long), "code=500&a[code]=DE&code="+redact.Mask+"&country_code="+long; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCredentialKey(t *testing.T) {
	each(t, "CredentialKey", redact.CredentialKey, true, `
		password user_password passwordHash hashed_password apiKey x-api-key stripe_secret_key client_secret
		accessToken access_token refreshToken id_token token auth_token tokenValue token_hash webhook_secret
		privateKey aws_access_key_id credentials Authorization set_cookie cookie csrf_token signature
		otp cvv ssn jwt sessionId session_key signing_key pwd
	`)
	each(t, "CredentialKey", redact.CredentialKey, false, `
		monkey author authors authority keyboard key keys code pin session sessions sid secretary token_count
		tokens max_tokens total_tokens completionTokens token_type token_id token_symbol tokenized
		page_token nextPageToken next_page_token nextToken sync_token continuationToken
		passenger passed compass country_code id name url bypass authored_at design
	`)
}

func TestHeaderValue(t *testing.T) {
	if got := redact.HeaderValue("cookie", "x") + redact.HeaderValue("accept", "y"); got != redact.Mask+"y" {
		t.Error(got)
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://a.example/x?b=2&a=1":                                "https://a.example/x?b=2&a=1",
		"https://u:p@a.example/x":                                    "https://[redacted]@a.example/x",
		"https://u@a.example":                                        "https://[redacted]@a.example",
		"https://a.example/?api_key=K&q=a%20b+c&q=%2B":               "https://a.example/?api_key=[redacted]&q=a%20b+c&q=%2B",
		"https://a.example/?api%5Fkey=K":                             "https://a.example/?api%5Fkey=[redacted]",
		"https://a.example/?my_access_token=K&page_token=p":          "https://a.example/?my_access_token=[redacted]&page_token=p",
		"https://a.example/?token&x":                                 "https://a.example/?token&x",
		"https://a.example/?token=":                                  "https://a.example/?token=[redacted]",
		"https://a.example/?%zz=K&x=1":                               "https://a.example/?[redacted]&x=1",
		"https://a.example/cb#access_token=K&state=s":                "https://a.example/cb#access_token=[redacted]&state=s",
		"https://a.example/a%2Fb/?":                                  "https://a.example/a%2Fb/?",
		"https://[::1]:8443/x":                                       "https://[::1]:8443/x",
		"mailto:u:secret@a.example":                                  "mailto:[redacted]@a.example",
		"https://a.example/?X-Amz-Signature=abc&X-Amz-Date=20260101": "https://a.example/?X-Amz-Signature=[redacted]&X-Amz-Date=20260101",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := redact.URL(u); got != want {
			t.Errorf("URL(%s)\n got %s\nwant %s", in, got, want)
		}
	}
	if redact.URL(nil) != "" {
		t.Error("nil URL")
	}
}

// Whatever the URL, no value behind a credential's key and no user information
// is in what is shown.
func FuzzURL(f *testing.F) {
	f.Add("https", "a.example", "/p", "x=1&y", "user")
	f.Fuzz(func(t *testing.T, scheme, host, path, query, user string) {
		const canary = "cAnArY7f3e"
		if strings.Contains(scheme+host+path+query+user, canary) {
			t.Skip("the canary is in the input itself")
		}
		u := &url.URL{Scheme: scheme, Host: host, Path: path, RawQuery: query + "&api_key=" + canary, User: url.UserPassword(user, canary)}
		if got := redact.URL(u); strings.Contains(got, canary) {
			t.Fatalf("%#v: %s", u, got)
		}
	})
}
