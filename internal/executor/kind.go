package executor

import (
	"bytes"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

const (
	noType      = "no content type"
	eventStream = "text/event-stream"
)

// contentType is the media type of an answer, lower case, without parameters.
func contentType(resp *outbound.Response) string {
	ct, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if ct = strings.ToLower(strings.TrimSpace(ct)); ct == "" {
		return noType
	}
	return fault.Shorten(ct, 60)
}

// kindOf names what is no JSON, with an article, and says what to do about it;
// "" for a body that may be meant as JSON. The body decides before its type:
// pages are sent with every type there is. No text of the body is shown.
func kindOf(resp *outbound.Response) (kind, hint string) {
	const (
		askJSON  = "Ask the API for JSON: Accept: application/json, or its parameter for the format."
		jsonOnly = "Only JSON is read: use an endpoint of the API that describes this in JSON."
	)
	head := bytes.TrimSpace(bytes.TrimPrefix(resp.Body[:min(len(resp.Body), 1024)], []byte("\ufeff")))
	ct := contentType(resp)
	major, _, _ := strings.Cut(ct, "/")
	switch {
	case looksLikeHTML(head):
		return "an HTML page", "This is an HTML page, probably a login or error page. Check the URL and set Accept: application/json."
	case looksLikeXML(head):
		if bytes.Contains(head, []byte("Envelope")) && bytes.Contains(head, []byte("soap")) {
			return "a SOAP message", "SOAP is not read: use the API's JSON endpoint, if it has one."
		}
		return "an XML document", askJSON
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return "gzip data", "The API compresses its answer without saying so in Content-Encoding, or this is a file. " + jsonOnly
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return "a PDF file", jsonOnly
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return "a ZIP archive", jsonOnly
	case bytes.HasPrefix(head, []byte("{")), bytes.HasPrefix(head, []byte("[")), bytes.HasPrefix(head, []byte(`"`)):
		return "", "" // meant as JSON, whatever its type says
	case major == "image":
		return "an image", jsonOnly
	case major == "audio", major == "video", major == "font":
		return "a file", jsonOnly
	case ct == "application/octet-stream", ct == "application/pdf", ct == "application/zip", ct == "application/gzip":
		return "binary data", jsonOnly
	}
	return "", ""
}

func looksLikeHTML(b []byte) bool {
	head := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(b[:min(len(b), 512)], []byte("\ufeff"))))
	for _, start := range []string{"<!doctype html", "<html", "<head", "<body", "<!--", "<title", "<script", "<meta"} {
		if bytes.HasPrefix(head, []byte(start)) {
			return true
		}
	}
	return bytes.HasPrefix(head, []byte("<?xml")) && bytes.Contains(head, []byte("<html")) // XHTML
}

// looksLikeXML reports whether what is no HTML begins with a tag.
func looksLikeXML(head []byte) bool {
	if len(head) < 2 || head[0] != '<' {
		return false
	}
	c := head[1] | 0x20
	return head[1] == '?' || head[1] == '!' || c >= 'a' && c <= 'z'
}
