package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

// read turns an endpoint's answer into a token or the reason why there is none.
func (e endpoint) read(resp *outbound.Response, now time.Time) (secrets.Token, error) {
	switch {
	case resp.Status >= 300 && resp.Status < 400:
		return secrets.Token{}, e.redirected(resp.Status)
	case resp.Status < 200 || resp.Status >= 400:
		// Whatever else is wrong with the answer, the status has said no.
		m, _ := parse(resp)
		return secrets.Token{}, e.refused(resp.Status, errorCode(m), retryAfter(resp.Header.Get("Retry-After"), now))
	}
	m, err := parse(resp)
	if err != nil {
		return secrets.Token{}, e.bad("%v", err)
	}
	access, there := m["access_token"]
	if !there || access == nil || access == "" {
		// Some endpoints say 200 and mean no.
		if _, failed := m["error"]; failed {
			return secrets.Token{}, e.refused(resp.Status, errorCode(m), 0)
		}
		return secrets.Token{}, e.bad("with no access_token")
	}
	text, ok := access.(string)
	if !ok {
		return secrets.Token{}, e.bad("with an access_token that is not text")
	}
	if err := checkToken(text); err != nil {
		return secrets.Token{}, e.bad("%v", err)
	}
	if err := checkType(m["token_type"]); err != nil {
		return secrets.Token{}, e.bad("%v", err)
	}
	return secrets.NewToken(text, lifetime(m["expires_in"])), nil
}

// members are what is read of an answer. Others, a refresh token among them, are
// not even decoded.
var members = []string{"access_token", "token_type", "expires_in", "error"}

// parse returns the members of an answer, as JSON or as the form that some
// endpoints send whatever they were asked for. Its errors complete "the token
// endpoint answered" and hold nothing of the answer.
func parse(resp *outbound.Response) (map[string]any, error) {
	if len(resp.Body) > maxAnswer {
		return nil, errors.New("with more than 64 KiB")
	}
	body, err := resp.UTF8()
	if err != nil {
		return nil, errors.New("in an encoding that cannot be read")
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil, errors.New("with nothing")
	}
	// The content decides: JSON comes as text/html or text/plain too.
	if body[0] == '{' {
		return parseJSON(body)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case body[0] == '<':
		return nil, errors.New("with a web page, not with JSON")
	case kind == "application/x-www-form-urlencoded" || (kind == "" || kind == "text/plain") && bytes.IndexByte(body, '=') > 0:
		return parseForm(string(body))
	}
	return nil, errors.New("with something other than a JSON object")
}

func parseJSON(body []byte) (map[string]any, error) {
	errJSON := errors.New("with JSON that is broken off or malformed")
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // 3600 and 1e400 stay what they are
	if _, err := d.Token(); err != nil {
		return nil, errJSON
	}
	m := map[string]any{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errJSON
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, errJSON
		}
		name, _ := key.(string)
		if !slices.Contains(members, name) {
			continue
		}
		if _, twice := m[name]; twice {
			return nil, errors.New("with " + name + " twice")
		}
		var v any
		inner := json.NewDecoder(bytes.NewReader(raw))
		inner.UseNumber()
		if err := inner.Decode(&v); err != nil {
			return nil, errJSON
		}
		m[name] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, errJSON
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("with more than one JSON value")
	}
	return m, nil
}

func parseForm(body string) (map[string]any, error) {
	form, err := url.ParseQuery(body)
	if err != nil {
		return nil, errors.New("with a malformed form")
	}
	m := map[string]any{}
	for _, name := range members {
		switch vs := form[name]; len(vs) {
		case 0:
		case 1:
			m[name] = vs[0]
		default:
			return nil, errors.New("with " + name + " twice")
		}
	}
	return m, nil
}

// checkToken refuses what cannot be sent as a header's value. Tokens with spaces
// are legal by RFC 6749's grammar but not as a bearer token (RFC 6750 section
// 2.1); servers read one as two. Those too short to be kept out of answers are
// the vault's to refuse.
func checkToken(s string) error {
	switch {
	case len(s) > secrets.MaxValue:
		return errors.New("with a token longer than 16 KiB")
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("with a token that has characters which no header may carry")
	}
	return nil
}

// otherTypes are token types that are named in messages; others are the
// endpoint's own text.
var otherTypes = []string{"mac", "DPoP", "PoP", "N_A"}

// checkType refuses a token that needs more than being shown. An absent type is
// taken for bearer, as every endpoint that leaves it out means it; BearerToken is
// what Apigee calls the same thing.
func checkType(v any) error {
	s, ok := v.(string)
	s = strings.TrimSpace(s)
	switch {
	case v == nil || ok && s == "" || strings.EqualFold(s, "Bearer") || strings.EqualFold(s, "BearerToken"):
		return nil
	case !ok:
		return errors.New("with a token_type that is not text")
	}
	for _, t := range otherTypes {
		if strings.EqualFold(s, t) {
			return errors.New("with a token of type " + t + ", where only bearer tokens can be used")
		}
	}
	return errors.New("with a token that is not a bearer token")
}

// number is JSON's grammar, and a sign that only text may have.
var number = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// lifetime reads expires_in: seconds as a number or as text, whole or not. Less
// than nothing is nothing, more than a day a day. What is no number counts as
// unknown: the token itself is good.
func lifetime(v any) time.Duration {
	var text string
	switch x := v.(type) {
	case json.Number:
		text = x.String()
	case string:
		text = strings.TrimSpace(x)
	}
	if !number.MatchString(text) {
		return UnknownLifetime
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range is ±Inf, which is clamped
		return UnknownLifetime
	}
	most := secrets.MaxLifetime.Seconds()
	return time.Duration(math.Min(math.Max(s, 0), most) * float64(time.Second))
}
