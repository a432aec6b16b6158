package wrapper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

func paced(more string) string {
	return doc(`{"method":"POST","url":"https://h.test/",`+more+`}`, `"key":{},"d":{"default":"x"},"l":{"type":"array"}`)
}

func TestPaceOfACall(t *testing.T) {
	w := parse(t, paced(`"concurrency":4,"rate":{"seconds":60,"requests":5}`))
	want := &wrapper.Rate{Requests: 5, Per: time.Minute}
	c, err := w.Build(nil)
	if err != nil || c.Concurrency != 4 || !cmp.Equal(c.Rate, want) || w.Request.Concurrency != 4 || !cmp.Equal(w.Request.Rate, want) {
		t.Fatalf("%v %+v", err, c)
	}
	c.Rate.Requests = 1 // the call is its caller's
	if w.Request.Rate.Requests != 5 {
		t.Error("a call changes its wrapper")
	}
	c, err = parse(t, paced(`"concurrency":null,"rate":null,"idempotencyKey":null`)).Build(nil)
	if err != nil || c.Concurrency != 0 || c.Rate != nil || c.IdempotencyHeader != "" {
		t.Errorf("%v %+v", err, c)
	}
}

func TestPaceProblems(t *testing.T) {
	const r = "wrapper.request."
	for _, tt := range []struct{ more, problems string }{
		{`"concurrency":1`, ""},
		{`"concurrency":32`, ""},
		{`"concurrency":0`, r + "concurrency RANGE"},
		{`"concurrency":33`, r + "concurrency RANGE"},
		{`"concurrency":-1`, r + "concurrency RANGE"},
		{`"concurrency":1.5`, r + "concurrency RANGE"},
		{`"concurrency":99999999999999999999`, r + "concurrency RANGE"},
		{`"concurrency":"4"`, r + "concurrency TYPE"},
		{`"rate":{"requests":1,"seconds":1}`, ""},
		{`"rate":{"requests":10000,"seconds":3600}`, ""},
		{`"rate":{"requests":0,"seconds":0}`, r + "rate.requests RATE_INVALID; " + r + "rate.seconds RATE_INVALID"},
		{`"rate":{"requests":10001,"seconds":3601}`, r + "rate.requests RATE_INVALID; " + r + "rate.seconds RATE_INVALID"},
		{`"rate":{"requests":0.5,"seconds":"1"}`, r + "rate.requests RATE_INVALID; " + r + "rate.seconds TYPE"},
		{`"rate":{"requests":5}`, r + "rate.seconds REQUIRED"},
		{`"rate":{"seconds":5,"requests":null}`, r + "rate.requests REQUIRED"},
		{`"rate":{}`, r + "rate.requests REQUIRED; " + r + "rate.seconds REQUIRED"},
		{`"rate":"5/s"`, r + "rate TYPE"},
		{`"rate":5`, r + "rate TYPE"},
		{`"rate":{"requests":5,"seconds":1,"burst":2,"second":1}`, r + "rate.burst UNKNOWN_FIELD; " + r + "rate.second UNKNOWN_FIELD"},
		{`"rate":{"requests":5,"requests":6,"seconds":1}`, r + "rate.requests DUPLICATE"},
	} {
		_, report := wrapper.Parse([]byte(paced(tt.more)))
		if got := outline(report.Problems); got != tt.problems || len(report.Warnings) > 0 {
			t.Errorf("%s\n got %swant %s", tt.more, lines(report.Problems), tt.problems)
		}
		for _, p := range report.Problems {
			if p.Hint == "" {
				t.Errorf("%s: no hint", tt.more)
			}
		}
	}
}

