package importer

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A server is where requests go: its address without a last slash, and its
// canonical host, without a port.
type server struct{ address, host string }

// base finds the document's server: the one of the options, else the first
// with https, else the first with http.
func (im *openAPI) base() error {
	if im.options.BaseURL != "" {
		s, why := parseServer(im.options.BaseURL)
		if why != "" {
			return fault.New("IMPORT_INVALID", "the base URL %s", why).With(fault.Hint("Pass --base-url https://HOST/PATH."))
		}
		im.server = s
		return nil
	}
	s, why := im.choose(im.candidates(im.root))
	if why == "" {
		im.server = s
		return nil
	}
	// An operation may have its own server.
	for _, p := range object(im.root, "paths") {
		if has(p.Value, "servers") {
			return nil
		}
		item, _ := p.Value.(recipe.Object)
		for _, m := range item {
			if has(m.Value, "servers") {
				return nil
			}
		}
	}
	return fault.New("IMPORT_NO_SERVER", "%s", why)
}

// candidates are the addresses that a document, a path or an operation names,
// variables filled in.
func (im *openAPI) candidates(v recipe.Value) []string {
	var out []string
	if im.version == v2 {
		host, path := text(v, "host"), text(v, "basePath")
		if host == "" {
			return nil
		}
		schemes := array(v, "schemes")
		if len(schemes) == 0 {
			schemes = recipe.Array{"https"}
			im.note("the document does not say http or https; https is used")
		}
		for _, s := range schemes {
			if name, ok := s.(string); ok && (name == "http" || name == "https") {
				out = append(out, name+"://"+host+path)
			}
		}
		return out
	}
	for _, s := range array(v, "servers") {
		out = append(out, im.filled(s))
	}
	return out
}

var serverVariable = regexp.MustCompile(`\{([^{}]*)\}`)

// filled puts the defaults of a server's variables into its address.
func (im *openAPI) filled(s recipe.Value) string {
	variables := object(s, "variables")
	return serverVariable.ReplaceAllStringFunc(strings.TrimSpace(text(s, "url")), func(m string) string {
		name := m[1 : len(m)-1]
		def := text(get(variables, name), "default")
		if def == "" {
			if list := array(get(variables, name), "enum"); len(list) > 0 {
				def, _ = list[0].(string)
			}
		}
		if def == "" {
			return m
		}
		im.note("server variable %s: %s; --base-url chooses another", cut(cleanText(name), 40), cut(cleanText(def), 60))
		return def
	})
}

// choose takes the first usable address, https before http. why says, when
// there is none, what was wrong.
func (im *openAPI) choose(list []string) (s server, why string) {
	why = "the document does not say where the API is"
	for _, scheme := range []string{"https://", "http://"} {
		for _, address := range list {
			if !strings.HasPrefix(strings.ToLower(address), scheme) {
				continue
			}
			parsed, problem := parseServer(address)
			if problem == "" {
				return parsed, ""
			}
			why = "the document's server " + problem
		}
	}
	for _, address := range list {
		if !strings.Contains(address, "://") {
			why = "the document's server is relative to the place where the document lies: " + cut(cleanText(address), 80)
			break
		}
	}
	return server{}, why
}

// parseServer checks an address; why completes "the server …".
func parseServer(address string) (s server, why string) {
	if strings.ContainsAny(address, "{}") {
		return s, "has a variable without a default"
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return s, "is no URL"
	case u.User != nil:
		return s, "has a user or a password in it"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return s, "has a query or a fragment"
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return s, "is no absolute http or https URL"
	}
	host, port, err := hostname.FromURL(u)
	if err != nil {
		return s, "has no usable host"
	}
	if u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		port = ""
	}
	return server{u.Scheme + "://" + hostname.Join(host, port) + strings.TrimRight(u.EscapedPath(), "/"), host}, ""
}

// serverOf is the server of one operation: its own, its path's, the
// document's.
func (op *operation) serverOf() (server, error) {
	if op.options.BaseURL == "" && op.version != v2 {
		for _, v := range []recipe.Value{op.op, op.item} {
			if len(array(v, "servers")) == 0 {
				continue
			}
			s, why := op.choose(op.candidates(v))
			if why != "" {
				return s, refuse("SERVER", "%s", strings.Replace(why, "the document's server", "its server", 1))
			}
			return s, nil
		}
	}
	if op.version == v2 && op.options.BaseURL == "" && len(array(op.op, "schemes")) > 0 {
		own := recipe.Object{{Key: "host", Value: text(op.root, "host")}, {Key: "basePath", Value: text(op.root, "basePath")}, {Key: "schemes", Value: array(op.op, "schemes")}}
		s, why := op.choose(op.candidates(own))
		if why != "" {
			return s, refuse("SERVER", "it needs a scheme other than http and https")
		}
		return s, nil
	}
	if op.openAPI.server.address == "" {
		return server{}, refuse("SERVER", "the document does not say where the API is; --base-url does")
	}
	return op.openAPI.server, nil
}
