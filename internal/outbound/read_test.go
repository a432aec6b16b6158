package outbound_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

func pack(t testing.TB, coding string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser
	switch coding {
	case "gzip":
		z = gzip.NewWriter(&b)
	case "zlib":
		z = zlib.NewWriter(&b)
	case "flate":
		z, _ = flate.NewWriter(&b, 6)
	case "br":
		z = brotli.NewWriter(&b)
	case "zstd":
		z, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// answer serves one fixed answer and sends a request for it.
func answer(t *testing.T, p outbound.Policy, method string, h http.Header, status int, body []byte) (*outbound.Response, error) {
	t.Helper()
	w := newWorld(t)
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		for k, v := range h {
			rw.Header()[k] = v
		}
		rw.WriteHeader(status)
		_, _ = rw.Write(body)
	}))
	return w.client(p).Send(context.Background(), outbound.NewRequest(method, mustURL(t, origin0+"/"), nil))
}

func TestContentEncoding(t *testing.T) {
	const plain = `{"a":"é"}`
	gz := pack(t, "gzip", []byte(plain))
	br, zs := pack(t, "br", []byte(plain)), pack(t, "zstd", []byte(plain))
	join := func(a, b []byte) []byte { return append(append([]byte(nil), a...), b...) }
	flip := func(b []byte, i int) []byte {
		b = append([]byte(nil), b...)
		b[i] ^= 0xff
		return b
	}
	broken := flip(gz, len(gz)-6) // checksum
	two := join(gz, gz)
	for name, c := range map[string]struct {
		encoding []string
		body     []byte
		want     string
		code     string
	}{
		"none":                 {nil, []byte(plain), plain, ""},
		"identity":             {[]string{"identity"}, []byte(plain), plain, ""},
		"empty name":           {[]string{""}, []byte(plain), plain, ""},
		"gzip":                 {[]string{"gzip"}, gz, plain, ""},
		"x-gzip, upper":        {[]string{"X-GZIP"}, gz, plain, ""},
		"two members":          {[]string{"gzip"}, two, plain + plain, ""},
		"deflate, zlib":        {[]string{"deflate"}, pack(t, "zlib", []byte(plain)), plain, ""},
		"deflate, bare":        {[]string{"deflate"}, pack(t, "flate", []byte(plain)), plain, ""},
		"gzip twice":           {[]string{"gzip, gzip"}, pack(t, "gzip", gz), plain, ""},
		"deflate then gzip":    {[]string{"deflate", "gzip"}, pack(t, "gzip", pack(t, "zlib", []byte(plain))), plain, ""},
		"three times":          {[]string{"gzip,gzip,gzip"}, pack(t, "gzip", pack(t, "gzip", gz)), plain, ""},
		"four times":           {[]string{"gzip,gzip", "gzip,gzip"}, pack(t, "gzip", pack(t, "gzip", pack(t, "gzip", gz))), "", "RESPONSE_ENCODING"},
		"identity between":     {[]string{"gzip, identity, gzip,", "identity"}, pack(t, "gzip", gz), plain, ""},
		"gzip, nothing":        {[]string{"gzip"}, nil, "", ""},
		"gzip of nothing":      {[]string{"gzip"}, pack(t, "gzip", nil), "", ""},
		"said gzip, is not":    {[]string{"gzip"}, []byte(plain), "", "RESPONSE_ENCODING"},
		"bad checksum":         {[]string{"gzip"}, broken, "", "RESPONSE_ENCODING"},
		"rubbish after":        {[]string{"gzip"}, append(append([]byte(nil), gz...), "rubbish here"...), "", "RESPONSE_ENCODING"},
		"said gzip, short":     {[]string{"gzip"}, []byte(`{"a":1}`), "", "RESPONSE_ENCODING"},
		"said gzip, one byte":  {[]string{"gzip"}, []byte(`1`), "", "RESPONSE_ENCODING"},
		"short rubbish after":  {[]string{"gzip"}, append(append([]byte(nil), gz...), "rub"...), "", "RESPONSE_ENCODING"},
		"one byte after":       {[]string{"gzip"}, append(append([]byte(nil), gz...), 0), "", "RESPONSE_ENCODING"},
		"rubbish inside":       {[]string{"gzip, gzip"}, pack(t, "gzip", append(append([]byte(nil), gz...), "rub"...)), "", "RESPONSE_ENCODING"},
		"second member cut":    {[]string{"gzip"}, two[:len(gz)+4], "", "RESPONSE_INCOMPLETE"},
		"one byte of a second": {[]string{"gzip"}, two[:len(gz)+1], "", "RESPONSE_INCOMPLETE"},
		"cut":                  {[]string{"gzip"}, gz[:len(gz)-9], "", "RESPONSE_INCOMPLETE"},
		"cut in its header":    {[]string{"gzip"}, gz[:5], "", "RESPONSE_INCOMPLETE"},
		"deflate, one byte":    {[]string{"deflate"}, []byte{1}, "", "RESPONSE_INCOMPLETE"},
		"deflate, more after":  {[]string{"deflate"}, join(pack(t, "zlib", []byte(plain)), []byte("x")), "", "RESPONSE_ENCODING"},
		"bare, more after":     {[]string{"deflate"}, join(pack(t, "flate", []byte(plain)), []byte("x")), "", "RESPONSE_ENCODING"},
		"deflate, rubbish":     {[]string{"deflate"}, []byte("\xff\xff\xff\xff"), "", "RESPONSE_ENCODING"},
		"br":                   {[]string{"BR"}, br, plain, ""},
		"br, nothing":          {[]string{"br"}, nil, "", ""},
		"br of nothing":        {[]string{"br"}, pack(t, "br", nil), "", ""},
		"br, cut":              {[]string{"br"}, br[:len(br)-3], "", "RESPONSE_INCOMPLETE"},
		"br, first byte only":  {[]string{"br"}, br[:1], "", "RESPONSE_INCOMPLETE"},
		"br, something after":  {[]string{"br"}, join(br, []byte{0}), "", "RESPONSE_ENCODING"},
		"said br, is not":      {[]string{"br"}, []byte(`{"a":1}`), "", "RESPONSE_ENCODING"},
		"br, large window":     {[]string{"br"}, []byte("\x11\x1e\x00\x00\x00"), "", "RESPONSE_ENCODING"},
		"zstd":                 {[]string{"zstd"}, zs, plain, ""},
		"zstd, nothing":        {[]string{"zstd"}, nil, "", ""},
		"zstd of nothing":      {[]string{"zstd"}, pack(t, "zstd", nil), "", ""},
		"zstd, two frames":     {[]string{"zstd"}, join(zs, zs), plain + plain, ""},
		"zstd, skipped first":  {[]string{"zstd"}, join([]byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc"), zs), plain, ""},
		"zstd, cut":            {[]string{"zstd"}, zs[:len(zs)-5], "", "RESPONSE_INCOMPLETE"},
		"zstd, checksum cut":   {[]string{"zstd"}, zs[:len(zs)-1], "", "RESPONSE_INCOMPLETE"},
		"zstd, 3 bytes":        {[]string{"zstd"}, zs[:3], "", "RESPONSE_INCOMPLETE"},
		"zstd, 1 of a second":  {[]string{"zstd"}, join(zs, zs[:1]), "", "RESPONSE_INCOMPLETE"},
		"zstd, 6 of a second":  {[]string{"zstd"}, join(zs, zs[:6]), "", "RESPONSE_INCOMPLETE"},
		"zstd, skip cut":       {[]string{"zstd"}, join(zs, []byte("\x50\x2a\x4d\x18\x03\x00\x00\x00ab")), "", "RESPONSE_INCOMPLETE"},
		"zstd, bad checksum":   {[]string{"zstd"}, flip(zs, len(zs)-1), "", "RESPONSE_ENCODING"},
		"zstd, rubbish after":  {[]string{"zstd"}, join(zs, []byte("rubbish")), "", "RESPONSE_ENCODING"},
		"said zstd, is not":    {[]string{"zstd"}, []byte(plain), "", "RESPONSE_ENCODING"},
		"said zstd, short":     {[]string{"zstd"}, []byte("1"), "", "RESPONSE_ENCODING"},
		"said zstd, is gzip":   {[]string{"zstd"}, gz, "", "RESPONSE_ENCODING"},
		"zstd with dictionary": {[]string{"zstd"}, []byte("\x28\xb5\x2f\xfd\x21\x07\x01\x09\x00\x00x"), "", "RESPONSE_ENCODING"},
		"unknown":              {[]string{"compress"}, gz, "", "RESPONSE_ENCODING"},
		"unknown among known":  {[]string{"gzip, dcb"}, gz, "", "RESPONSE_ENCODING"},
		"hostile name":         {[]string{strings.Repeat("x", 2000)}, gz, "", "RESPONSE_ENCODING"},
		"encoding and a HEAD":  {[]string{"compress"}, nil, "", "HEAD"},
		"encoding and no body": {[]string{"compress"}, nil, "", "204"},
	} {
		method, status := "GET", 200
		switch c.code {
		case "HEAD":
			method, c.code = "HEAD", ""
		case "204":
			status, c.code = 204, ""
		}
		resp, err := answer(t, outbound.Policy{}, method, http.Header{"Content-Encoding": c.encoding}, status, c.body)
		if string(code(err)) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
			continue
		}
		if err == nil && (string(resp.Body) != c.want || resp.Header.Get("Content-Encoding") != "") {
			t.Errorf("%s: %q", name, resp.Body)
		}
	}
}

// A server answers what a test has set last.
type server struct {
	codings string
	body    []byte
	cut     bool // the connection breaks where the body ends
	client  *outbound.Client
}

func newServer(t *testing.T, p outbound.Policy) *server {
	s, w := &server{}, newWorld(t)
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", s.codings)
		if s.cut {
			rw.Header().Set("Content-Length", fmt.Sprint(len(s.body)+1))
		}
		_, _ = rw.Write(s.body)
	}))
	s.client = w.client(p)
	return s
}