func TestIdempotencyOfACall(t *testing.T) {
	type got struct {
		Header string
		Sent   []wrapper.Header
	}
	const value = `"idempotencyKey":{"value":"{{key}}","header":"Idempotency-Key"}`
	named := func(v string) got {
		return got{"Idempotency-Key", []wrapper.Header{{Name: "Idempotency-Key", Value: v}}}
	}
	random := got{Header: "Idempotency-Key"} // the sender makes it
	for _, tt := range []struct {
		request, args string
		want          got
	}{
		{`"method":"POST",` + value, `{"key":"k-1"}`, named("k-1")},
		{`"method":"POST",` + value, `{"key":9007199254740993}`, named("9007199254740993")},
		{`"method":"POST",` + value, `{"key":false}`, named("false")},
		{`"method":"POST",` + value, `{}`, random},
		{`"method":"POST",` + value, `{"key":null}`, random},
		{`"method":"POST",` + value, `{"key":""}`, random}, // one empty key for all calls would be worse than none
		{`"method":"POST",` + value, `{"key":"  "}`, random},
		{`"method":"PATCH","idempotencyKey":{"header":"Idempotency-Key"}`, `{}`, random},
		{`"method":"DELETE",` + value, `{}`, random},
		{`"methods":["GET","POST"],` + value, `{"key":"k"}`, got{}},
		{`"methods":["GET","POST"],` + value, `{"key":"k","method":"POST"}`, named("k")},
		{`"method":"POST","idempotencyKey":{"header":"Idempotency-Key","value":"order-{{key}}"}`, `{"key":7}`, named("order-7")},
		{`"method":"POST","idempotencyKey":{"header":"Idempotency-Key","value":"order-{{key}}"}`, `{}`, random},
		{`"headers":{"X-HTTP-Method-Override":"PUT"},` + value, `{}`, random},
	} {
		c, err := parse(t, doc(`{"url":"https://h.test/",`+tt.request+`}`, `"key":{}`)).Build([]byte(tt.args))
		if err != nil {
			t.Errorf("%s %s: %v", tt.request, tt.args, err)
			continue
		}
		have := got{Header: c.IdempotencyHeader}
		for _, h := range c.Header {
			if strings.EqualFold(h.Name, "Idempotency-Key") {
				have.Sent = append(have.Sent, h)
			}
		}
		shown := "" // in a dry run
		for _, h := range c.Preview().Headers {
			if h.Name == "Idempotency-Key" {
				shown += h.Value
			}
		}
		want := ""
		switch {
		case len(tt.want.Sent) > 0:
			want = tt.want.Sent[0].Value
		case tt.want.Header != "":
			want = "[random]"
		}
		if shown != want {
			t.Errorf("%s %s is shown with %q", tt.request, tt.args, shown)
		}
		if d := cmp.Diff(tt.want, have, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s %s\n%s", tt.request, tt.args, d)
		}
	}
	// It stands behind the author's headers, and is guarded like them.
	run(t, doc(`{"method":"POST","url":"https://h.test/","headers":{"X-A":"1"},`+value+`,"body":{}}`, `"key":{}`), []buildCase{
		{`{"key":"k"}`, "POST https://h.test/\nX-A: 1\nIdempotency-Key: k\n\n{}"},
		{`{"key":"a\r\nEvil: 1"}`, "args.key CONTROL_CHARACTER"},
		{`{"key":"é"}`, "args.key HEADER_INVALID"},
		{`{"key":["k"]}`, "args.key TYPE"},
		{`{"key":"` + strings.Repeat("k", 64<<10) + `"}`, "POLICY_REQUEST_TOO_LARGE wrapper.request.headers"},
	})
	w := parse(t, doc(`{"method":"POST","url":"https://h.test/","headers":{"X-A":"1"},`+value+`}`, `"key":{}`))
	first, _ := w.Build([]byte(`{"key":"k"}`))
	if again, _ := w.Build(nil); len(again.Header) != 2 || len(first.Header) != 3 || len(w.Request.Headers) != 1 {
		t.Errorf("%v %v %v", first.Header, again.Header, w.Request.Headers)
	}
	plain, _ := parse(t, doc(`{"method":"POST","url":"https://h.test/","headers":{"X-A":"1"}}`, `"key":{}`)).Build(nil)
	if again, _ := w.Build(nil); again.Digest() == plain.Digest() || again.Digest() == first.Digest() {
		t.Error("the digest leaves the key out")
	}
}

