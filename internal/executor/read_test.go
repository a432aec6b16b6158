package executor_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const listDoc = `{"schemaVersion":1,"id":"t.list","name":"Things","request":{"method":"GET","url":"https://api.example.com/x"},
 "response":{"schemaVersion":1,"select":"SELECT","mode":"table","fields":{"ID":"id","Type":"type"},"limits":{"maxItems":3}}}`

func runList(t *testing.T, sel, contentType, body string) (*executor.Outcome, *fault.Error) {
	t.Helper()
	header := map[string]string{}
	if contentType != "" {
		header["Content-Type"] = contentType
	}
	e, _ := answering(200, header, body)
	out, err := e.Run(context.Background(), parse(t, strings.Replace(listDoc, "SELECT", sel, 1)), executor.Options{})
	if err == nil {
		return out, nil
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("not a fault: %v", err)
	}
	return nil, f
}

// A body of JSON lines is a list, under each of its names, and counted as one.
func TestLines(t *testing.T) {
	corpus, err := os.ReadFile("testdata/watch.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	const table = "## Things\n\n| ID | Type |\n| --- | --- |\n| 1 | ADDED |\n| 2 | MODIFIED |\n| 3 | DELETED |"
	for _, ct := range []string{
		"application/x-ndjson", "application/ndjson; charset=utf-8", "Application/JSONL", "application/x-jsonl", "application/jsonlines",
		"application/x-jsonlines", "application/json-lines", "application/stream+json", "application/x-json-stream",
	} {
		out, f := runList(t, "$", ct, string(corpus))
		if f != nil {
			t.Errorf("%s: %v", ct, f)
			continue
		}
		if got := strings.TrimSpace(out.Result.Markdown); got != table || out.Result.Meta.Warnings != nil {
			t.Errorf("%s: %s %v", ct, got, out.Result.Meta.Warnings)
		}
	}
	seq := ""
	for line := range strings.Lines(string(corpus)) {
		if strings.TrimSpace(line) != "" {
			seq += "\x1e" + line
		}
	}
	for _, ct := range []string{"application/json-seq", "application/geo+json-seq"} {
		if out, f := runList(t, "$", ct, seq); f != nil || strings.TrimSpace(out.Result.Markdown) != table {
			t.Errorf("%s: %v", ct, f)
		}
	}
	for _, body := range []string{"", "\n\n"} { // no line is no item, not a missing answer
		out, f := runList(t, "$", "application/x-ndjson", body)
		if f != nil || out.Result.Meta.Selected != 0 {
			t.Errorf("%q: %v", body, f)
		}
	}
	for n, want := range map[int]bool{3: false, 4: true} { // at the cap on items and one over
		out, f := runList(t, "$", "application/x-ndjson", strings.Repeat("{\"id\":9007199254740993}\n", n))
		if f != nil {
			t.Fatal(f)
		}
		if m := out.Result.Meta; m.Selected != n || m.Rendered != 3 || m.Truncated != want || !strings.Contains(out.Result.Markdown, "| 9007199254740993 |") {
			t.Errorf("%d lines: %+v", n, m)
		}
	}
}

// A line that is no JSON, or that is cut, is named, and nothing is shown.
func TestBadLines(t *testing.T) {
	for _, c := range []struct{ ct, body, message string }{
		{"application/x-ndjson", "{\"id\":1}\nsorry\n", "the answer (application/x-ndjson, 15 bytes) is not one JSON value after the other: line 2: invalid character 's' at start of value at byte 9"},
		{"application/x-ndjson", "{\"id\":1}\n{\"id\":2", "the answer (application/x-ndjson, 16 bytes) is not one JSON value after the other: line 2: the text ends too early at byte 16"},
		{"application/json-seq", "\x1e{\"id\":1}\n\x1e{\"id\":", "the answer (application/json-seq, 17 bytes) is not one JSON value after the other: record 2: the text ends too early at byte 17"},
	} {
		_, f := runList(t, "$", c.ct, c.body)
		if f == nil || f.Code != "RESPONSE_NOT_JSON" || f.Status != 200 || f.Retryable {
			t.Errorf("%q: %+v", c.body, f)
			continue
		}
		if d := cmp.Diff(c.message, f.Message); d != "" {
			t.Error(d)
		}
	}
}

// Lines under the name of a JSON type are a list where that is what the recipe
// looks for, with a word about it; else they stay a fault that says so.
func TestLinesUnderAnotherName(t *testing.T) {
	const lines = "{\"id\":1}\n{\"id\":2}\n"
	for _, c := range []struct {
		sel, ct, body string
		items         int // 0: RESPONSE_NOT_JSON
	}{
		{"$", "application/json", lines, 2},
		{"$", "application/vnd.docker.raw-stream+json", lines, 2},
		{"$", "text/plain", lines, 2},
		{"$", "", lines, 2},
		{"$[*]", "application/json", lines, 2},
		{"$", "application/json", "[1]\n[2]", 2},
		{"$.items", "application/json", lines, 0},
		{"$", "application/json", "{\"id\":1}\n{\"id\":", 0},
		{"$", "application/json", "{\"id\":1} {\"id\":2}", 0},
		{"$", "application/json", "{\"id\":1}\ntrailing", 0},
		{"$", "application/json", "1\n2\n", 0},
		{"$", "text/csv", lines, 0},
	} {
		out, f := runList(t, c.sel, c.ct, c.body)
		if c.items == 0 {
			if f == nil || f.Code != "RESPONSE_NOT_JSON" {
				t.Errorf("%s, %s, %q: %v", c.sel, c.ct, c.body, f)
			}
			continue
		}
		if f != nil {
			t.Errorf("%s, %s, %q: %v", c.sel, c.ct, c.body, f)
			continue
		}
		ct := c.ct
		if ct == "" {
			ct = "no content type"
		}
		want := []string{"the answer has one JSON document a line, although its type is " + ct + ": read as a list"}
		if m := out.Result.Meta; m.Selected != c.items || cmp.Diff(want, m.Warnings) != "" {
			t.Errorf("%s, %s, %q: %+v", c.sel, c.ct, c.body, m)
		}
	}
	if _, f := runList(t, "$.items", "application/json", lines); !strings.Contains(f.Hint, "NDJSON") {
		t.Errorf("hint: %s", f.Hint)
	}
}

// what is JSON by suffix, by its old name or without any name is read.
func TestJSONTypes(t *testing.T) {
	for _, ct := range []string{
		"application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json", "application/hal+json;profile=x",
		"application/problem+json", "text/json", "text/javascript", "text/plain", "text/html", "application/octet-stream", "image/png", "", "nonsense",
	} {
		if out, f := runList(t, "$", ct, `[{"id":1}]`); f != nil || out.Result.Meta.Selected != 1 {
			t.Errorf("%q: %v", ct, f)
		}
	}
}

// What is no JSON is said in a sentence: kind, type and size, never its text.
func TestOtherKinds(t *testing.T) {
	const secret = "Stack trace of db-7"
	pad := strings.Repeat(" ", 40_000)
	for _, c := range []struct{ name, ct, body, success, failure string }{
		{"HTML", "text/html; charset=utf-8", "<!DOCTYPE html>\n<title>" + secret + "</title>" + pad, "the answer is an HTML page (text/html, 40050 bytes), not JSON", "the API answered 502: HTML page (40050 bytes)"},
		{"HTML as JSON", "application/json", "\ufeff \n<HTML><title>" + secret, "the answer is an HTML page (application/json, 37 bytes), not JSON", "the API answered 502: HTML page (37 bytes)"},
		{"XHTML", "application/xml", `<?xml version="1.0"?><html><title>` + secret, "the answer is an HTML page (application/xml, 53 bytes), not JSON", "the API answered 502: HTML page (53 bytes)"},
		{"XML", "application/xml", `<?xml version="1.0"?><error>` + secret + "</error>", "the answer is an XML document (application/xml, 55 bytes), not JSON", "the API answered 502: XML document (55 bytes)"},
		{"XML bare", "", "<Error><Code>" + secret, "the answer is an XML document (no content type, 32 bytes), not JSON", "the API answered 502: XML document (32 bytes)"},
		{
			"SOAP fault", "text/xml", `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><soap:Fault><faultstring>` + secret + "</faultstring>",
			"the answer is a SOAP message (text/xml, 139 bytes), not JSON", "the API answered 502: SOAP message (139 bytes)",
		},
		{"events", "text/event-stream", "data: " + secret, "the answer is a stream of server-sent events (text/event-stream), which is not read", "the API answered 502: text/event-stream (25 bytes)"},
		{"image", "image/png", "\x89PNG\r\n\x1a\n" + secret, "the answer is an image (image/png, 27 bytes), not JSON", "the API answered 502: image (27 bytes)"},
		{"PDF", "application/octet-stream", "%PDF-1.7\n" + secret, "the answer is a PDF file (application/octet-stream, 28 bytes), not JSON", "the API answered 502: PDF file (28 bytes)"},
		{"archive", "application/x-zip", "PK\x03\x04" + secret, "the answer is a ZIP archive (application/x-zip, 23 bytes), not JSON", "the API answered 502: ZIP archive (23 bytes)"},
		{"gzip", "application/json", "\x1f\x8b\x08" + secret, "the answer is gzip data (application/json, 22 bytes), not JSON", "the API answered 502: gzip data (22 bytes)"},
		{"audio", "audio/mpeg", "ID3" + secret, "the answer is a file (audio/mpeg, 22 bytes), not JSON", "the API answered 502: file (22 bytes)"},
		{"a page in JSON", "application/json", `{"message":"<!DOCTYPE html><title>` + secret + `"}`, "", "the API answered 502: application/json (55 bytes)"},
	} {
		header := map[string]string{"Content-Type": c.ct}
		if _, f := run(t, "GET", 200, header, c.body); c.success != "" {
			if f == nil || f.Code != "RESPONSE_NOT_JSON" || f.Message != c.success || f.Hint == "" || f.Status != 200 {
				t.Errorf("%s: %+v", c.name, f)
			} else if strings.Contains(f.Hint+f.Message, "Stack") {
				t.Errorf("%s shows its text: %+v", c.name, f)
			}
		}
		if _, f := run(t, "GET", 502, header, c.body); f == nil || f.Message != c.failure || strings.Contains(f.Hint, "Stack") {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