// Every pair and every triple of encodings is undone in the order in which it
// was applied, the last first.
func TestStackedEncodings(t *testing.T) {
	s := newServer(t, outbound.Policy{})
	const plain = `{"a":"é","b":[1,2,3]}`
	all := []string{"gzip", "deflate", "br", "zstd"}
	var stacks [][]string
	for _, a := range all {
		for _, b := range all {
			stacks = append(stacks, []string{a, b})
			for _, c := range all {
				stacks = append(stacks, []string{a, b, c})
			}
		}
	}
	for _, stack := range stacks {
		s.codings, s.body = strings.Join(stack, ", "), []byte(plain)
		for _, coding := range stack {
			s.body = squeeze(t, coding, bytes.NewReader(s.body))
		}
		if resp, err := get(t, s.client, origin0+"/"); err != nil || string(resp.Body) != plain {
			t.Errorf("%s: %v", s.codings, err)
		}
	}
}

// An answer that was cut anywhere, by its sender or by the connection, is never
// taken for a whole one.
func TestCutEncodings(t *testing.T) {
	s := newServer(t, outbound.Policy{})
	plain := strings.Repeat(`{"name":"Ida","n":12345},`, 40)
	two := func(coding string) []byte { // streams in a row, where the coding has that
		one := squeeze(t, coding, strings.NewReader(plain))
		return append(one, one...)
	}
	var frames bytes.Buffer // gzip whose data may be cut between two zstd frames
	z := gzip.NewWriter(&frames)
	_, _ = z.Write(squeeze(t, "zstd", strings.NewReader(plain)))
	_ = z.Flush()
	_, _ = z.Write(squeeze(t, "zstd", strings.NewReader(plain)))
	_ = z.Close()
	for codings, body := range map[string][]byte{
		"zstd, gzip": frames.Bytes(),
		"gzip":       squeeze(t, "gzip", strings.NewReader(plain)),
		"deflate":    squeeze(t, "deflate", strings.NewReader(plain)),
		"br":         squeeze(t, "br", strings.NewReader(plain)),
		"zstd":       squeeze(t, "zstd", strings.NewReader(plain)),
		"gzip, zstd": squeeze(t, "zstd", bytes.NewReader(squeeze(t, "gzip", strings.NewReader(plain)))),
		"br, gzip":   squeeze(t, "gzip", bytes.NewReader(squeeze(t, "br", strings.NewReader(plain)))),
	} {
		s.codings, s.cut = codings, false
		for n := 1; n < len(body); n++ {
			s.body = body[:n]
			if _, err := get(t, s.client, origin0+"/"); code(err) != "RESPONSE_INCOMPLETE" {
				t.Fatalf("%s: the first %d of %d bytes: %v", codings, n, len(body), err)
			}
		}
		s.body, s.cut = body, true
		if _, err := get(t, s.client, origin0+"/"); code(err) != "RESPONSE_INCOMPLETE" {
			t.Errorf("%s: whole, but the connection broke: %v", codings, err)
		}
	}
	for _, codings := range []string{"gzip", "zstd"} {
		s.codings, s.body, s.cut = codings, two(codings), false
		if resp, err := get(t, s.client, origin0+"/"); err != nil || string(resp.Body) != plain+plain {
			t.Errorf("%s: two streams: %v", codings, err)
		}
		s.cut = true // between two streams, as far as anyone can tell
		if _, err := get(t, s.client, origin0+"/"); code(err) != "RESPONSE_INCOMPLETE" {
			t.Errorf("%s: the connection broke between two streams: %v", codings, err)
		}
	}
}

