package outbound

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// errTooLarge is a body over the cap, whether on the wire or decompressed.
var errTooLarge = errors.New("body over the cap")

// slack is how much larger than the cap compressed data may be.
const slack = 64 << 10

// read returns the decoded body, at most MaxBytes of it. What is compressed is
// first taken off the wire, where it is counted too (empty gzip members make no
// output for ever), and then decoded by as many at once as there are processors:
// a slow connection so holds no window, and many bombs cost what a few do.
func (c *Client) read(resp *http.Response, method string) ([]byte, error) {
	if !hasBody(resp, method) {
		return nil, nil
	}
	if isEventStream(resp.Header.Get("Content-Type")) {
		return firstBytes(resp.Body)
	}
	codings, err := contentCodings(resp.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	limit := c.policy.MaxBytes
	if len(codings) > 0 {
		limit += slack
	}
	if resp.ContentLength > limit {
		return nil, errTooLarge
	}
	data, err := readCapped(resp.Body, limit, resp.ContentLength)
	if err != nil {
		return data, err
	}
	return c.decode(resp.Request.Context(), data, codings, c.policy.MaxBytes)
}

// message returns what can be had of a body that only explains the status, and
// an error if that is not all. What is compressed is whole or nothing.
func (c *Client) message(resp *http.Response, method string) ([]byte, error) {
	if !hasBody(resp, method) {
		return nil, nil
	}
	if isEventStream(resp.Header.Get("Content-Type")) {
		return firstBytes(resp.Body)
	}
	codings, err := contentCodings(resp.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	limit := min(maxMessage, c.policy.MaxBytes)
	data, err := readCapped(resp.Body, limit, resp.ContentLength)
	if err != nil && len(codings) > 0 {
		return nil, err
	}
	if err != nil {
		return data, err
	}
	return c.decode(resp.Request.Context(), data, codings, limit)
}

func hasBody(resp *http.Response, method string) bool {
	return method != http.MethodHead && resp.StatusCode != http.StatusNoContent && resp.StatusCode != http.StatusNotModified
}

// decode undoes the codings when it is its turn.
func (c *Client) decode(ctx context.Context, data []byte, codings []string, limit int64) ([]byte, error) {
	if len(codings) == 0 || len(data) == 0 { // nothing is nothing, whatever it was said to be
		return data, nil
	}
	select {
	case c.decoding <- struct{}{}:
		defer func() { <-c.decoding }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return decode(data, codings, limit)
}

// isEventStream tells an answer that goes on until somebody hangs up. Waiting
// for its end would only spend the caller's time.
func isEventStream(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// firstBytes returns what comes first, enough to tell something from nothing.
func firstBytes(r io.Reader) ([]byte, error) {
	buf := make([]byte, 512)
	n, err := io.ReadAtLeast(r, buf, 1)
	if err == io.EOF {
		err = nil
	}
	return buf[:n], err
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
