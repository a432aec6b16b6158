package recipe

import (
	"strings"
	"testing"
)

func TestHTMLText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"paragraphs", "<p>One</p>\n\n<p>Two</p>", "One\n\nTwo"},
		{"breaks", "a<br>b<br/>c<br><br><br>d", "a\nb\nc\n\nd"},
		{"white space is one space", "a\n  <b>b</b>\t c", "a b c"},
		{"no space is added inside a word", "un<b>believ</b>able", "unbelievable"},
		{"a list", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>c", "a\nb\n\nc"},
		{"a table", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"},
		{"script", "a<script>if (1 < 2) { x = '<b>' }</script>b", "ab"},
		{"style", "<style>p { color: red }</style>a", "a"},
		{"script that is never closed", "a<script>b <p>c", "a"},
		{"script in capitals", "a<SCRIPT>b</Script >c", "ac"},
		{"a closed script tag opens one", "a<script/>b</script>c", "ac"},
		{"comments", "a<!-- <p> b -->c<!-- d", "ac"},
		{"doctype", "<!DOCTYPE html><html><head><title>T</title></head><body>B</body></html>", "T\n\nB"},
		{"fallback content", "a<iframe>b</iframe><noscript><img src=x></noscript><template><p>c<template>d</template>e</template>f", "af"},
		{"references once", "<i>&lt;b&gt; &amp;lt; &#65; &#x42; &nbsp;x &unknown; AT&T</i>", "<b> &lt; A B \u00a0x &unknown; AT&T"},
		{"references without a tag", "Fish &amp; chips\nnext", "Fish & chips\nnext"},
		{"comparison", "a < b and c > d <i>e</i>", "a < b and c > d e"},
		{"attributes are not text", `<a href="x>y" onclick='<p>'>t</a>`, "t"},
		{"pre", "<pre>a\n  b\n\nc</pre>d", "a\n  b\n\nc\n\nd"},
		{"stray ends", "</p></script></pre>a</b>", "a"},
		{"a tag that is never closed", "a<b", "a"},
		{"nothing", "<p> </p>", ""},
		{"formats of the web", `<p><span class="h-card"><a href="https://e.com/@u" class="u-url">@<span>user</span></a></span> hi</p>`, "@user hi"},
	} {
		got, more := htmlText(c.in, 1000)
		if got != c.want || more {
			t.Errorf("%s: %q gives %q, %v; want %q", c.name, c.in, got, more, c.want)
		}
	}
}

// What is read is bounded by what is shown, and markup by itself too.
func TestHTMLTextBounds(t *testing.T) {
	if got, more := htmlText("<p>"+strings.Repeat("a", 1<<20), 10); len(got) > 16*10+256 || !more {
		t.Errorf("%d bytes, %v", len(got), more)
	}
	if got, more := htmlText(strings.Repeat("<i>", 1<<20)+"a", 10); got != "" || !more {
		t.Errorf("%q, %v", got, more)
	}
	if got, more := htmlText("<style>"+strings.Repeat("a", maxHTMLBytes/2)+"</style>b", 10); got != "b" || more {
		t.Errorf("%q, %v", got, more)
	}
}

func TestFormatBytes(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0", "0 B"},
		{"-0", "0 B"},
		{"1", "1 B"},
		{"1023", "1023 B"},
		{"0.5", "0.5 B"},
		{"1023.9", "1023.9 B"},
		{"1e2", "100 B"},
		{"1024", "1.0 KiB"},
		{"4449", "4.3 KiB"},
		{"-4449", "-4.3 KiB"},
		{"1536", "1.5 KiB"},
		{"1024.0", "1.0 KiB"},
		{"1075", "1.0 KiB"},       // 1.0498
		{"1076", "1.1 KiB"},       // 1.0508
		{"1280", "1.3 KiB"},       // 1.25 exactly: away from zero
		{"1048524", "1023.9 KiB"}, // 1023.949
		{"1048525", "1.0 MiB"},    // 1023.9502 is 1024.0 KiB with one decimal
		{"1048576", "1.0 MiB"},
		{"5e6", "4.8 MiB"},
		{"1073741824", "1.0 GiB"},
		{"1099511627776", "1.0 TiB"},
		{"1125899906842624", "1.0 PiB"},
		{"9007199254740993", "8.0 PiB"},
		{"1152921504606846976", "1.0 EiB"},
		{"18446744073709551616", "16.0 EiB"},
		{"123456789012345678901234567890", "107081695084.2 EiB"},
	} {
		if got, ok := formatBytes(c.in); got != c.want || !ok {
			t.Errorf("%s is %q, %v; want %q", c.in, got, ok, c.want)
		}
	}
	for _, in := range []string{"", "x", "1,000", "4 KB", "1e400", "1e-400", "NaN", strings.Repeat("9", 1001)} {
		if got, ok := formatBytes(in); ok {
			t.Errorf("%.20s is %q", in, got)
		}
	}
}
