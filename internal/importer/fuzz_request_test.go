package importer_test

import (
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// judgeRecording checks what holds for every import: drafts are wrappers in their
// normal form, ids are unique, and no mistake of the package shows.
func judgeRecording(t *testing.T, r *importer.Result, err error) {
	t.Helper()
	if err != nil {
		return
	}
	ids := map[string]bool{}
	for _, d := range r.Drafts {
		w, _ := wrapper.Parse(d.Document)
		if w == nil || string(w.Document()) != string(d.Document) || w.ID != d.ID || ids[d.ID] {
			t.Fatalf("draft %s: %s", d.ID, d.Document)
		}
		ids[d.ID] = true
		if w.Request.Auth != "" && (d.Secret == nil || d.Secret.Name != w.Request.Auth) {
			t.Fatalf("draft %s names %q, suggested is %+v", d.ID, w.Request.Auth, d.Secret)
		}
	}
	for _, f := range r.Refused {
		if f.Code == "" || f.Reason == "" || f.Code == "MISMATCH" {
			t.Fatalf("refusal %+v", f)
		}
	}
}

func FuzzCurl(f *testing.F) {
	for _, c := range curlCases {
		f.Add(c.line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, err := importer.Curl(line, importer.Options{})
		judgeRecording(t, r, err)
		r, err = importer.Curl("curl https://api.example.com/"+line, importer.Options{})
		judgeRecording(t, r, err)
	})
}

func FuzzPostman(f *testing.F) {
	f.Add([]byte(collection))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := importer.Postman(data, importer.Options{})
		judgeRecording(t, r, err)
	})
}

func FuzzHAR(f *testing.F) {
	f.Add(harFile(harEntry("xhr", "GET", "https://a.example.com/x?a=1&b=2", `,"headers":[{"name":"X","value":"y"}]`, 200, "application/json", `[{"a":1}]`),
		harEntry("xhr", "GET", "https://a.example.com/x?a=2", ``, 200, "application/json", `[{"a":1}]`),
		harEntry("xhr", "POST", "https://a.example.com/x?a=2", `,"postData":{"mimeType":"application/x-www-form-urlencoded","text":"a=b&c"}`, 200, "application/json", `[{"a":1}]`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := importer.HAR(data, importer.Options{})
		judgeRecording(t, r, err)
	})
}
