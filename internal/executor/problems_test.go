package executor

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func refusal(status int, body string) *outbound.Response {
	return &outbound.Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
}

// Every problem that an API lists is a detail, whatever the style of the list.
func TestUpstreamProblems(t *testing.T) {
	for name, c := range map[string]struct{ body, message, want string }{
		"GitHub": {
			`{"message":"Validation Failed","errors":[{"resource":"Label","code":"invalid","field":"color"},{"resource":"Label","field":"name","code":"custom","message":"name is too long"}],"documentation_url":"https://docs.example.com"}`,
			"the API answered 422: Validation Failed", "upstream:color=invalid|upstream:name=name is too long",
		},
		"GitHub texts": {`{"message":"Validation Failed","errors":["a is bad","b is bad"]}`, "the API answered 422: Validation Failed", "upstream=a is bad|upstream=b is bad"},
		"JSON:API": {
			`{"errors":[{"status":"422","source":{"pointer":"/data/attributes/qty"},"title":"Invalid","detail":"must be at least 1"},{"source":{"parameter":"page"},"title":"Unknown"}]}`,
			"the API answered 422: must be at least 1", "upstream:/data/attributes/qty=must be at least 1|upstream:page=Unknown",
		},
		"RFC 9457": {
			`{"type":"https://example.net/validation-error","title":"Your request is not valid.","errors":[{"detail":"must be a positive integer","pointer":"#/age"},{"detail":"must be 'green', 'red' or 'blue'","pointer":"#/profile/color"}]}`,
			"the API answered 422: Your request is not valid.", "upstream:#/age=must be a positive integer|upstream:#/profile/color=must be 'green', 'red' or 'blue'",
		},
		"RFC 7807": {
			`{"title":"Your request parameters didn't validate.","invalid-params":[{"name":"age","reason":"must be a positive integer"},{"name":"color","reason":"must be 'green', 'red' or 'blue'"}]}`,
			"the API answered 422: Your request parameters didn't validate.", "upstream:age=must be a positive integer|upstream:color=must be 'green', 'red' or 'blue'",
		},
		"Google": {
			`{"error":{"code":400,"message":"Invalid value","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"event.start","description":"is required"},{"field":"event.end","description":"is before start"}]}]}}`,
			"the API answered 422: Invalid value", "upstream:event.start=is required|upstream:event.end=is before start",
		},
		"Google, older": {`{"error":{"code":400,"message":"Bad","errors":[{"domain":"global","reason":"required","message":"Required","locationType":"parameter","location":"resource.id"}]}}`, "the API answered 422: Bad", "upstream:resource.id=Required"},
		"Microsoft":     {`{"error":{"code":"BadArgument","message":"Multiple errors","details":[{"code":"NullValue","target":"PhoneNumber","message":"must not be null"}]}}`, "the API answered 422: Multiple errors", "upstream:PhoneNumber=must not be null"},
		"Rails":         {`{"errors":{"name":["is too short","is taken"],"base":["no more today"]}}`, "the API answered 422: name: is too short (and 2 more)", "upstream:name=is too short|upstream:name=is taken|upstream:base=no more today"},
		"Laravel":       {`{"message":"The given data was invalid.","errors":{"items.0.qty":["The qty must be an integer."]}}`, "the API answered 422: The given data was invalid.", "upstream:items.0.qty=The qty must be an integer."},
		"ASP.NET": {
			`{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.1","title":"One or more validation errors occurred.","status":400,"errors":{"Name":["The Name field is required."],"$.qty":["The JSON value could not be converted."]},"traceId":"00-x"}`,
			"the API answered 422: One or more validation errors occurred.", "upstream:Name=The Name field is required.|upstream:$.qty=The JSON value could not be converted.",
		},
		"FastAPI": {
			`{"detail":[{"loc":["body","items",0,"qty"],"msg":"value is not a valid integer","type":"type_error.integer"},{"loc":["query","q"],"msg":"field required","type":"value_error.missing"}]}`,
			"the API answered 422: body.items[0].qty: value is not a valid integer (and 1 more)", "upstream:body.items[0].qty=value is not a valid integer|upstream:query.q=field required",
		},
		"Django":             {`{"name":["This field is required."],"non_field_errors":["No."]}`, "the API answered 422: name: This field is required. (and 1 more)", "upstream:name=This field is required.|upstream:non_field_errors=No."},
		"Jira":               {`{"errorMessages":[],"errors":{"summary":"You must specify a summary."}}`, "the API answered 422: summary: You must specify a summary.", "upstream:summary=You must specify a summary."},
		"Nest":               {`{"statusCode":400,"message":["qty must be an integer","name must be a string"],"error":"Bad Request"}`, "the API answered 422: Bad Request", "upstream=qty must be an integer|upstream=name must be a string"},
		"Spring":             {`{"error":"Bad Request","errors":[{"field":"qty","rejectedValue":0,"defaultMessage":"must be positive"}]}`, "the API answered 422: Bad Request", "upstream:qty=must be positive"},
		"express-validator":  {`{"errors":[{"type":"field","msg":"Invalid value","path":"email","location":"body"}]}`, "the API answered 422: email: Invalid value", "upstream:email=Invalid value"},
		"Zod":                {`{"error":{"name":"ZodError","issues":[{"code":"invalid_type","path":["a",0],"message":"Required"}]}}`, "the API answered 422: a[0]: Required", "upstream:a[0]=Required"},
		"Symfony":            {`{"detail":"qty: too small","violations":[{"propertyPath":"qty","message":"too small"}]}`, "the API answered 422: qty: too small", "upstream:qty=too small"},
		"a list at the root": {`[{"message":"first","field":"a"},{"message":"second","field":"b"}]`, "the API answered 422: first", "upstream:a=first|upstream:b=second"},
		"errors is a text":   {`{"errors":"Not Found"}`, "the API answered 422: Not Found", ""},
		"nested by entry":    {`{"errors":{"items":[{},{"qty":["too small"]}]}}`, "the API answered 422: items[1].qty: too small", "upstream:items[1].qty=too small"},
		"one message":        {`{"message":"no"}`, "the API answered 422: no", ""},
		"twice":              {`{"message":"no","errors":[{"field":"a","message":"x"},{"field":"a","message":"x"}]}`, "the API answered 422: no", "upstream:a=x"},
		"a page":             {`{"message":"no","errors":["<!doctype html><p>x"]}`, "the API answered 422: no", ""},
		"one problem":        {`{"errors":{"code":"E7","message":"too late"}}`, "the API answered 422: too late", "upstream=too late"},
		"a coded detail":     {`{"detail":{"code":"E7","message":"too late"}}`, "the API answered 422: too late", "upstream=too late"},
		"data beside":        {`{"message":"no","details":{"requestId":"r-1"},"error":{"details":{"docs":"https://docs.example.com"}}}`, "the API answered 422: no", ""},
		"no problems":        {`{"message":"no","errors":[]}`, "the API answered 422: no", ""},
		"other values":       {`{"message":"no","errors":[1,null,true,[],{}]}`, "the API answered 422: no", ""},
		"control characters": {`{"message":"no","errors":[{"field":"a\nb","message":"x\u001b[31my\u202e"}]}`, "the API answered 422: no", "upstream:a b=x[31my"},
	} {
		f := statusFault(&wrapper.Call{Method: "POST"}, refusal(422, c.body), time.Unix(0, 0))
		var got []string
		for _, d := range f.Details {
			if d.Code != "REFUSED_BY_API" {
				t.Errorf("%s: code %s", name, d.Code)
			}
			got = append(got, d.Field+"="+d.Message)
		}
		if strings.Join(got, "|") != c.want || f.Message != c.message {
			t.Errorf("%s:\n got %s %q\nwant %s %q", name, strings.Join(got, "|"), f.Message, c.want, c.message)
		}
		if len(f.Details) > 0 && f.Field != "" && strings.HasPrefix(f.Details[0].Field, "upstream:") && f.Field != f.Details[0].Field {
			t.Errorf("%s: field %q, first detail %q", name, f.Field, f.Details[0].Field)
		}
	}
}