// A body in which a single bit fell over is refused, or cut, or too large; with
// a checksum it is never taken for good. br has none.
func TestCorruptEncodings(t *testing.T) {
	s := newServer(t, outbound.Policy{MaxBytes: 1 << 20})
	plain := strings.Repeat(`{"name":"Ida","n":12345},`, 40)
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		body := squeeze(t, coding, strings.NewReader(plain))
		s.codings = coding
		for n := range body {
			s.body = slices.Clone(body)
			s.body[n] ^= 0x10
			resp, err := get(t, s.client, origin0+"/")
			switch code(err) {
			case "RESPONSE_ENCODING", "RESPONSE_INCOMPLETE", "RESPONSE_TOO_LARGE":
			case "":
				if string(resp.Body) != plain && coding != "br" {
					t.Errorf("%s: byte %d: taken for good", coding, n)
				}
			default:
				t.Errorf("%s: byte %d: %v", coding, n, err)
			}
		}
	}
}

// The cap counts what comes out: at the cap passes, one byte over does not, in
// every form.
func TestBodyCap(t *testing.T) {
	const limit = 10_000
	p := outbound.Policy{MaxBytes: limit}
	for _, n := range []int{limit, limit + 1} {
		data := bytes.Repeat([]byte("x"), n)
		want := ""
		if n > limit {
			want = "RESPONSE_TOO_LARGE"
		}
		for name, h := range map[string]http.Header{
			"length": {"Content-Length": {fmt.Sprint(n)}}, "chunked": {"Transfer-Encoding": {"chunked"}},
			"gzip": {"Content-Encoding": {"gzip"}}, "deflate": {"Content-Encoding": {"deflate"}},
		} {
			body := data
			switch name {
			case "gzip":
				body = pack(t, "gzip", data)
			case "deflate":
				body = pack(t, "flate", data)
			}
			resp, err := answer(t, p, "GET", h, 200, body)
			if string(code(err)) != want || err == nil && len(resp.Body) != n {
				t.Errorf("%s of %d: %v", name, n, err)
			}
		}
	}
	_, err := answer(t, outbound.Policy{}, "GET", nil, 203, make([]byte, outbound.DefaultMaxBytes+1))
	if f := wantFault(t, err, "RESPONSE_TOO_LARGE", "5242880"); f.Status != 203 || f.Retryable {
		t.Errorf("%+v", f)
	}
	if resp, err := answer(t, outbound.Policy{}, "GET", nil, 200, make([]byte, outbound.DefaultMaxBytes)); err != nil || len(resp.Body) != outbound.DefaultMaxBytes {
		t.Error(err)
	}
}

