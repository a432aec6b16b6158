package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/oauth"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

const form = "application/x-www-form-urlencoded"

func token(more string) string {
	return `{"access_token":"` + accessToken + `","token_type":"Bearer"` + more + `}`
}

// What goes over the wire, whole. The ids, the secret and the header's value are
// RFC 6749's own example (section 2.3.1); the odd text and how it is encoded are
// that of its Appendix B.
func TestWire(t *testing.T) {
	const odd, encoded = " %&+£€", "+%25%26%2B%C2%A3%E2%82%AC"
	const id, secret = "s6BhdRkqt3", "7Fjfp0ZBr1KtDRbnfVdmIw"
	all := func(o *secrets.OAuthMeta) { o.Scope, o.Audience = "read write", "https://api.example.com/" }
	for name, c := range map[string]struct {
		edit   func(*secrets.OAuthMeta)
		secret string
		want   arrival
	}{
		"body": {
			func(o *secrets.OAuthMeta) { o.ClientID = id }, secret,
			arrival{"POST", "/token", "", form, "application/json", "client_id=s6BhdRkqt3&client_secret=7Fjfp0ZBr1KtDRbnfVdmIw&grant_type=client_credentials"},
		},
		"basic": {
			func(o *secrets.OAuthMeta) { o.ClientID = id; basic(o) }, secret,
			arrival{"POST", "/token", "Basic czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3", form, "application/json", "grant_type=client_credentials"},
		},
		"body with scope and audience": {
			func(o *secrets.OAuthMeta) { o.ClientID = id; all(o) }, secret,
			arrival{"POST", "/token", "", form, "application/json", "audience=https%3A%2F%2Fapi.example.com%2F&client_id=s6BhdRkqt3&client_secret=7Fjfp0ZBr1KtDRbnfVdmIw&grant_type=client_credentials&scope=read+write"},
		},
		"basic with scope and audience": {
			func(o *secrets.OAuthMeta) { o.ClientID = id; basic(o); all(o) }, secret,
			arrival{"POST", "/token", "Basic czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3", form, "application/json", "audience=https%3A%2F%2Fapi.example.com%2F&grant_type=client_credentials&scope=read+write"},
		},
		"odd characters in the body": {
			func(o *secrets.OAuthMeta) { o.ClientID = odd }, "12" + odd,
			arrival{"POST", "/token", "", form, "application/json", "client_id=" + encoded + "&client_secret=12" + encoded + "&grant_type=client_credentials"},
		},
		// base64 of "+%25%26%2B%C2%A3%E2%82%AC:12+%25%26%2B%C2%A3%E2%82%AC"
		"odd characters in the header": {
			func(o *secrets.OAuthMeta) { o.ClientID = odd; basic(o) }, "12" + odd,
			arrival{"POST", "/token", "Basic KyUyNSUyNiUyQiVDMiVBMyVFMiU4MiVBQzoxMislMjUlMjYlMkIlQzIlQTMlRTIlODIlQUM=", form, "application/json", "grant_type=client_credentials"},
		},
		// base64 of "a%3Ab:12345678"
		"a colon in the id": {
			func(o *secrets.OAuthMeta) { o.ClientID = "a:b"; basic(o) }, "12345678",
			arrival{"POST", "/token", "Basic YSUzQWI6MTIzNDU2Nzg=", form, "application/json", "grant_type=client_credentials"},
		},
		"a query in the token URL": {
			func(o *secrets.OAuthMeta) { o.ClientID = id; o.TokenURL += "?tenant=7" }, secret,
			arrival{"POST", "/token?tenant=7", "", form, "application/json", "client_id=s6BhdRkqt3&client_secret=7Fjfp0ZBr1KtDRbnfVdmIw&grant_type=client_credentials"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := answers(t, 200, "application/json", token(`,"expires_in":3600`))
			got, err := mint(t, oauth.New(w.start().Send), c.secret, c.edit)
			is(t, got, err, accessToken, time.Hour)
			if d := cmp.Diff([]arrival{c.want}, w.seen()); d != "" {
				t.Error(d)
			}
		})
	}
}