func TestUpstreamProblemsAreBounded(t *testing.T) {
	for _, n := range []int{fault.MaxDetails, fault.MaxDetails + 1} {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(`{"field":%q,"message":%q}`, fmt.Sprint(i, strings.Repeat("f", 100)), strings.Repeat("m", 300))
		}
		got := statusFault(&wrapper.Call{Method: "POST"}, refusal(422, `{"errors":[`+strings.Join(items, ",")+`]}`), time.Unix(0, 0)).Details
		if len(got) != fault.MaxDetails {
			t.Fatalf("%d of %d", len(got), n)
		}
		if d := got[49]; utf8.RuneCountInString(d.Field) != len("upstream:")+80 || utf8.RuneCountInString(d.Message) != 200 {
			t.Errorf("%d %d", utf8.RuneCountInString(d.Field), utf8.RuneCountInString(d.Message))
		}
	}
	deep := strings.Repeat(`{"a":`, 150) + `["x"]` + strings.Repeat(`}`, 150)
	if got := statusFault(&wrapper.Call{Method: "POST"}, refusal(422, `{"errors":`+deep+`}`), time.Unix(0, 0)).Details; len(got) != 1 || utf8.RuneCountInString(got[0].Field) > 90 {
		t.Errorf("%v", got)
	}
}