// zeros is a stream of n zero bytes.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.n)
	clear(p[:n])
	z.n -= n
	return int(n), nil
}

// squeeze compresses a stream with the largest window that its decoder takes.
func squeeze(t testing.TB, coding string, data io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		z, err = gzip.NewWriterLevel(&b, gzip.BestCompression)
	case "deflate":
		z, err = zlib.NewWriterLevel(&b, zlib.BestCompression)
	case "br":
		z = brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 5, LGWin: 24})
	case "zstd":
		z, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(z, data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// D30 and promise 23: a bomb stops at the cap, at once, and costs little more
// memory than an answer at the cap would.
func TestBombs(t *testing.T) {
	// 1 GiB of zeros each, which for gzip and zstd may be told in pieces.
	gz := bytes.Repeat(squeeze(t, "gzip", &zeros{16 << 20}), 64)
	br := squeeze(t, "br", &zeros{1 << 30})
	zs := bytes.Repeat(squeeze(t, "zstd", &zeros{16 << 20}), 64)
	// With zeros behind a stream, the layer below needs its whole window too.
	padded := func(coding string, inner []byte) []byte {
		return squeeze(t, coding, io.MultiReader(bytes.NewReader(inner), &zeros{17 << 20}))
	}
	bombs := map[string][]byte{
		"gzip": gz, "br": br, "zstd": zs,
		"deflate":          squeeze(t, "deflate", &zeros{100 << 20}),
		"gzip, gzip":       squeeze(t, "gzip", bytes.NewReader(gz)),
		"gzip, br":         squeeze(t, "br", bytes.NewReader(gz)),
		"br, gzip":         padded("gzip", br),
		"br, br, br":       padded("br", padded("br", br)),
		"zstd, zstd, zstd": padded("zstd", padded("zstd", zs)),
		"zstd, br, zstd":   padded("zstd", padded("br", zs)),
	}
	if n := len(gz); n < 1_000_000 || n > 1_100_000 || len(bombs["gzip, gzip"]) > 10_000 {
		t.Errorf("not the bombs that were meant: %d, %d bytes", n, len(bombs["gzip, gzip"]))
	}
	w := newWorld(t)
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		codings := r.URL.Query().Get("codings")
		rw.Header().Set("Content-Encoding", codings)
		_, _ = rw.Write(bombs[codings])
	}))
	c := w.client(outbound.Policy{})
	_, _ = get(t, c, origin0+"/?codings=gzip") // a connection, and what is made once
	var most uint64
	var slowest time.Duration
	for _, codings := range slices.Sorted(maps.Keys(bombs)) {
		var allocated uint64
		took := time.Hour
		// An idle machine needs 0.1 s, one with a lot to do a second, and that not three times in a row.
		for tries := 0; tries < 3 && took > 2*time.Second; tries++ {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := get(t, c, origin0+"/?codings="+url.QueryEscape(codings))
			took = time.Since(start)
			runtime.ReadMemStats(&after)
			wantFault(t, err, "RESPONSE_TOO_LARGE", "after decompression")
			// All allocations together, freed or not, server included.
			allocated = max(allocated, after.TotalAlloc-before.TotalAlloc)
		}
		t.Logf("%-16s %8d bytes on the wire, %5.1f MiB allocated, %v", codings, len(bombs[codings]), float64(allocated)/(1<<20), took)
		if allocated > 64<<20 || took > 2*time.Second {
			t.Errorf("%s: %d MiB allocated in %v", codings, allocated>>20, took)
		}
		most, slowest = max(most, allocated), max(slowest, took)
	}
	soak.Measured(t, "%d bombs, of which one is %d bytes of gzip that become 1 GiB: at most %d MiB allocated, the slowest refused after %v", len(bombs), len(bombs["gzip, gzip"]), most>>20, slowest.Round(time.Millisecond))
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, of := range []string{"klauspost/compress", "andybalholm/brotli"} {
		if bytes.Contains(stacks, []byte(of)) {
			t.Errorf("a goroutine of %s is left", of)
		}
	}
}

