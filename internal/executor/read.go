package executor

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// ReadPage reads an answer's body with a recipe; scrub (nil: none) goes over
// every text and key that is kept. Its fault is one of
// RESPONSE_EMPTY, RESPONSE_ENCODING, RESPONSE_TOO_DEEP and RESPONSE_NOT_JSON.
func ReadPage(rec *recipe.Recipe, resp *outbound.Response, scrub func(string) string) (*recipe.Page, *fault.Error) {
	text, f := Text(resp)
	if f != nil {
		return nil, f
	}
	page, err := rec.Read(text, rec.Limits.MaxItems, scrub)
	if err != nil {
		return nil, bodyFault(resp, text, err)
	}
	return page, nil
}

// Text is an answer's body as UTF-8, refused when it is empty.
func Text(resp *outbound.Response) ([]byte, *fault.Error) {
	if len(bytes.TrimSpace(resp.Body)) == 0 {
		return nil, fault.New("RESPONSE_EMPTY", "the API answered %d without a body", resp.Status).With(fault.Status(resp.Status))
	}
	text, err := resp.UTF8()
	if err != nil {
		return nil, fault.From(err).With(fault.Status(resp.Status))
	}
	return text, nil
}

// Decode reads an answer's body as one JSON value, with the same faults.
func Decode(resp *outbound.Response) (recipe.Value, *fault.Error) {
	text, f := Text(resp)
	if f != nil {
		return nil, f
	}
	v, err := recipe.Decode(text, recipe.DecodeLimits{})
	if err != nil {
		return nil, bodyFault(resp, text, err)
	}
	return v, nil
}

func bodyFault(resp *outbound.Response, text []byte, err error) *fault.Error {
	var d *recipe.DecodeError
	if !errors.As(err, &d) {
		return fault.From(err)
	}
	with := func(f *fault.Error) *fault.Error { return f.With(fault.Status(resp.Status), fault.Cause(err)) }
	switch d.Kind {
	case "empty":
		return with(fault.New("RESPONSE_EMPTY", "the API answered %d without a body", resp.Status))
	case "depth":
		return with(fault.New("RESPONSE_TOO_DEEP", "the answer is nested too deep at byte %d", d.Offset))
	case "utf8":
		if isBinary(resp) {
			break // an image or an archive has no encoding to mend
		}
		return with(fault.New("RESPONSE_ENCODING", "the answer has bytes that are not UTF-8 at byte %d", d.Offset))
	}
	what := contentType(resp)
	f := fault.New("RESPONSE_NOT_JSON", "the answer (%s, %d bytes) is not JSON: %s", what, len(resp.Body), stoppedAt(d))
	if hint := notJSONHint(text, d); hint != "" {
		f.With(fault.Hint("%s", hint))
	}
	return with(f)
}

// isBinary reports whether the answer declares itself as something else than text.
func isBinary(resp *outbound.Response) bool {
	ct := contentType(resp)
	switch kind, _, _ := strings.Cut(ct, "/"); kind {
	case "image", "audio", "video", "font":
		return true
	}
	return ct == "application/octet-stream" || ct == "application/pdf" || ct == "application/zip" || ct == "application/gzip"
}

func stoppedAt(d *recipe.DecodeError) string {
	return fmt.Sprintf("%s at byte %d", d.Message, d.Offset)
}

// notJSONHint recognises what is commonly sent instead of JSON.
func notJSONHint(text []byte, d *recipe.DecodeError) string {
	head := bytes.TrimSpace(text[:min(len(text), 4096)])
	switch {
	case looksLikeHTML(head):
		return "This is an HTML page, probably a login or error page. Check the URL and set Accept: application/json."
	case bytes.HasPrefix(head, []byte(")]}'")), bytes.HasPrefix(head, []byte("while(1);")), bytes.HasPrefix(head, []byte("for(;;);")):
		return "The API puts an anti-hijacking prefix before its JSON; ask it for plain JSON."
	case d.Kind == "trailing" && bytes.Contains(head, []byte("}\n")):
		return "This looks like one JSON document a line (NDJSON). Ask the API for a JSON array."
	case d.Kind == "syntax" && int(d.Offset) <= len(text) && nonFinite(text[max(int(d.Offset)-9, 0):min(int(d.Offset)+9, len(text))]):
		return "The API writes NaN or Infinity, which is not JSON; it must send null or a string there."
	case bytes.ContainsAny(firstLine(head), ",;\t") && !bytes.ContainsAny(head[:min(len(head), 1)], "{[\""):
		return "This looks like CSV. Ask the API for JSON, for example with Accept: application/json."
	}
	return ""
}

func nonFinite(near []byte) bool {
	return bytes.Contains(near, []byte("NaN")) || bytes.Contains(near, []byte("Infinity"))
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return line
}

func looksLikeHTML(b []byte) bool {
	head := bytes.ToLower(bytes.TrimSpace(b[:min(len(b), 512)]))
	return bytes.HasPrefix(head, []byte("<!doctype")) || bytes.HasPrefix(head, []byte("<html")) ||
		bytes.HasPrefix(head, []byte("<head")) || bytes.HasPrefix(head, []byte("<body")) || bytes.HasPrefix(head, []byte("<!--"))
}