// The request is one that no setting of the door can repeat or hide.
func TestRequest(t *testing.T) {
	calls := map[string]bool{}
	for range 3 {
		_, _ = mint(t, oauth.New(func(_ context.Context, r *outbound.Request) (*outbound.Response, error) {
			calls[r.Tag.Call] = true
			type rest struct {
				Method, URL, Kind, Wrapper   string
				Timeout                      time.Duration
				NoRedirects, Durable, Change bool
			}
			want := rest{"POST", tokenURL, "mint", "", 15 * time.Second, true, true, true}
			if got := (rest{r.Method, r.URL.String(), r.Tag.Kind, r.Tag.Wrapper, r.Timeout, r.NoRedirects, r.Durable, r.Mutating}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			return nil, errors.New("down")
		}), clientSecret)
	}
	if len(calls) != 3 || calls[""] {
		t.Errorf("ids of calls: %v", calls)
	}
}

// The intent and the result of a mint are rows of one call.
func TestAudited(t *testing.T) {
	w := answers(t, 200, "application/json", token(""))
	if _, err := w.mint(); err != nil {
		t.Fatal(err)
	}
	if len(w.intents) != 1 || len(w.results) != 1 || w.intents[0].Tag != w.results[0].Tag || w.results[0].Tag.Kind != "mint" || w.results[0].Status != 200 || !w.results[0].Durable {
		t.Errorf("intents %+v, results %+v", w.intents, w.results)
	}
	w.intent = fault.New("AUDIT_FAILED", "the disk is full")
	_, err := w.mint()
	failed(t, err, problem{"AUDIT_FAILED", "the disk is full", 0, true, 0})
	if n := len(w.seen()); n != 1 {
		t.Errorf("%d requests arrived, one of them unrecorded", n)
	}
}

// O-01: every shape of expires_in, as JSON and in a form.
func TestO01(t *testing.T) {
	const unknown, day = 5 * time.Minute, 24 * time.Hour
	for text, want := range map[string]time.Duration{
		`3600`: time.Hour, `"3600"`: time.Hour, `3600.0`: time.Hour, `"3600.0"`: time.Hour, `3.6e3`: time.Hour, `" 3600 "`: time.Hour, `"+3600"`: time.Hour,
		`null`: unknown, `""`: unknown, `"never"`: unknown, `"1h"`: unknown, `true`: unknown, `[3600]`: unknown, `{}`: unknown,
		`"NaN"`: unknown, `"Infinity"`: unknown, `"0x10"`: unknown, `"3_600"`: unknown, `"1,5"`: unknown,
		`0`: 0, `"0"`: 0, `30`: 30 * time.Second, `0.5`: time.Second / 2,
		`-5`: 0, `"-5"`: 0, `-1e400`: 0,
		`86400`: day, `86401`: day, `9223372036`: day, `1e18`: day, `9223372036854775808`: day, `1e400`: day, `"1e400"`: day,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := answers(t, 200, "application/json", token(`,"expires_in":`+text)).mint()
			is(t, got, err, accessToken, want)
		})
		var s string
		if json.Unmarshal([]byte(text), &s) != nil {
			continue
		}
		t.Run("form "+text, func(t *testing.T) {
			got, err := answers(t, 200, form, "access_token="+accessToken+"&expires_in="+url.QueryEscape(s)).mint()
			is(t, got, err, accessToken, want)
		})
	}
	got, err := answers(t, 200, "application/json", token("")).mint()
	is(t, got, err, accessToken, unknown)
}

// O-01 with a vault: a short, absent or odd lifetime is neither a mint for each
// request of a call nor a token that is kept for ever.
func TestO01Cached(t *testing.T) {
	for text, c := range map[string]struct {
		after time.Duration // between two calls
		mints int
	}{
		"0": {0, 2}, "30": {0, 2}, "-5": {0, 2},
		"null": {4*time.Minute - time.Millisecond, 1}, `"never"`: {4 * time.Minute, 2},
		`"3600"`: {59*time.Minute - time.Millisecond, 1}, "3600": {59 * time.Minute, 2},
		"1e400": {24 * time.Hour, 2},
	} {
		t.Run(text, func(t *testing.T) {
			w := answers(t, 200, "application/json", token(`,"expires_in":`+text))
			now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
			v := newVault(t, func() time.Time { return now }, oauth.New(w.start().Send))
			put(t, v, clientSecret)
			for range 2 {
				g, err := v.Grant("orders", "api.example.com")
				if err != nil {
					t.Fatal(err)
				}
				for range 3 { // pages of one call
					var sent string
					if err := g.Apply(t.Context(), func(_, value string) { sent = value }); err != nil || sent != "Bearer "+accessToken {
						t.Fatal(sent, err)
					}
				}
				g.Close()
				now = now.Add(c.after)
			}
			if n := len(w.seen()); n != c.mints {
				t.Errorf("%d mints for two calls, want %d", n, c.mints)
			}
		})
	}
}

