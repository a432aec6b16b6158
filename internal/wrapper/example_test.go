package wrapper_test

import (
	"fmt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// A wrapper and the arguments of a call make one exact request.
func Example() {
	w, report := wrapper.Parse([]byte(`{
		"schemaVersion": 1,
		"id": "orders.create",
		"request": {
			"method": "POST",
			"url": "https://api.example.com/v1/shops/{{shop}}/orders",
			"query": { "notify": "{{notify}}" },
			"body": { "customer": "{{customer_id}}", "line_items": "{{items}}", "note": "{{note}}" }
		},
		"inputSchema": {
			"type": "object",
			"properties": {
				"shop": { "type": "string" },
				"customer_id": { "type": "integer" },
				"items": { "type": "array", "items": { "type": "object" } },
				"note": { "type": "string" },
				"notify": { "type": "boolean", "default": false }
			},
			"required": ["shop", "customer_id", "items"]
		}
	}`))
	if !report.OK() {
		fmt.Println(report.Problems)
		return
	}
	call, err := w.Build([]byte(`{"shop": "a b", "customer_id": 9007199254740993, "items": [{"sku": "A-1", "qty": 2}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(call.Method, call.URL)
	for _, h := range call.Header {
		fmt.Printf("%s: %s\n", h.Name, h.Value)
	}
	fmt.Printf("%s\n", call.Body)
	fmt.Println("mutating:", call.Mutating())
	// Output:
	// POST https://api.example.com/v1/shops/a%20b/orders?notify=false
	// Accept: application/json
	// Content-Type: application/json
	// {"customer":9007199254740993,"line_items":[{"sku":"A-1","qty":2}]}
	// mutating: true
}

// Parse names every problem of a document with its field.
func ExampleParse() {
	_, report := wrapper.Parse([]byte(`{
		"schemaVersion": 1,
		"id": "search",
		"request": { "url": "https://api.example.com/?api_key=abc", "query": { "q": "{{qury}}" } },
		"inputSchema": { "type": "object", "properties": { "query": { "type": "string" } } }
	}`))
	for _, p := range report.Problems {
		fmt.Printf("%s %s: %s\n", p.Code, p.Field, p.Message)
	}
	// Output:
	// CREDENTIAL_QUERY wrapper.request.url: query parameter "api_key" looks like a credential
	// PLACEHOLDER_UNKNOWN wrapper.request.query.q: {{qury}} is not a property of the input schema
}

// Build names every argument that does not fit.
func ExampleWrapper_Build() {
	w, _ := wrapper.Parse([]byte(`{
		"schemaVersion": 1,
		"id": "search",
		"request": { "url": "https://api.example.com/", "query": { "limit": "{{limit}}" } },
		"inputSchema": {
			"type": "object",
			"properties": { "limit": { "type": "integer", "maximum": 50 } },
			"additionalProperties": false
		}
	}`))
	_, err := w.Build([]byte(`{"limit": "5", "page": 2}`))
	for _, d := range fault.From(err).Details {
		fmt.Printf("%s %s: %s\n", d.Code, d.Field, d.Message)
	}
	// Output:
	// TYPE args.limit: expected integer, got string
	// UNKNOWN_FIELD args.page: unknown argument; accepted: limit
}