// The problems of a success that reports errors are details too.
func TestReportedProblems(t *testing.T) {
	doc, err := recipe.Decode([]byte(`{"schemaVersion":1,"mode":"document","error":"$.errors","fields":{"Name":"name"}}`), recipe.DecodeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	rec, report := recipe.Parse(doc)
	if rec == nil {
		t.Fatal(report.Problems)
	}
	page, err := rec.Read([]byte(`{"data":null,"errors":[{"message":"no such field","path":["user","nmae"]},{"message":"denied","path":["orders",0]}]}`), 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := reportedFault(rec, page, 200)
	if len(f.Details) != 2 || f.Details[1] != (fault.Detail{Field: "upstream:orders[0]", Code: "REFUSED_BY_API", Message: "denied"}) || f.Message != "the API answered 200 but reports an error: no such field" {
		t.Errorf("%+v", f)
	}
}

// What is said of a failing API fits the method.
func TestServerErrorHints(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		retry  bool
		hint   string
	}{
		{"GET", 500, true, "The API failed: repeat the call later."},
		{"HEAD", 502, true, "The API is not available now: repeat the call later."},
		{"PUT", 500, true, "The API failed. This method can be repeated without doing anything twice: repeat the call later."},
		{"DELETE", 504, true, "The API is not available now. This method can be repeated without doing anything twice: repeat the call later."},
		{"POST", 500, false, "The API failed. The write may have taken effect: check before you repeat it."},
		{"PATCH", 502, false, "The API is not available now. The write may have taken effect: check before you repeat it."},
		{"POST", 503, true, "The API is not available now: repeat the call later."},
		{"GET", 503, true, "The API is not available now: repeat the call later."},
	} {
		f := statusFault(&wrapper.Call{Method: c.method}, refusal(c.status, `{}`), time.Unix(0, 0))
		if f.Retryable != c.retry || f.Hint != c.hint {
			t.Errorf("%s %d: %v %s", c.method, c.status, f.Retryable, f.Hint)
		}
	}
}

// A GET that overrides its method is a write and is not called repeatable.
func TestServerErrorOfAnOverriddenMethod(t *testing.T) {
	w, report := wrapper.Parse([]byte(`{"schemaVersion":1,"id":"a","name":"A","request":{"method":"GET","url":"https://api.example.com/","headers":{"X-HTTP-Method-Override":"POST"}}}`))
	if w == nil {
		t.Fatal(report.Problems)
	}
	call, err := w.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := statusFault(call, refusal(500, `{}`), time.Unix(0, 0)); f.Retryable || !strings.Contains(f.Hint, "check before") {
		t.Errorf("%v %s", f.Retryable, f.Hint)
	}
}