// Gzip members without content make no output for ever; the wire is capped too.
func TestEmptyMembers(t *testing.T) {
	empty := pack(t, "gzip", nil)
	sent := 0
	w := newWorld(t)
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		block := bytes.Repeat(empty, 1000)
		for sent < 64<<20 {
			n, err := rw.Write(block)
			if sent += n; err != nil {
				return
			}
		}
	}))
	wantFault(t, second(get(t, w.client(outbound.Policy{MaxBytes: 1 << 20}), origin0+"/")), "RESPONSE_TOO_LARGE", "")
}

// What is compressed twice can hide those members from the cap of the wire: the
// stream between is capped as well.
func TestEmptyMembersInside(t *testing.T) {
	var outer bytes.Buffer
	z := gzip.NewWriter(&outer)
	block := bytes.Repeat(pack(t, "gzip", nil), 10_000)
	for sent := 0; sent < 128<<20; sent += len(block) {
		_, _ = z.Write(block)
	}
	_ = z.Close()
	start := time.Now()
	_, err := answer(t, outbound.Policy{MaxBytes: 1 << 20}, "GET", http.Header{"Content-Encoding": {"gzip, gzip"}}, 200, outer.Bytes())
	wantFault(t, err, "RESPONSE_TOO_LARGE", "")
	if took := time.Since(start); took > 5*time.Second { // well under one on an idle machine; without the cap the time of the request
		t.Errorf("took %v", took)
	}
}