// O-02: a form instead of JSON, as some endpoints send whatever they were asked for.
func TestO02(t *testing.T) {
	const body = "access_token=" + accessToken + "&token_type=bearer&expires_in=3600&scope=read"
	for _, contentType := range []string{form, form + "; charset=utf-8", "text/plain", "text/plain; charset=UTF-8", ""} {
		got, err := answers(t, 200, contentType, body).mint()
		is(t, got, err, accessToken, time.Hour)
	}
	got, err := answers(t, 200, form, "access_token=a%2Bb%2Fc%3D%3D").mint()
	is(t, got, err, "a+b/c==", oauth.UnknownLifetime)
	got, err = answers(t, 200, form, "access_token=x&token_type=bearer").mint()
	is(t, got, err, "x", oauth.UnknownLifetime) // the vault has the last word on a token that short
}

// Answers that are odd and good.
func TestTokens(t *testing.T) {
	const jsonType = "application/json"
	long := strings.Repeat("t", secrets.MaxValue)
	for name, c := range map[string]struct {
		status            int
		contentType, body string
		access            string
	}{
		"JSON as a page":         {200, "text/html", token(""), accessToken},
		"JSON as text":           {200, "text/plain", token(""), accessToken},
		"JSON as a form":         {200, form, token(""), accessToken},
		"JSON without a type":    {200, "", token(""), accessToken},
		"created":                {201, jsonType, token(""), accessToken},
		"byte order mark":        {200, jsonType, "\ufeff" + token(""), accessToken},
		"UTF-16":                 {200, jsonType, "\xff\xfe" + strings.Join(strings.Split(token(""), ""), "\x00") + "\x00", accessToken},
		"space around":           {200, jsonType, "\r\n\t " + token("") + "\r\n", accessToken},
		"lower case":             {200, jsonType, `{"token_type":"bearer","access_token":"` + accessToken + `"}`, accessToken},
		"upper case":             {200, jsonType, `{"token_type":"BEARER","access_token":"` + accessToken + `"}`, accessToken},
		"Apigee's word":          {200, jsonType, `{"token_type":"BearerToken","access_token":"` + accessToken + `"}`, accessToken},
		"no type":                {200, jsonType, `{"access_token":"` + accessToken + `"}`, accessToken},
		"null type":              {200, jsonType, `{"token_type":null,"access_token":"` + accessToken + `"}`, accessToken},
		"a type too much":        {200, jsonType, token(`,"refresh_token":"r","scope":["a"],"id":{"access_token":"inner"},"id":1`), accessToken},
		"every character":        {200, jsonType, `{"access_token":"!#$%&'()*+,-./09:;<=>?@AZ[]^_` + "`" + `az{|}~"}`, "!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~"},
		"16 KiB":                 {200, jsonType, `{"access_token":"` + long + `"}`, long},
		"an answer of 64 KiB":    {200, jsonType, token(strings.Repeat(" ", 64<<10-len(token("")))), accessToken},
		"an error beside it":     {200, jsonType, token(`,"error":"invalid_client"`), accessToken},
		"other case of a member": {200, jsonType, token(`,"Access_Token":"other","ACCESS_TOKEN":"other"`), accessToken},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := answers(t, c.status, c.contentType, c.body).mint()
			is(t, got, err, c.access, oauth.UnknownLifetime)
		})
	}
}

