// A server of the official Go library: a tool that reports progress, one that asks the user.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type named struct {
	Name string `json:"name"`
}

func text(format string, values ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, values...)}}}
}

func echo(_ context.Context, _ *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
	return text("%s from %d", in.Name, os.Getpid()), nil, nil
}

func steps(ctx context.Context, request *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any,
	error) {
	for step := 1; step <= 3; step++ {
		err := request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: request.Params.GetProgressToken(), Message: in.Name,
			Progress: float64(step), Total: 3})
		if err != nil {
			return nil, nil, err
		}
	}
	return text("%s", in.Name), nil, nil
}

func ask(ctx context.Context, request *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any,
	error) {
	answer, err := request.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Name,
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{
			"name": map[string]any{"type": "string"}}}})
	if err != nil {
		return nil, nil, err
	}
	return text("%s: %v", answer.Action, answer.Content["name"]), nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "go-demo", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, echo)
	mcp.AddTool(server, &mcp.Tool{Name: "steps"}, steps)
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, ask)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
