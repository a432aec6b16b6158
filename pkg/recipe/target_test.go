package recipe

import "testing"

// TestTargetsKeepTheirHost: a value cannot move a link that the author began to
// another host, nor end the part of the address that it stands in.
func TestTargetsKeepTheirHost(t *testing.T) {
	for _, tt := range []struct{ template, p, want string }{
		// Directly behind the author's host only what ends it is written.
		{"[a](https://example.com{{p}})", "@evil.test/", "[a](https://example.com)"},
		{"[a](https://example.com{{p}})", ".evil.test", "[a](https://example.com)"},
		{"[a](https://example.com{{p}})", "evil", "[a](https://example.com)"},
		{"[a](https://example.com{{p}})", ":80@evil.test", "[a](https://example.com)"},
		{"[a](https://example.com{{p}})", "%2eevil.test", "[a](https://example.com)"},
		{"[a](https://example.com{{p}})", "。evil.test", "[a](https://example.com)"},
		{"[a](https://example.com{{p}})", "https://evil.test/", "[a](https://example.com)"},
		{"[a](https://example.com{{p}})", "/items/1?a=1&b=2#c", "[a](https://example.com/items/1?a=1&b=2#c)"},
		{"[a](https://example.com{{p}})", "?a=@x", "[a](https://example.com?a=@x)"},
		{"[a](https://example.com{{p}}/x)", "@evil.test", "[a](https://example.com/x)"},
		{"<https://example.com{{p}}>", "@evil.test/", "<https://example.com>"},
		{"[a](<https://example.com{{p}}>)", ".evil.test/", "[a](<https://example.com>)"},
		{`<a href="https://example.com{{p}}">`, ".evil.test/", `<a href="https://example.com">`},
		{"<a href=https://example.com{{p}}>", ".evil.test/", "<a href=https://example.com>"},
		{"[a](//example.com{{p}})", ".evil.test/", "[a](//example.com)"},
		{"[a](https://user:{{p}}@example.com/)", "x@evil.test/", "[a](https://user:@example.com/)"},
		{"[a](https://example.com:{{p}}/)", "8080", "[a](https://example.com:8080/)"},
		{"[a](https://example.com:{{p}}/)", "80@evil.test", "[a](https://example.com:/)"},
		{"[a](https://example.com:{{p}}/)", "x", "[a](https://example.com:/)"},
		{"[a](https://example.com:80{{p}}/)", "80@evil.test", "[a](https://example.com:80/)"},
		// Inside a host whose end is the author's, names are written.
		{"[a](https://{{p}}.example.com/)", "team-1.eu", "[a](https://team-1.eu.example.com/)"},
		{"[a](https://{{p}}.example.com/)", "evil.test/", "[a](https://.example.com/)"},
		{"[a](https://{{p}}.example.com/)", "evil.test#", "[a](https://.example.com/)"},
		{"[a](https://api-{{p}}.example.com)", "eu", "[a](https://api-eu.example.com)"},
		{"[a](https://api-{{p}}.example.com)", ".evil.test?", "[a](https://api-.example.com)"},
		{"[a](https://{{p}}-{{p}}.example.com)", "a", "[a](https://a-a.example.com)"},
		// A host that is the value's is its own business.
		{"[a](https://{{p}}/x)", "evil.test:80/y", "[a](https://evil.test:80/y/x)"},
		{"[a](https://{{p}})", "example.com/y?z", "[a](https://example.com/y?z)"},
		{"[a]({{p}})", "/x?a=1&b=2#c", "[a](/x?a=1&b=2#c)"},
		{"[a]({{p}})", "//cdn.example.com/x", "[a](//cdn.example.com/x)"},
		// A slash of the author's does not become two.
		{"[a](/{{p}})", "/evil.test/", "[a](/%2Fevil.test/)"},
		{"[a](/{{p}})", "x/y", "[a](/x/y)"},
		// What follows stays what it is.
		{"[a](https://example.com/{{p}}/x)", "a?b#c", "[a](https://example.com/a%3Fb%23c/x)"},
		{"[a](https://example.com/{{p}})", "a?b#c", "[a](https://example.com/a?b#c)"},
		{"[a](https://example.com/?q={{p}}&r=1)", "a&b#c", "[a](https://example.com/?q=a%26b%23c&r=1)"},
		{"[a](https://example.com/?q={{p}})", "a&b#c", "[a](https://example.com/?q=a%26b%23c)"},
		{"[a](https://example.com/?{{p}})", "a=1&b=2", "[a](https://example.com/?a=1&b=2)"},
		{"[a](https://example.com?u={{p}})", "https://x.test/?a=1&b", "[a](https://example.com?u=https://x.test/?a=1%26b)"},
		{"[a](/x?u={{p}})", "javascript:1", "[a](/x?u=javascript:1)"},
		// Schemes: as before.
		{"[a](java{{p}})", "script:x", "[a](javascript%3Ax)"},
		{"[a]({{p}})", "javascript:x", "[a](javascript%3Ax)"},
		{"[a]({{p}})", "javascript&colon;x", "[a](javascript%26colon;x)"},
	} {
		tpl, err := ParseTemplate(tt.template)
		if err != nil {
			t.Fatal(err)
		}
		item := Object{{Key: "p", Value: tt.p}}
		if got := tpl.Render(item, item); got != tt.want {
			t.Errorf("%s with %q:\n got %s\nwant %s", tt.template, tt.p, got, tt.want)
		}
	}
	for _, tt := range []struct{ template, want string }{
		{"[a](https://example.com{{path}}{{none}})", "[a](https://example.com/items)"},
		{"[a](https://example.com{{path}}{{mail}}.html)", "[a](https://example.com.html)"},
		{"[a](https://{{moved}}{{none}}.example.com/)", "[a](https://.example.com/)"},
		{"[a](https://example.com/(x)/{{path}}) {{mail}}", "[a](https://example.com/(x)//items) @evil.test"},
		{"[a](https://example.com 'by {{mail}}')", "[a](https://example.com 'by @evil.test')"},
	} {
		tpl, err := ParseTemplate(tt.template)
		if err != nil {
			t.Fatal(err)
		}
		item := Object{{Key: "path", Value: "/items"}, {Key: "mail", Value: "@evil.test"}, {Key: "moved", Value: "evil.test/"}}
		if got := tpl.Render(item, item); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.template, got, tt.want)
		}
	}
	// Two values are no way around it.
	tpl, err := ParseTemplate("[a](https://example.com{{p}}{{q}}) [b]({{b}}{{q}})")
	if err != nil {
		t.Fatal(err)
	}
	item := Object{{Key: "p", Value: ""}, {Key: "q", Value: "@evil.test"}, {Key: "b", Value: "https://example.com"}}
	if got, want := tpl.Render(item, item), "[a](https://example.com) [b](https://example.com)"; got != want {
		t.Errorf("%s", got)
	}
}