// A stream of events has no end to wait for: its first bytes are all that is read.
func TestEventStream(t *testing.T) {
	w := newWorld(t)
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
		if r.URL.Path == "/empty" {
			return
		}
		_, _ = io.WriteString(rw, "data: 1\n\n")
		rw.(http.Flusher).Flush()
		<-r.Context().Done() // the client hangs up
	}))
	c := w.client(outbound.Policy{})
	for path, want := range map[string]string{"/": "data: 1\n\n", "/empty": ""} {
		if resp, err := get(t, c, origin0+path); err != nil || string(resp.Body) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// the charset parameter, byte order marks, and nothing replaced silently.
func TestUTF8(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, body, want, err string
	}{
		"none":                    {"application/json", "é", "é", ""},
		"no type":                 {"", "é", "é", ""},
		"utf-8":                   {"application/json; charset=utf-8", "é", "é", ""},
		"utf8, quoted":            {`application/json; charset="UTF8"`, "é", "é", ""},
		"utf-8, single quotes":    {`application/json; charset='utf-8'`, "é", "é", ""},
		"utf-8 with mark":         {"application/json", "\xef\xbb\xbf{}", "{}", ""},
		"mark beats parameter":    {"text/json; charset=iso-8859-1", "\xef\xbb\xbfé", "é", ""},
		"invalid is left":         {"application/json; charset=utf-8", "\xff", "\xff", ""},
		"latin 1":                 {"application/json; charset=ISO-8859-1", "\xe9", "é", ""},
		"latin 1 euro (WHATWG)":   {"application/json; charset=iso-8859-1", "\x80", "€", ""},
		"windows-1251":            {"text/plain; charset=windows-1251", "\xcf\xf0\xe8", "При", ""},
		"shift_jis":               {"application/json; charset=Shift_JIS", "\x83\x65\x83\x58\x83\x67", "テスト", ""},
		"shift_jis cut":           {"application/json; charset=Shift_JIS", "\x83", "", "does not have"},
		"iso-8859-6 hole":         {"text/plain; charset=iso-8859-6", "\xa1", "", "does not have"},
		"gb18030":                 {"application/json; charset=gb18030", "\xd6\xd0\xce\xc4", "中文", ""},
		"utf-16le mark":           {"application/json", "\xff\xfe{\x00}\x00", "{}", ""},
		"utf-16be mark":           {"application/json; charset=utf-16", "\xfe\xff\x00{\x00}", "{}", ""},
		"utf-16be named":          {"application/json; charset=utf-16be", "\xd8\x3d\xde\x00", "😀", ""},
		"utf-16 without mark":     {"application/json; charset=utf-16", "=\xd8\x00\xde", "😀", ""},
		"utf-16 odd":              {"application/json; charset=utf-16le", "{\x00}", "", "half a character"},
		"utf-16 lone high":        {"application/json; charset=utf-16be", "\xd8\x3d", "", "half a surrogate"},
		"utf-16 lone low":         {"application/json; charset=utf-16be", "\xde\x00\x00a", "", "half a surrogate"},
		"utf-16 two high":         {"application/json; charset=utf-16be", "\xd8\x3d\xd8\x3d", "", "half a surrogate"},
		"utf-16 true replacement": {"application/json; charset=utf-16be", "\xff\xfd", "\uFFFD", ""},
		"unknown":                 {"application/json; charset=klingon", "x", "", "klingon"},
		"utf-7":                   {"application/json; charset=utf-7", "x", "", "utf-7"},
		"replacement":             {"application/json; charset=iso-2022-kr", "x", "", "unknown"},
		"broken parameter":        {"application/json; charset", "é", "é", ""},
		"empty body":              {"application/json; charset=utf-16", "", "", ""},
	} {
		r := &outbound.Response{Status: 200, Header: http.Header{"Content-Type": {c.contentType}}, Body: []byte(c.body)}
		got, err := r.UTF8()
		if c.err != "" {
			if f := wantFault(t, err, "RESPONSE_ENCODING", c.err); f.Status != 200 {
				t.Errorf("%s: %+v", name, f)
			}
			continue
		}
		if d := cmp.Diff(c.want, string(got)); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
}
