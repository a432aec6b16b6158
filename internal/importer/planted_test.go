package importer_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

// planted is a credential that no rule knows by its shape.
const planted = "q7/Zr+kW9 vTx4&mNb2"

// spellings are the forms in which a value may be written down.
func spellings(s string) []string {
	quoted, _ := json.Marshal(s)
	out := []string{
		s, url.QueryEscape(s), url.PathEscape(s), strings.Trim(string(quoted), `"`), hex.EncodeToString([]byte(s)),
	}
	for i := range 3 { // at any offset
		b := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", i) + s))
		out = append(out, b[4:len(b)-4])
	}
	return out
}

// everyWord is everything that a result or an error says.
func everyWord(r *importer.Result, err error) string {
	if err != nil {
		return err.Error()
	}
	b, _ := json.Marshal(r)
	all := string(b) + r.Title + strings.Join(r.Dropped, "\n") + strings.Join(r.Notes, "\n")
	for _, d := range r.Drafts {
		all += "\n" + d.ID + "\n" + string(d.Document) + "\n" + d.Operation + strings.Join(d.Notes, "\n") + strings.Join(d.Tags, "\n")
		if d.Secret != nil {
			all += d.Secret.Command
		}
	}
	for _, f := range r.Refused {
		all += "\n" + f.Operation + f.Reason
	}
	return all
}