// Answers that say yes and give no token that could be used.
func TestBadAnswers(t *testing.T) {
	const jsonType = "application/json"
	with := func(access string) string { return `{"access_token":` + access + `,"token_type":"Bearer"}` }
	typed := func(kind string) string { return `{"access_token":"` + accessToken + `","token_type":` + kind + `}` }
	const noHeader = "with a token that has characters which no header may carry"
	for name, c := range map[string]struct {
		status                   int
		contentType, body, words string
	}{
		"a page":                 {200, "text/html", "<!DOCTYPE html><p>" + accessToken, "with a web page, not with JSON"},
		"a page as JSON":         {200, jsonType, "\n <html>" + accessToken, "with a web page, not with JSON"},
		"nothing":                {200, jsonType, "", "with nothing"},
		"no content":             {204, "", "", "with nothing"},
		"space":                  {200, jsonType, " \r\n", "with nothing"},
		"text":                   {200, "text/plain", accessToken, "with something other than a JSON object"},
		"an array":               {200, jsonType, `["` + accessToken + `"]`, "with something other than a JSON object"},
		"a string":               {200, jsonType, `"` + accessToken + `"`, "with something other than a JSON object"},
		"null":                   {200, jsonType, `null`, "with something other than a JSON object"},
		"a form as JSON":         {200, jsonType, "access_token=" + accessToken, "with something other than a JSON object"},
		"half of it":             {200, jsonType, `{"access_token":"` + accessToken, "with JSON that is broken off or malformed"},
		"no closing brace":       {200, jsonType, strings.TrimSuffix(token(""), "}"), "with JSON that is broken off or malformed"},
		"no JSON":                {200, jsonType, `{access_token:` + accessToken + `}`, "with JSON that is broken off or malformed"},
		"two values":             {200, jsonType, token("") + token(""), "with more than one JSON value"},
		"a tail":                 {200, jsonType, token("") + "x", "with more than one JSON value"},
		"no token":               {200, jsonType, `{"token_type":"Bearer"}`, "with no access_token"},
		"other case":             {200, jsonType, `{"Access_Token":"` + accessToken + `"}`, "with no access_token"},
		"null token":             {200, jsonType, with("null"), "with no access_token"},
		"empty token":            {200, jsonType, with(`""`), "with no access_token"},
		"a number":               {200, jsonType, with("12345678"), "with an access_token that is not text"},
		"an object":              {200, jsonType, with(`{"value":"` + accessToken + `"}`), "with an access_token that is not text"},
		"two tokens":             {200, jsonType, `{"access_token":"` + accessToken + `","access_token":"other"}`, "with access_token twice"},
		"two types":              {200, jsonType, token(`,"token_type":"mac"`), "with token_type twice"},
		"two lifetimes":          {200, jsonType, token(`,"expires_in":1,"expires_in":99`), "with expires_in twice"},
		"CR LF":                  {200, jsonType, with(`"` + accessToken + `\r\nX-Evil: 1"`), noHeader},
		"LF at the end":          {200, jsonType, with(`"` + accessToken + `\n"`), noHeader},
		"NUL":                    {200, jsonType, with(`"` + accessToken + `\u0000"`), noHeader},
		"DEL":                    {200, jsonType, with(`"` + accessToken + `\u007f"`), noHeader},
		"tab":                    {200, jsonType, with(`"` + accessToken + `\t"`), noHeader},
		"a space within":         {200, jsonType, with(`"` + accessToken + ` 2"`), noHeader},
		"a space before":         {200, jsonType, with(`" ` + accessToken + `"`), noHeader},
		"beyond ASCII":           {200, jsonType, with(`"` + accessToken + `é"`), noHeader},
		"no UTF-8":               {200, jsonType, with(`"` + accessToken + "\xff" + `"`), noHeader},
		"over 16 KiB":            {200, jsonType, with(`"` + strings.Repeat("t", secrets.MaxValue+1) + `"`), "with a token longer than 16 KiB"},
		"over 64 KiB":            {200, jsonType, token(strings.Repeat(" ", 64<<10-len(token(""))+1)), "with more than 64 KiB"},
		"over all":               {200, jsonType, token(strings.Repeat(" ", outbound.DefaultMaxBytes)), "with more than 64 KiB"},
		"mac":                    {200, jsonType, typed(`"MAC"`), "with a token of type mac, where only bearer tokens can be used"},
		"DPoP":                   {200, jsonType, typed(`"dpop"`), "with a token of type DPoP, where only bearer tokens can be used"},
		"a type of its own":      {200, jsonType, typed(`"` + accessToken + `"`), "with a token that is not a bearer token"},
		"a type that is a list":  {200, jsonType, typed(`["Bearer"]`), "with a token_type that is not text"},
		"unknown charset":        {200, jsonType + "; charset=klingon", token(""), "in an encoding that cannot be read"},
		"a form, no token":       {200, form, "token_type=bearer&x=" + accessToken, "with no access_token"},
		"a form, two tokens":     {200, form, "access_token=" + accessToken + "&access_token=b", "with access_token twice"},
		"a form, CR LF":          {200, form, "access_token=" + accessToken + "%0d%0aX-Evil:1", noHeader},
		"a form, mac":            {200, form, "access_token=" + accessToken + "&token_type=mac", "with a token of type mac, where only bearer tokens can be used"},
		"a form, broken":         {200, form, "access_token=" + accessToken + "%zz", "with a malformed form"},
		"deep":                   {200, jsonType, token(`,"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000)), "with JSON that is broken off or malformed"},
		"an echo of the request": {200, "text/plain", "client_secret=" + clientSecret, "with a malformed form"},
	} {
		t.Run(name, func(t *testing.T) {
			w := answers(t, c.status, c.contentType, c.body)
			_, err := w.mint()
			failed(t, err, problem{"OAUTH_TOKEN_BAD_ANSWER", "the token endpoint example.com answered " + c.words, 0, false, 0})
			if n := len(w.seen()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(rw, accessToken)
	})
	_, err := w.mint()
	failed(t, err, problem{"OAUTH_TOKEN_BAD_ANSWER", "the token endpoint example.com answered in an encoding that cannot be read", 0, false, 0})
}

// Refusals: the status, a code of RFC 6749, and nothing else of the answer.
func TestRefused(t *testing.T) {
	reason := func(code string) string {
		return `{"error":"` + code + `","error_description":"client ` + clientID + ` with ` + clientSecret + ` is wrong","error_uri":"https://x.example/canary"}`
	}
	for _, c := range []struct {
		status int
		body   string
		words  string
		again  bool
		hint   string // a part
	}{
		{401, reason("invalid_client"), "401: invalid_client", false, "client id, secret and auth style (now body): `hbrestd secret show orders`"},
		{400, reason("invalid_client"), "400: invalid_client", false, "client id, secret and auth style"},
		{400, reason("invalid_grant"), "400: invalid_grant", false, "settings there"},
		{400, reason("invalid_request"), "400: invalid_request", false, "scope, audience and auth style"},
		{400, reason("unauthorized_client"), "400: unauthorized_client", false, "settings there"},
		{400, reason("unsupported_grant_type"), "400: unsupported_grant_type", false, "settings there"},
		{400, reason("invalid_scope"), "400: invalid_scope", false, "check the scope"},
		{400, reason("temporarily_unavailable"), "400: temporarily_unavailable", true, "Repeat"},
		{400, reason("server_error"), "400: server_error", true, "Repeat"},
		{500, reason("invalid_client"), "500: invalid_client", false, "client id"},
		{400, reason(accessToken), "400", false, "scope, audience"},
		{400, reason("INVALID_CLIENT"), "400", false, "scope, audience"},
		{400, `{"error":{"code":"invalid_client"}}`, "400", false, "scope, audience"},
		{400, `{"error":["invalid_client"]}`, "400", false, "scope, audience"},
		{400, `{"error":"invalid_client","error":"invalid_scope"}`, "400", false, "scope, audience"},
		{400, "error=invalid_scope&error_description=canary", "400: invalid_scope", false, "check the scope"},
		{401, "<html>" + clientSecret, "401", false, "client id, secret and auth style"},
		{401, "", "401", false, "client id, secret and auth style"},
		{403, "canary", "403", false, "scope, audience"},
		{404, "<html>canary", "404", false, "check the token URL"},
		{405, "", "405", false, "check the token URL"},
		{418, reason("invalid_client") + strings.Repeat(" ", 64<<10), "418", false, "scope, audience"},
		{401, strings.Repeat("canary", outbound.DefaultMaxBytes/6+1), "401", false, "client id, secret"},
		{408, "", "408", true, "Repeat"},
		{429, reason("invalid_client"), "429: invalid_client", true, "Repeat"},
		{500, clientSecret, "500", true, "Repeat"},
		{501, "", "501", false, "scope, audience"},
		{502, "<html>canary", "502", true, "Repeat"},
		{503, "", "503", true, "Repeat"},
		{599, "", "599", true, "Repeat"},
		{200, reason("invalid_client"), "200: invalid_client", false, "client id"},
		{200, reason("bad_verification_code"), "200 with an error that is none of OAuth2's", false, "scope, audience"},
		{200, "error=invalid_scope&access_token=", "200: invalid_scope", false, "check the scope"},
	} {
		t.Run(fmt.Sprintf("%d %.40s", c.status, c.body), func(t *testing.T) {
			w := answers(t, c.status, "", c.body)
			_, err := w.mint()
			failed(t, err, problem{"OAUTH_TOKEN_FAILED", "the token endpoint example.com answered " + c.words, c.status, c.again, 0})
			if len(w.results) != 1 || w.results[0].Err != "OAUTH_TOKEN_FAILED" {
				t.Errorf("observed %+v", w.results)
			}
			if f := fault.From(err); !strings.Contains(f.Hint, c.hint) {
				t.Errorf("hint %q has no %q", f.Hint, c.hint)
			}
			if n := len(w.seen()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// Retry-After is believed from an endpoint that may be asked again, also when
// only half of its answer comes.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		status int
		header string
		want   time.Duration
		again  bool
		hint   string
	}{
		{429, "7", 7 * time.Second, true, "Wait 7 s, then repeat the call."},
		{503, "120", 2 * time.Minute, true, "Wait 120 s, then repeat the call."},
		{503, "999999999", time.Hour, true, "Wait 3600 s, then repeat the call."},
		{429, "0", 0, true, "Repeat the call in a moment."},
		{429, "soon", 0, true, "Repeat the call in a moment."},
		{429, "-1", 0, true, "Repeat the call in a moment."},
		{429, "Mon, 30 Nov 2020 12:00:00 GMT", 0, true, "Repeat the call in a moment."},
		{400, "7", 0, false, "Ask a person to check scope, audience and auth style (now body): `hbrestd secret show orders`."},
	} {
		for _, half := range []bool{false, true} {
			t.Run(fmt.Sprint(c.status, c.header, half), func(t *testing.T) {
				w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Retry-After", c.header)
					if half {
						rw.Header().Set("Content-Length", "99")
					}
					rw.WriteHeader(c.status)
					_, _ = io.WriteString(rw, `{"error":`)
				})
				_, err := w.mint()
				failed(t, err, problem{"OAUTH_TOKEN_FAILED", fmt.Sprintf("the token endpoint example.com answered %d", c.status), c.status, c.again, c.want})
				if f := fault.From(err); f.Hint != c.hint {
					t.Errorf("hint %q, want %q", f.Hint, c.hint)
				}
			})
		}
	}
}

// D32: a redirect of the endpoint, wherever it points, is refused, and the secret
// has been sent once only.
func TestD32(t *testing.T) {
	for _, edit := range []func(*secrets.OAuthMeta){basic, func(*secrets.OAuthMeta) {}} {
		for _, status := range []int{300, 301, 302, 303, 304, 307, 308, 399} {
			for _, place := range []string{"https://other.example.com/token", "https://example.com/next", "/token/", "http://example.com/token", ""} {
				w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Location", place)
					rw.WriteHeader(status)
				})
				_, err := w.mint(edit)
				failed(t, err, problem{
					"OAUTH_TOKEN_FAILED", fmt.Sprintf("the token endpoint example.com answered with a redirect (%d), which is not followed with a client secret", status),
					status, false, 0,
				})
				if len(w.seen()) != 1 || len(w.dials) != 1 || len(w.intents) != 1 {
					t.Errorf("%d to %q: %d requests, dials %v", status, place, len(w.seen()), w.dials)
				}
			}
		}
	}
	// Whoever sends may not follow redirects either; if it says that it did or
	// would not, that is a redirect.
	for _, code := range []fault.Code{"UPSTREAM_REDIRECT", "POLICY_REDIRECT"} {
		_, err := mint(t, oauth.New(func(context.Context, *outbound.Request) (*outbound.Response, error) {
			return nil, fault.New(code, "to canary").With(fault.Status(307))
		}), clientSecret)
		failed(t, err, problem{"OAUTH_TOKEN_FAILED", "the token endpoint example.com answered with a redirect (307), which is not followed with a client secret", 307, false, 0})
	}
}

// D33: an error of the endpoint is one request in one style, and its body is not
// shown.
func TestD33(t *testing.T) {
	for style, c := range map[secrets.AuthStyle]struct{ header, form bool }{secrets.StyleBody: {false, true}, secrets.StyleBasic: {true, false}} {
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			rw.WriteHeader(500)
			_, _ = fmt.Fprintf(rw, "%s %s", r.Header, body) // an endpoint that dumps what it got
		})
		_, err := w.mint(func(o *secrets.OAuthMeta) { o.AuthStyle = style })
		failed(t, err, problem{"OAUTH_TOKEN_FAILED", "the token endpoint example.com answered 500", 500, true, 0})
		got := w.seen()
		if len(got) != 1 || (got[0].Authorization != "") != c.header || strings.Contains(got[0].Body, "client_id=") != c.form {
			t.Errorf("%s: %+v", style, got)
		}
	}
}

// O-06, the minting part: an API that always says 401 costs one mint more, then
// there is no point in another.
func TestO06(t *testing.T) {
	n := 0
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = fmt.Fprintf(rw, `{"access_token":"minted-token-%d","token_type":"Bearer","expires_in":3600}`, n)
	})
	v := newVault(t, time.Now, oauth.New(w.start().Send))
	put(t, v, clientSecret)
	for call, want := range [][]string{{"Bearer minted-token-1", "Bearer minted-token-2"}, {"Bearer minted-token-2", "Bearer minted-token-3"}} {
		g, err := v.Grant("orders", "api.example.com")
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		apply := func() {
			if err := g.Apply(t.Context(), func(_, value string) { sent = append(sent, value) }); err != nil {
				t.Fatal(err)
			}
		}
		apply()
		if again, err := g.Renew(t.Context()); !again || err != nil {
			t.Fatal(again, err)
		}
		apply()
		if again, err := g.Renew(t.Context()); again || err != nil {
			t.Fatal(again, err)
		}
		if d := cmp.Diff(want, sent); d != "" {
			t.Error(d)
		}
		if got := len(w.seen()); got != call+2 {
			t.Errorf("%d mints after call %d", got, call)
		}
		g.Close()
	}
}

// Endpoints that give no answer at all.
func TestUnreachable(t *testing.T) {
	never := func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	cut := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(rw, `{"access_token":"`+accessToken)
	}
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	garbage := func(rw http.ResponseWriter, r *http.Request) {
		c, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close() //nolint:errcheck // the test is about what was written
		body, _ := io.ReadAll(r.Body)
		_, _ = c.Write(body) // an endpoint that echoes where HTTP should be
	}
	for name, c := range map[string]struct {
		url     string
		handler http.HandlerFunc
		words   string
		again   bool
	}{
		"no such host": {"https://nowhere.example.com/", never, "could not be used: the host name nowhere.example.com was not found", true},
		"refused":      {"https://down.example.com/", never, "could not be used: connecting to down.example.com failed (connection refused)", true},
		"wrong name":   {"https://wrong-name.test/", never, "", false},
		"silent":       {tokenURL, hang, "could not be used: example.com did not answer completely within 200ms", true},
		"half":         {tokenURL, cut, "could not be used: the answer stopped before its end", true},
		"cut":          {tokenURL, abort, "could not be used: example.com closed the connection before it answered", true},
		"no HTTP":      {tokenURL, garbage, "could not be used: example.com did not answer in HTTP", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.handler)
			w.policy.MaxTimeout = 200 * time.Millisecond
			_, err := w.mint(at(c.url))
			want := problem{"OAUTH_TOKEN_UNREACHABLE", "the token endpoint " + c.words, 0, c.again, 0}
			if c.words == "" { // the words are the certificate's
				want.Message = fault.From(err).Message
				if !strings.HasPrefix(want.Message, "the token endpoint could not be used: the certificate of wrong-name.test is for another host") {
					t.Error(want.Message)
				}
			}
			failed(t, err, want)
			if n := len(w.seen()); n > 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
	for _, c := range []struct {
		err  error
		want problem
	}{
		{fault.New("BUSY", "canary"), problem{"OAUTH_TOKEN_UNREACHABLE", "the token endpoint example.com has too many requests waiting for it", 0, true, 0}},
		{errors.New("canary"), problem{"OAUTH_TOKEN_UNREACHABLE", "the token endpoint example.com could not be reached", 0, true, 0}},
		{fault.New("UPSTREAM_TLS", "the certificate is for %s", clientID), problem{"OAUTH_TOKEN_UNREACHABLE", "the token endpoint could not be used", 0, false, 0}},
		{fault.New("UPSTREAM_PROTOCOL", "x").With(fault.Cause(errors.New(clientSecret))), problem{"OAUTH_TOKEN_UNREACHABLE", "the token endpoint could not be used: x", 0, false, 0}},
		{fault.New("SHUTTING_DOWN", "stopping"), problem{"SHUTTING_DOWN", "stopping", 0, true, 0}},
	} {
		_, err := mint(t, oauth.New(func(context.Context, *outbound.Request) (*outbound.Response, error) { return nil, c.err }), clientSecret)
		failed(t, err, c.want)
	}
}

// The policy's refusals keep their codes and speak of the token URL; nothing is sent.
func TestPolicy(t *testing.T) {
	for u, want := range map[string]problem{
		"http://example.com/token":       {"POLICY_SCHEME", "token URL refused: plain http to example.com is not allowed", 0, false, 0},
		"https://127.0.0.1/token":        {"POLICY_PRIVATE_ADDRESS", "", 0, false, 0},
		"https://inside.example.com/":    {"POLICY_PRIVATE_ADDRESS", "", 0, false, 0},
		"https://169.254.169.254/token":  {"POLICY_PRIVATE_ADDRESS", "", 0, false, 0},
		"https://example.com:22/" + "to": {"POLICY_URL", "", 0, false, 0},
	} {
		w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") })
		_, err := w.mint(at(u))
		if f := fault.From(err); want.Message == "" && strings.HasPrefix(f.Message, "token URL refused: ") {
			want.Message = f.Message
		}
		failed(t, err, want)
		f := fault.From(err)
		if f.Field != "oauth.tokenUrl" || strings.Contains(f.Hint, "request.url") {
			t.Errorf("%s: field %q, hint %q", u, f.Field, f.Hint)
		}
		if len(w.dials) != 0 {
			t.Errorf("%s: dialled %v", u, w.dials)
		}
	}
	_, err := mint(t, oauth.New(func(context.Context, *outbound.Request) (*outbound.Response, error) {
		return nil, fault.New("POLICY_URL", "the URL has %s in it", clientID)
	}), clientSecret)
	failed(t, err, problem{"POLICY_URL", "token URL refused", 0, false, 0})
}

// The end of a context stays what it is: the vault knows whose it was.
func TestContext(t *testing.T) {
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		_, err := mint(t, oauth.New(func(context.Context, *outbound.Request) (*outbound.Response, error) { return nil, want }), clientSecret)
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// A request that no vault would make is refused before anything is sent.
func TestUnusable(t *testing.T) {
	m := oauth.New(func(context.Context, *outbound.Request) (*outbound.Response, error) {
		t.Error("sent")
		return nil, errors.New("sent")
	})
	_, err := m(t.Context(), secrets.MintRequest{Name: "orders", TokenURL: tokenURL, ClientID: clientID})
	failed(t, err, problem{"OAUTH_TOKEN_FAILED", "the credential does not say how to show the client to its token endpoint; nothing was sent", 0, false, 0})
	_, err = m(t.Context(), secrets.MintRequest{Name: "orders", TokenURL: "https://exa mple.com/canary", AuthStyle: secrets.StyleBody})
	failed(t, err, problem{"POLICY_URL", "the token URL is not a URL", 0, false, 0})
}

// Whatever an endpoint says, the outcome is a token that a header may carry or
// one of three codes without a word of the answer.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{token(""), token(`,"expires_in":"3600.0"`), "access_token=x&token_type=bearer", `{"error":"invalid_client"}`, "<html>", "", "{", `{"a":[{}],"access_token":1}`} {
		f.Add(200, "application/json", s)
		f.Add(400, form, s)
	}
	f.Fuzz(func(t *testing.T, status int, contentType, body string) {
		const mark = "Zq7-canary"
		m := oauth.New(func(context.Context, *outbound.Request) (*outbound.Response, error) {
			return &outbound.Response{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(strings.ReplaceAll(body, "$", mark))}, nil
		})
		_, err := m(t.Context(), secrets.MintRequest{TokenURL: tokenURL, ClientID: clientID, AuthStyle: secrets.StyleBody})
		if err == nil {
			return
		}
		silent(t, err)
		switch c := fault.From(err).Code; c {
		case "OAUTH_TOKEN_FAILED", "OAUTH_TOKEN_BAD_ANSWER":
		default:
			t.Errorf("%s for %q", c, body)
		}
	})
}
