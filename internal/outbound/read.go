package outbound

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"
)

// errTooLarge is a body over the cap, whether on the wire or decompressed.
var errTooLarge = errors.New("body over the cap")

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
			raw = &wireReader{r: body, left: limit + slack, below: raw}
			body = raw
		}
		if body, err = decoder(codings[i], body, limit); err != nil {
			return nil, raw.blame(err)
		}
	}
	data, err := readCapped(body, limit, -1)
	return data, raw.blame(err)
}

// readCapped reads all of r, or fails with errTooLarge at one byte over limit.
// It returns what was read before an error. size is a hint, -1 if unknown. The
// buffer never grows beyond the limit, as a bytes.Buffer would.
func readCapped(r io.Reader, limit, size int64) ([]byte, error) {
	if size < 0 || size > limit {
		size = bytes.MinRead
	}
	buf := make([]byte, 0, size+1) // the one byte shows the end without growing
	for {
		if len(buf) == cap(buf) {
			if int64(len(buf)) > limit {
				return buf[:limit], errTooLarge
			}
			larger := make([]byte, len(buf), min(2*int64(cap(buf)), limit+1))
			copy(larger, buf)
			buf = larger
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return buf[:limit], errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// A wireReader counts compressed bytes and remembers its own error, so that a
// connection that broke is not taken for a bad encoding, nor for the end.
type wireReader struct {
	r     io.Reader
	left  int64
	err   error
	below *wireReader // of the encoding below, nil at the connection
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

// blame turns the end of reading through w and the readers below it into what
// caused it. What went wrong furthest down did, even when a decoder above took
// it for the end, as zstd does with a connection that breaks between two frames.
func (w *wireReader) blame(err error) error {
	if errors.Is(err, errTooLarge) {
		return err
	}
	for ; w != nil; w = w.below {
		if w.err != nil {
			err = w.err
		}
		if w.err != nil && w.below == nil {
			return err // the connection's own
		}
	}
	var enc *encodingError
	switch {
	case err == nil || errors.Is(err, errTooLarge) || errors.As(err, &enc):
		return err
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return errTooLarge // the data says so of itself
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return &encodingError{what: fmt.Sprintf("is zstd data with a window of more than %d MiB", zstdWindow>>20), cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF // whole on the wire, but the compressed data stops early
	}
	return &encodingError{what: "is not valid compressed data", cause: err}
}