func TestCanary(t *testing.T) {
	jsonText := func(s string) string { b, _ := json.Marshal(s); return strings.Trim(string(b), `"`) }
	inURL := url.QueryEscape(planted)
	inUser := url.PathEscape(planted)
	word := "'" + planted + "'"
	curl := []string{
		`curl -H 'Authorization: Bearer ` + planted + `' https://api.example.com/a`,
		`curl -H 'Authorization: Bearer ` + planted + `' 'https://api.example.com/a?again=` + inURL + `'`,
		`curl -H 'Authorization: Bearer ` + planted + `' https://api.example.com/a --json '{"note":"` + planted + `"}'`,
		`curl -H 'X-Api-Key: ` + planted + `' -H 'X-Copy: ` + planted + `' https://api.example.com/a`,
		`curl -u user:` + word + ` https://api.example.com/a`,
		`curl -u` + word + `: https://api.example.com/a`,
		`curl --user=` + word + ` https://api.example.com/a`,
		`curl 'https://user:` + inUser + `@api.example.com/a'`,
		`curl -b 'sid=` + planted + `' https://api.example.com/a`,
		`curl 'https://api.example.com/a?api_key=` + inURL + `'`,
		`curl 'https://api.example.com/a?my_secret_thing=` + inURL + `&x=1'`,
		`curl -d 'password=` + inURL + `' https://api.example.com/a`,
		`curl --json '{"deep":{"client_secret":"` + planted + `"}}' https://api.example.com/a`,
		`curl --json '[{"password":"` + planted + `"}]' https://api.example.com/a`,
		`curl --oauth2-bearer ` + word + ` https://api.example.com/a`,
		`curl -x 'http://u:` + inUser + `@proxy.example.com' -U u:` + word + ` https://api.example.com/a`,
		`curl -H 'Proxy-Authorization: ` + planted + `' https://api.example.com/a`,
		`curl --` + inUser + ` https://api.example.com/a`,
		`curl -H 'Authorization: Digest ` + planted + `' https://api.example.com/a`,
		`curl -F 'password=` + planted + `' -u a:` + word + ` https://api.example.com/a`,
		// What cannot be read.
		`curl -H 'Authorization: Bearer ` + planted,
		`curl -u a:` + word + ` https://api.example.com/$(id)`,
		`wget -H 'Authorization: ` + planted + `'`,
		`curl -u a:` + word,
	}
	for _, line := range curl {
		r, err := importer.Curl(line, importer.Options{})
		notFound(t, line, everyWord(r, err))
	}

	q := jsonText(planted)
	item := func(request string) string {
		return `{"info":{"name":"c"},"item":[{"name":"a","request":` + request + `}]}`
	}
	postman := []string{
		`{"info":{"name":"c"},"variable":[{"key":"token","value":"` + q + `"},{"key":"x","type":"secret","value":"` + q + `"}],"item":[{"name":"{{x}}","request":"https://api.example.com/{{x}}?a={{x}}"}]}`,
		item(`{"url":"https://api.example.com/a","auth":{"type":"bearer","bearer":[{"key":"token","value":"` + q + `"}]}}`),
		item(`{"url":"https://api.example.com/a?x=` + inURL + `","auth":{"type":"bearer","bearer":{"token":"` + q + `"}}}`),
		item(`{"url":"https://api.example.com/a","auth":{"type":"basic","basic":[{"key":"username","value":"u"},{"key":"password","value":"` + q + `"}]}}`),
		item(`{"url":"https://api.example.com/a","auth":{"type":"apikey","apikey":[{"key":"key","value":"X-K"},{"key":"value","value":"` + q + `"}]}}`),
		item(`{"url":"https://api.example.com/a","auth":{"type":"oauth2","oauth2":[{"key":"clientSecret","value":"` + q + `"},{"key":"accessToken","value":"` + q + `"},{"key":"grant_type","value":"client_credentials"},{"key":"accessTokenUrl","value":"https://login.example.com/t"}]}}`),
		item(`{"url":"https://api.example.com/a","auth":{"type":"awsv4","awsv4":[{"key":"secretKey","value":"` + q + `"}]}}`),
		item(`{"url":"https://api.example.com/a","header":[{"key":"Authorization","value":"` + q + `"},{"key":"Cookie","value":"a=` + q + `"}]}`),
		item(`{"url":"https://api.example.com/a","method":"POST","body":{"mode":"urlencoded","urlencoded":[{"key":"password","value":"` + q + `"}]}}`),
		item(`{"url":{"raw":"https://api.example.com/a","query":[{"key":"api_key","value":"` + q + `"}]}}`),
		`{"info":{"name":"c"},"auth":{"type":"bearer","bearer":[{"key":"token","value":"` + q + `"}]},"item":[{"name":"` + q + `","item":[{"name":"` + q + `","request":{"url":"https://api.example.com/a","description":"use ` + q + `"}}]}]}`,
		`{"info":{"name":"` + q + `"},"item":[{"request":{"auth":{"type":"bearer","bearer":{"token":"` + q + `"}},"url":"https://api.example.com/a"},"response":[{"code":200,"body":"{\"a\":\"` + strings.ReplaceAll(q, `\`, `\\`) + `\"}"}]}]}`,
		`{"info":"` + q + `","item":[` + q + `]}`,
	}
	for _, text := range postman {
		r, err := importer.Postman([]byte(text), importer.Options{})
		notFound(t, text, everyWord(r, err))
	}

	entry := func(request string) string {
		return string(harFile(`{"request":` + request + `,"response":{"status":200,"content":{"mimeType":"application/json","text":"{\"id\":1}"}}}`))
	}
	har := []string{
		entry(`{"method":"GET","url":"https://api.example.com/a","headers":[{"name":"Authorization","value":"Bearer ` + q + `"}]}`),
		entry(`{"method":"GET","url":"https://api.example.com/a","headers":[{"name":"Cookie","value":"sid=` + q + `"}],"cookies":[{"name":"sid","value":"` + q + `"}]}`),
		entry(`{"method":"GET","url":"https://api.example.com/a","cookies":[{"name":"sid","value":"` + q + `"}]}`),
		entry(`{"method":"GET","url":"https://api.example.com/a?token=` + inURL + `"}`),
		entry(`{"method":"GET","url":"https://u:` + inUser + `@api.example.com/a"}`),
		entry(`{"method":"POST","url":"https://api.example.com/a","headers":[{"name":"X-CSRF-Token","value":"` + q + `"}],"postData":{"mimeType":"application/json","text":"{\"csrf\":\"` + strings.ReplaceAll(q, `\`, `\\`) + `\"}"}}`),
		entry(`{"method":"POST","url":"https://api.example.com/a","postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"password","value":"` + q + `"}]}}`),
		string(harFile(
			`{"request":{"method":"GET","url":"https://api.example.com/a?x=1"},"response":{"status":200,"content":{"mimeType":"application/json","text":"{}"}}}`,
			`{"request":{"method":"GET","url":"https://api.example.com/a?x=`+inURL+`","headers":[{"name":"X-Api-Key","value":"`+q+`"}]},"response":{"status":200,"content":{"mimeType":"application/json","text":"{\"`+q+`\":1}"}}}`,
		)),
		`{"log":{"entries":[{"request":"` + q + `"`,
	}
	for _, text := range har {
		r, err := importer.HAR([]byte(text), importer.Options{})
		notFound(t, text, everyWord(r, err))
	}
}

func notFound(t *testing.T, input, output string) {
	t.Helper()
	for _, s := range spellings(planted) {
		if strings.Contains(output, s) {
			t.Errorf("%s\nsays the credential as %q:\n%s", input, s, output)
			return
		}
	}
}
