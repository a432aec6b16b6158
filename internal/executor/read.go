package executor

import (
	"bytes"
	"errors"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// ReadPage reads an answer's body with a recipe; scrub (nil: none) goes over
// every text and key that is kept. A body of JSON lines is read as a list. Its
// fault is one of RESPONSE_EMPTY, RESPONSE_ENCODING, RESPONSE_TOO_DEEP and
// RESPONSE_NOT_JSON.
func ReadPage(rec *recipe.Recipe, resp *outbound.Response, scrub func(string) string) (*recipe.Page, *fault.Error) {
	sep, lines := separator(resp)
	text, f := bodyText(resp, lines)
	if f != nil {
		return nil, f
	}
	read := func(sep byte) (*recipe.Page, error) { return rec.ReadLines(text, sep, rec.Limits.MaxItems, scrub) }
	if lines {
		page, err := read(sep)
		if err != nil {
			return nil, bodyFault(resp, text, err)
		}
		return page, nil
	}
	page, err := rec.Read(text, rec.Limits.MaxItems, scrub)
	if err == nil {
		return page, nil
	}
	// Servers that send a document a line often call the whole JSON. It is read
	// as what it is where the recipe finds items in a list; else it stays a fault.
	if mayBeLines(resp, text, err) {
		if page, err := read('\n'); err == nil && page.Items() > 0 {
			page.Warn("the answer has one JSON document a line, although its type is " + contentType(resp) + ": read as a list")
			return page, nil
		}
	}
	return nil, bodyFault(resp, text, err)
}

// separator tells the types of bodies that hold many JSON documents, and what
// stands between those.
func separator(resp *outbound.Response) (sep byte, lines bool) {
	ct := contentType(resp)
	switch ct {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl", "application/jsonlines",
		"application/x-jsonlines", "application/json-lines", "application/stream+json", "application/x-json-stream":
		return '\n', true
	}
	return recipe.RecordSeparator, ct == "application/json-seq" || strings.HasSuffix(ct, "+json-seq")
}

// mayBeLines reports whether a body that is no JSON document, and has no better
// type, may be one for each line: something follows its first object or array.
func mayBeLines(resp *outbound.Response, text []byte, err error) bool {
	var d *recipe.DecodeError
	if !errors.As(err, &d) || d.Kind != "trailing" {
		return false
	}
	head := bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\ufeff")), " \t\r\n")
	if !bytes.HasPrefix(head, []byte("{")) && !bytes.HasPrefix(head, []byte("[")) {
		return false
	}
	ct := contentType(resp)
	return ct == noType || ct == "text/plain" || ct == "application/octet-stream" || strings.HasSuffix(ct, "/json") || strings.HasSuffix(ct, "+json")
}

// bodyText is an answer's body as UTF-8. It is refused when it is empty, unless
// that is allowed, and when it has no end.
func bodyText(resp *outbound.Response, emptyToo bool) ([]byte, *fault.Error) {
	if contentType(resp) == eventStream {
		return nil, fault.New("RESPONSE_NOT_JSON", "the answer is a stream of server-sent events (%s), which is not read", eventStream).
			With(fault.Status(resp.Status), fault.Hint("Ask the API for one JSON answer: a parameter that turns streaming off (often stream=false), or Accept: application/json."))
	}
	if !emptyToo && len(bytes.TrimSpace(resp.Body)) == 0 {
		return nil, fault.New("RESPONSE_EMPTY", "the API answered %d without a body", resp.Status).With(fault.Status(resp.Status))
	}
	text, err := resp.UTF8()
	if err != nil {
		return nil, fault.From(err).With(fault.Status(resp.Status))
	}
	return text, nil
}

// Decode reads an answer's body as one JSON value, lines as an array, with the
// same faults.
func Decode(resp *outbound.Response) (recipe.Value, *fault.Error) {
	text, f := bodyText(resp, false)
	if f != nil {
		return nil, f
	}
	if sep, lines := separator(resp); lines {
		list, err := recipe.DecodeLines(text, sep)
		if err != nil {
			return nil, bodyFault(resp, text, err)
		}
		return list, nil
	}
	v, err := recipe.Decode(text, recipe.DecodeLimits{})
	if err == nil {
		return v, nil
	}
	if mayBeLines(resp, text, err) {
		if list, err := recipe.DecodeLines(text, '\n'); err == nil {
			return list, nil
		}
	}
	return nil, bodyFault(resp, text, err)
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
		if kind, _ := kindOf(resp); kind != "" {
			break // an image or an archive has no encoding to mend
		}
		return with(fault.New("RESPONSE_ENCODING", "the answer has bytes that are not UTF-8 at byte %d", d.Offset))
	}
	size := len(resp.Body)
	if kind, hint := kindOf(resp); kind != "" {
		return with(fault.New("RESPONSE_NOT_JSON", "the answer is %s (%s, %d bytes), not JSON", kind, contentType(resp), size).With(fault.Hint("%s", hint)))
	}
	what := "JSON"
	if _, lines := separator(resp); lines {
		what = "one JSON value after the other"
	}
	f := fault.New("RESPONSE_NOT_JSON", "the answer (%s, %d bytes) is not %s: %s at byte %d", contentType(resp), size, what, d.Message, d.Offset)
	if hint := notJSONHint(text, d); hint != "" {
		f.With(fault.Hint("%s", hint))
	}
	return with(f)
}

// notJSONHint recognises what is commonly sent instead of JSON.
func notJSONHint(text []byte, d *recipe.DecodeError) string {
	head := bytes.TrimSpace(text[:min(len(text), 4096)])
	switch {
	case bytes.HasPrefix(head, []byte(")]}'")), bytes.HasPrefix(head, []byte("while(1);")), bytes.HasPrefix(head, []byte("for(;;);")):
		return "The API puts an anti-hijacking prefix before its JSON; ask it for plain JSON."
	case d.Kind == "trailing" && bytes.Contains(head, []byte("}\n")):
		return "This looks like one JSON document a line (NDJSON). It is read as a list when every line is whole and select finds items in a list, as $ does."
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