func TestIdempotencyProblems(t *testing.T) {
	const r = "wrapper.request.idempotencyKey"
	header := func(name string) string { return `"idempotencyKey":{"header":"` + name + `"}` }
	for _, tt := range []struct{ more, problems, warnings string }{
		{header("Idempotency-Key"), "", ""},
		{header("X-Request-Id"), "", ""},
		{`"idempotencyKey":{}`, r + ".header REQUIRED", ""},
		{`"idempotencyKey":"Idempotency-Key"`, r + " TYPE", ""},
		{`"idempotencyKey":true`, r + " TYPE", ""},
		{`"idempotencyKey":{"header":5}`, r + ".header TYPE", ""},
		{header("a b"), r + ".header HEADER_INVALID", ""},
		{header(""), r + ".header HEADER_INVALID", ""},
		{header("{{key}}"), r + ".header HEADER_INVALID", ""},
		{header("Host"), r + ".header HEADER_INVALID", ""},
		{header("proxy-x"), r + ".header HEADER_INVALID", ""},
		{header("Authorization"), r + ".header CREDENTIAL_HEADER", ""},
		{header("X-Api-Key"), r + ".header CREDENTIAL_HEADER", ""},
		{header("Cookie"), r + ".header CREDENTIAL_HEADER", ""},
		{header("content-type"), r + ".header HEADER_INVALID", ""},
		{header("Accept"), r + ".header HEADER_INVALID", ""},
		{header("If-Match"), r + ".header HEADER_INVALID", ""},
		{header("User-Agent"), r + ".header HEADER_INVALID", ""},
		{header("X-HTTP-Method-Override"), r + ".header HEADER_INVALID", ""},
		{`"headers":{"idempotency-KEY":"{{key}}"},` + header("Idempotency-Key"), r + ".header DUPLICATE", ""},
		{header("Idempotency-Key") + `,"headers":{"idempotency-KEY":"{{key}}"}`, r + ".header DUPLICATE", ""},
		{`"idempotencyKey":{"header":"K","value":"fixed"}`, r + ".value PATTERN", ""},
		{`"idempotencyKey":{"header":"K","value":""}`, r + ".value PATTERN", ""},
		{`"idempotencyKey":{"header":"K","value":5}`, r + ".value TYPE", ""},
		{`"idempotencyKey":{"header":"K","value":"é{{key}}"}`, r + ".value HEADER_INVALID", ""},
		{`"idempotencyKey":{"header":"K","value":"{{key"}`, r + ".value PLACEHOLDER_SYNTAX", ""},
		{`"idempotencyKey":{"header":"K","value":"{{zzz}}"}`, r + ".value PLACEHOLDER_UNKNOWN", ""},
		{`"idempotencyKey":{"header":"K","value":"{{l}}"}`, r + ".value TYPE", ""},
		{`"idempotencyKey":{"header":"K","value":"{{key|raw}}"}`, r + ".value RAW_OUTSIDE_URL", ""},
		{`"idempotencyKey":{"header":"K","values":"{{key}}","zzz":1}`, r + ".values UNKNOWN_FIELD; " + r + ".zzz UNKNOWN_FIELD", ""},
		{`"idempotencyKey":{"header":"K","value":null}`, "", ""},
		{`"idempotencyKey":{"header":"K","value":"{{d}}"}`, "", r + ".value PATTERN"},
		{`"idempotencyKey":{"header":"K","value":"{{d}}-{{key}}"}`, "", ""},
	} {
		_, report := wrapper.Parse([]byte(paced(tt.more)))
		if got := outline(report.Problems); got != tt.problems {
			t.Errorf("%s\n got %swant %s", tt.more, lines(report.Problems), tt.problems)
		}
		if got := outline(report.Warnings); got != tt.warnings {
			t.Errorf("%s\n got %swant %s", tt.more, lines(report.Warnings), tt.warnings)
		}
	}
	// With reads it has no effect.
	for request, want := range map[string]string{
		`"method":"GET"`: r + " HEADER_INVALID", `"methods":["GET","HEAD"]`: r + " HEADER_INVALID", `"methods":["GET","POST"]`: "",
		`"headers":{"X-HTTP-Method":"PUT"}`: "",
	} {
		_, report := wrapper.Parse([]byte(doc(`{"url":"https://h.test/",`+request+`,`+header("K")+`}`, "")))
		if got := outline(report.Warnings); got != want || len(report.Problems) > 0 {
			t.Errorf("%s: %s", request, got)
		}
	}
	if w := parse(t, doc(`{"url":"https://h.test/",`+header("K")+`}`, "", `"mutating":true`)); w == nil {
		t.Fatal()
	}
}
