package importer

import (
	"net/url"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// auth reads the authorization of a request, its own or inherited.
func (p *postman) auth(s *sent, a recipe.Object) {
	kind := text(a, "type")
	at := func(key string) string { return authText(a, kind, key) }
	refused := func(code, format string, args ...any) {
		if s.err == nil {
			s.err = refuse(code, format, args...)
		}
	}
	drop := func(place string, values ...string) {
		for _, v := range values {
			if !mustache.MatchString(v) {
				p.run.credential(v)
			}
		}
		p.run.drop("%s of the collection's authorization", place)
	}
	switch kind {
	case "", "noauth":
	case "bearer":
		drop("bearer token", at("token"))
		s.auth = &way{kind: "static", headers: []credentialHeader{{"Authorization", "Bearer "}}}
	case "basic":
		user, password := at("username"), at("password")
		if len(password) < redact.MinSecret || cleanText(user) != user {
			drop("user", user)
		}
		drop("password", password)
		s.auth = &way{kind: "basic", headers: []credentialHeader{{"Authorization", "Basic "}}}
	case "apikey":
		name := at("key")
		drop("API key", at("value"))
		switch {
		case at("in") == "query":
			refused("CREDENTIAL_QUERY", "its credential goes into the address (%s), where it would be logged; that is not supported", cut(cleanText(name), 40))
		case !headerName.MatchString(name) || mustache.MatchString(name):
			refused("AUTH_SCHEME", "its API key names no usable header")
		default:
			s.auth = &way{kind: "static", headers: []credentialHeader{{name, ""}}}
		}
	case "oauth2":
		p.oauth2(s, at, drop, refused)
	default:
		for _, m := range authMembers(a, kind) {
			if redact.CredentialKey(m.Key) {
				v, _ := m.Value.(string)
				drop(cut(cleanText(m.Key), 40), v)
			}
		}
		refused("AUTH_SCHEME", "its authentication (%s) is not supported", cut(cleanText(kind), 20))
	}
}

func (p *postman) oauth2(s *sent, at func(string) string, drop func(string, ...string), refused func(string, string, ...any)) {
	for _, key := range []string{"accessToken", "clientSecret", "password", "refreshToken", "code_verifier"} {
		if v := at(key); v != "" {
			drop(key, v)
		}
	}
	if at("addTokenTo") == "queryParams" {
		refused("CREDENTIAL_QUERY", "its token goes into the address, where it would be logged; that is not supported")
		return
	}
	prefix := "Bearer "
	if word := strings.TrimSpace(at("headerPrefix")); schemeWord(word) {
		prefix = word + " "
	}
	bearer := []credentialHeader{{"Authorization", prefix}}
	u, err := url.Parse(at("accessTokenUrl"))
	if at("grant_type") == "client_credentials" && err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.User == nil && u.Host != "" && u.RawQuery == "" && prefix == "Bearer " && !mustache.MatchString(at("accessTokenUrl")) {
		w := &way{kind: "oauth2", headers: bearer, tokenURL: u.String()}
		if at("client_authentication") == "body" {
			w.note = "Postman sends the client id in the form: use --auth-style body"
		}
		w.scopes = slices.DeleteFunc(strings.Fields(cleanText(at("scope"))), func(s string) bool { return mustache.MatchString(s) })
		s.auth = w
		return
	}
	s.auth = &way{kind: "static", headers: bearer, note: "its token comes from an OAuth2 login, which is made elsewhere; it is not renewed"}
}

// authMembers are the settings of an authorization: an object in version 2.0,
// a list in 2.1.
func authMembers(a recipe.Object, kind string) recipe.Object {
	if o := object(a, kind); o != nil {
		return o
	}
	var out recipe.Object
	for _, e := range array(a, kind) {
		out = append(out, recipe.Member{Key: text(e, "key"), Value: get(e, "value")})
	}
	return out
}

func authText(a recipe.Object, kind, key string) string { return text(authMembers(a, kind), key) }
