package main

import (
	"encoding/json"
	"net/http"
	"net/url"
)

// A tool is one request to the API. request makes it of the arguments.
type tool struct {
	name, about, schema string
	request             func(api string, args []byte) (*http.Request, error)
	// table makes Markdown of the answer; nil: the answer is handed on as it came.
	table func(answer []byte) ([]byte, error)
}

var tools = []tool{
	{
		"object", "One order, as JSON.", `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`,
		func(api string, args []byte) (*http.Request, error) {
			var a struct{ ID string }
			if err := json.Unmarshal(args, &a); err != nil {
				return nil, err
			}
			return http.NewRequest(http.MethodGet, api+"/objects/"+url.PathEscape(a.ID), nil)
		}, nil,
	},
	{
		"table", "Products, as a Markdown table.", `{"type":"object","properties":{"limit":{"type":"integer"}}}`,
		func(api string, args []byte) (*http.Request, error) {
			var a struct{ Limit json.Number }
			if err := json.Unmarshal(args, &a); err != nil {
				return nil, err
			}
			return http.NewRequest(http.MethodGet, api+"/products?limit="+url.QueryEscape(a.Limit.String()), nil)
		},
		func(answer []byte) ([]byte, error) { return table(answer, "products", 50) },
	},
	{
		"big", "The first 50 products of all, as a Markdown table.", `{"type":"object"}`,
		func(api string, _ []byte) (*http.Request, error) {
			return http.NewRequest(http.MethodGet, api+"/big", nil)
		},
		func(answer []byte) ([]byte, error) { return table(answer, "", 50) },
	},
	{
		"slow", "An answer after a while.", `{"type":"object","properties":{"ms":{"type":"integer"}}}`,
		func(api string, args []byte) (*http.Request, error) {
			var a struct{ MS json.Number }
			if err := json.Unmarshal(args, &a); err != nil {
				return nil, err
			}
			return http.NewRequest(http.MethodGet, api+"/slow?ms="+url.QueryEscape(a.MS.String()), nil)
		}, nil,
	},
}
