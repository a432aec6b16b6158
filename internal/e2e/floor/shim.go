package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// runShim serves MCP over stdio until its input ends.
func runShim(ctx context.Context, daemon, token string) error {
	client := newClient()
	s := mcp.NewServer(&mcp.Implementation{Name: "floor", Version: "1"}, nil)
	for _, t := range tools {
		url := daemon + "/call/" + t.name
		s.AddTool(&mcp.Tool{Name: t.name, Description: t.about, InputSchema: json.RawMessage(t.schema)}, func(ctx context.Context, call *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(call.Params.Arguments))
			if err != nil {
				return nil, err
			}
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := client.Do(req)
			if err != nil {
				return nil, err
			}
			text, err := whole(resp)
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
		})
	}
	return s.Run(ctx, &mcp.StdioTransport{})
}
