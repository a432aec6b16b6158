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
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// acceptEncoding is sent with every request but those for a range.
const acceptEncoding = "gzip, deflate, br, zstd"

// The values of the header; nobody changes them.
var (
	allEncodings = []string{acceptEncoding}
	noEncoding   = []string{"identity"}
)

// maxCodings is how many content encodings may be stacked. Two are seen behind
// proxies that compress again.
const maxCodings = 3

// zstdWindow is the window that RFC 9659 makes every sender of zstd keep to.
const zstdWindow = 8 << 20

// An encodingError is a body that cannot be decoded.
type encodingError struct {
	what  string // completes "the answer …"
	cause error
}

func (e *encodingError) Error() string { return "the answer " + e.what }
func (e *encodingError) Unwrap() error { return e.cause }

// contentCodings lists the encodings in the order they were applied.
func contentCodings(headers []string) ([]string, error) {
	var list []string
	for _, h := range headers {
		for coding := range strings.SplitSeq(h, ",") {
			switch coding = strings.ToLower(strings.TrimSpace(coding)); coding {
			case "", "identity":
			case "x-gzip":
				list = append(list, "gzip")
			case "gzip", "deflate", "br", "zstd":
				list = append(list, coding)
			default:
				const shown = 40
				return nil, &encodingError{what: fmt.Sprintf("is encoded as %.*q, which was not asked for", shown, coding)}
			}
		}
	}
	if len(list) > maxCodings {
		return nil, &encodingError{what: fmt.Sprintf("is compressed %d times; at most %d are undone", len(list), maxCodings)}
	}
	return list, nil
}

// decode undoes the codings, the last first and each for itself, so that only
// one decompressor is there at a time. What comes out of each is capped, and
// none is more than one buffer ahead of its cap: a bomb costs little more than
// an answer at the cap does.
func decode(data []byte, codings []string, limit int64) ([]byte, error) {
	for i, coding := range slices.Backward(codings) {
		most := limit
		if i > 0 {
			most += slack // what lies between is compressed
		}
		var err error
		if data, err = decompress(coding, data, most); err != nil {
			return nil, badData(err)
		}
	}
	return data, nil
}

// decompress undoes one coding in the caller's goroutine and starts no other.
// Beside its result it needs a window of 32 KiB, with br of up to 16 MiB.
func decompress(coding string, data []byte, limit int64) ([]byte, error) {
	from := bufio.NewReader(bytes.NewReader(data))
	var body io.Reader
	switch coding {
	case "zstd":
		return unzstd(data, limit)
	case "br":
		body = brotli.NewReader(bytes.NewReader(data))
	case "gzip":
		z, err := newGzipReader(from)
		if err != nil {
			return nil, err
		}
		body = z
	default:
		// "deflate" is the zlib format, but some servers send bare DEFLATE data.
		head, err := from.Peek(2)
		if err != nil {
			return nil, err
		}
		if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
			z, err := zlib.NewReader(from)
			if err != nil {
				return nil, err
			}
			body = &lastReader{z, from}
		} else {
			body = &lastReader{flate.NewReader(from), from}
		}
	}
	return readCapped(body, limit, -1)
}

// unzstd decodes zstd frames into one buffer, which is its own window.
func unzstd(data []byte, limit int64) ([]byte, error) {
	// What is shorter than a frame's first four bytes is taken for a cut frame.
	frame, skipped := "\x28\xb5\x2f\xfd", "\x2a\x4d\x18"
	head := string(data[:min(len(data), len(frame))])
	if head == "" {
		return nil, io.ErrUnexpectedEOF
	}
	if !strings.HasPrefix(frame, head) && (head[0]&0xf0 != 0x50 || !strings.HasPrefix(skipped, head[1:])) {
		return nil, zstd.ErrMagicMismatch
	}
	// A small answer may ask for a larger window than its cap.
	most := uint64(max(zstdWindow, limit))
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(most), zstd.WithDecoderMaxWindow(most))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	out, err := z.DecodeAll(data, nil)
	if int64(len(out)) > limit {
		return nil, errTooLarge
	}
	return out, err
}

// badData names a decompressor's error.
func badData(err error) error {
	var enc *encodingError
	switch {
	case errors.Is(err, errTooLarge) || errors.As(err, &enc):
		return err
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return errTooLarge
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return &encodingError{what: fmt.Sprintf("is zstd data with a window of more than %d MiB", zstdWindow>>20), cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF // whole on the wire, but the compressed data stops early
	}
	return &encodingError{what: "is not valid compressed data", cause: err}
}

// A lastReader wants nothing to follow its stream.
type lastReader struct {
	z    io.Reader
	from *bufio.Reader
}

func (l *lastReader) Read(p []byte) (int, error) {
	n, err := l.z.Read(p)
	if err != io.EOF {
		return n, err
	}
	if _, err = l.from.Peek(1); err == nil {
		err = &encodingError{what: "goes on behind its compressed data"}
	}
	return n, err
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
