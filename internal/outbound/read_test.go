package outbound_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
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
	_, err := answer(t, outbound.Policy{}, "GET", nil, 418, make([]byte, outbound.DefaultMaxBytes+1))
	if f := wantFault(t, err, "RESPONSE_TOO_LARGE", "5242880"); f.Status != 418 || f.Retryable {
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

// D30 and promise 23: a bomb stops at the cap and costs no more memory than an
// answer at the cap would.
func TestGzipBomb(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.Copy(z, &zeros{200 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var twice bytes.Buffer // a bomb of bombs
	z = gzip.NewWriter(&twice)
	_, _ = z.Write(bomb.Bytes())
	_ = z.Close()

	w := newWorld(t)
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/twice" {
			rw.Header().Set("Content-Encoding", "gzip, gzip")
			_, _ = rw.Write(twice.Bytes())
			return
		}
		rw.Header().Set("Content-Encoding", "gzip")
		_, _ = rw.Write(bomb.Bytes())
	}))
	c := w.client(outbound.Policy{})
	for _, path := range []string{"/once", "/twice"} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := get(t, c, origin0+path)
		runtime.ReadMemStats(&after)
		wantFault(t, err, "RESPONSE_TOO_LARGE", "after decompression")
		// All allocations together, freed or not, server included: the growing
		// buffer doubles up to the cap, so about three times the cap.
		if got := after.TotalAlloc - before.TotalAlloc; got > 24<<20 {
			t.Errorf("%s: %d MiB allocated", path, got>>20)
		} else {
			t.Logf("%s: %d KB on the wire, %.1f MiB allocated", path, bomb.Len()>>10, float64(got)/(1<<20))
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
