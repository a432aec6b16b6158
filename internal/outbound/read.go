package outbound

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// errTooLarge is a body over the cap, whether on the wire or decompressed.
var errTooLarge = errors.New("body over the cap")

// An encodingError is a body that cannot be decoded.
type encodingError struct {
	what  string // completes "the answer …"
	cause error
}

func (e *encodingError) Error() string { return "the answer " + e.what }
func (e *encodingError) Unwrap() error { return e.cause }

// maxCodings is how many content encodings may be stacked. Two are seen behind
// proxies that compress again.
const maxCodings = 2

// slack is how much larger than the cap compressed data may be.
const slack = 64 << 10

// read returns the decoded body, at most MaxBytes of it. A decompressor is never
// more than one buffer ahead of the cap, so a bomb costs no more than a body.
func (c *Client) read(resp *http.Response, method string) ([]byte, error) {
	if method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
		return nil, nil
	}
	codings, err := contentCodings(resp.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	limit := c.policy.MaxBytes
	if len(codings) == 0 {
		if resp.ContentLength > limit {
			return nil, errTooLarge
		}
		return readCapped(resp.Body, limit, resp.ContentLength)
	}
	// The wire is counted too: empty gzip members make no output for ever.
	raw := &wireReader{r: resp.Body, left: limit + slack}
	buffered := bufio.NewReader(raw)
	if _, err := buffered.Peek(1); err == io.EOF {
		return nil, nil // nothing, whatever it was said to be
	}
	var body io.Reader = buffered
	for i := len(codings) - 1; i >= 0; i-- {
		if i < len(codings)-1 { // and so is what lies between two encodings
			body = &wireReader{r: body, left: limit + slack}
		}
		if body, err = decoder(codings[i], body); err != nil {
			return nil, raw.blame(err)
		}
	}
	data, err := readCapped(body, limit, -1)
	return data, raw.blame(err)
}

// contentCodings lists the encodings in the order they were applied.
func contentCodings(headers []string) ([]string, error) {
	var list []string
	for _, h := range headers {
		for coding := range strings.SplitSeq(h, ",") {
			switch coding = strings.ToLower(strings.TrimSpace(coding)); coding {
			case "", "identity":
			case "gzip", "x-gzip":
				list = append(list, "gzip")
			case "deflate":
				list = append(list, "deflate")
			default:
				const shown = 40
				return nil, &encodingError{what: fmt.Sprintf("is encoded as %.*q, which was not asked for", shown, coding)}
			}
		}
	}
	if len(list) > maxCodings {
		return nil, &encodingError{what: fmt.Sprintf("is compressed %d times", len(list))}
	}
	return list, nil
}

func decoder(coding string, r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if coding == "gzip" {
		return newGzipReader(b)
	}
	// "deflate" is the zlib format, but some servers send bare DEFLATE data.
	head, err := b.Peek(2)
	if len(head) < 2 {
		return nil, err
	}
	if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// A gzipReader reads one gzip member behind the other. gzip.Reader does too, but
// takes everything that is shorter than its header for a member that was cut:
// a plain {"a":1} that is said to be compressed, some bytes behind the end.
type gzipReader struct {
	from *bufio.Reader
	z    *gzip.Reader
}

func newGzipReader(from *bufio.Reader) (*gzipReader, error) {
	if err := gzipMember(from); err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gzipReader{from, z}, nil
}

func (g *gzipReader) Read(p []byte) (int, error) {
	for {
		n, err := g.z.Read(p)
		if n > 0 && err == io.EOF {
			return n, nil // the next call asks again
		}
		if err != io.EOF {
			return n, err
		}
		if err := gzipMember(g.from); err != nil {
			return 0, err
		}
		if err := g.z.Reset(g.from); err != nil {
			return 0, err
		}
		g.z.Multistream(false)
	}
}

// gzipMember is io.EOF when there is nothing more, and an encodingError when
// what there is cannot become a member.
func gzipMember(r *bufio.Reader) error {
	head, err := r.Peek(2)
	switch {
	case len(head) == 0:
		return err
	case head[0] != 0x1f || len(head) == 2 && head[1] != 0x8b:
		return &encodingError{what: "is not valid compressed data", cause: gzip.ErrHeader}
	}
	return nil
}

// readCapped reads all of r, or fails with errTooLarge at one byte over limit.
// It returns what was read before an error. size is a hint, -1 if unknown.
func readCapped(r io.Reader, limit, size int64) ([]byte, error) {
	var buf bytes.Buffer
	if size > 0 && size <= limit {
		buf.Grow(int(size) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if n > limit {
		return buf.Bytes()[:limit], errTooLarge
	}
	return buf.Bytes(), err
}

// A wireReader counts compressed bytes and remembers its own error, so that a
// connection that broke is not taken for a bad encoding.
type wireReader struct {
	r    io.Reader
	left int64
	err  error
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.left <= 0 {
		w.err = errTooLarge
		return 0, w.err
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// blame turns a decompressor's error into what caused it.
func (w *wireReader) blame(err error) error {
	var enc *encodingError
	switch {
	case err == nil || errors.Is(err, errTooLarge) || errors.As(err, &enc):
		return err
	case w.err != nil:
		return w.err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF // whole on the wire, but the compressed data stops early
	}
	return &encodingError{what: "is not valid compressed data", cause: err}
}
