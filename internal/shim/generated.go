package shim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A generatedTool is a wrapper as a tool of its own: a shortcut for wrap_run
// with that id, its arguments and format markdown.
type generatedTool struct {
	id         string
	definition *mcp.Tool
	line       string // the id and the definition as sent: equal lines are equal tools
}

// A mark says what became of a wrapper that wants to be a tool. The zero mark
// is that of one that does not.
type mark struct {
	state  toolState
	name   string // of the tool, when shown
	reason string // when quarantined
}

type toolState int

const (
	notATool    toolState = iota
	shown                 // in the tool list
	overCap               // the list is full with others
	quarantined           // some client would refuse it, and every other tool with it
	disabled              // HB_WRAP_MAX_TOOLS is 0
)

// String is the mark's part of a line of wrap_list.
func (m mark) String() string {
	switch m.state {
	case shown:
		return "tool " + m.name
	case overCap:
		return "tool over cap: call wrap_run"
	case quarantined:
		return "tool quarantined: " + m.reason
	case disabled:
		return "tools disabled: call wrap_run"
	}
	return ""
}

// chooseTools returns the tools to show, at most limit, those of higher
// priority and then of lower id first, and the mark of every wrapper that wants
// to be one. refused are the lines of definitions that the SDK would not take.
func chooseTools(entries []api.ManifestEntry, limit int, refused map[string]string) ([]*generatedTool, map[string]mark) {
	var wanted []api.ManifestEntry
	for _, e := range entries {
		if isTool(e) {
			wanted = append(wanted, e)
		}
	}
	slices.SortStableFunc(wanted, func(a, b api.ManifestEntry) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	var tools []*generatedTool
	marks := make(map[string]mark, len(wanted))
	taken := reservedNames()
	for _, e := range wanted {
		if limit <= 0 {
			marks[e.ID] = mark{state: disabled}
			continue
		}
		t, err := newGeneratedTool(e, taken)
		if err == nil && refused[t.line] != "" {
			err = errors.New(refused[t.line])
		}
		switch {
		case err != nil:
			marks[e.ID] = mark{state: quarantined, reason: fault.Shorten(err.Error(), maxAbout)}
		case len(tools) >= limit:
			marks[e.ID] = mark{state: overCap}
		default:
			tools = append(tools, t)
			marks[e.ID] = mark{state: shown, name: e.Tool}
			taken[e.Tool] = true
		}
	}
	return tools, marks
}

// isTool reports whether a wrapper wants to be a tool of its own. Without a name
// and a reason the daemon is one that does not know of tools.
func isTool(e api.ManifestEntry) bool {
	return e.ExposeAsTool && e.Damaged == "" && (e.Tool != "" || e.Quarantined != "")
}

// reservedNames are never those of a generated tool: a wrapper called run must
// not take the place of wrap_run.
func reservedNames() map[string]bool {
	names := map[string]bool{recallName: true}
	for _, t := range metaTools() {
		names[t.name] = true
	}
	return names
}

// maxDefinition is how many bytes a tool may have in the list: 200 of them must
// fit into one line of the protocol.
const maxDefinition = 64 << 10

// isToolName reports whether every known client takes the name.
func isToolName(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// newGeneratedTool makes the tool of an entry. The error completes "quarantined:".
// The daemon has judged the schema already; what is checked again here is what
// would end this process or empty the client's whole tool list.
func newGeneratedTool(e api.ManifestEntry, taken map[string]bool) (*generatedTool, error) {
	switch {
	case e.Quarantined != "":
		return nil, errors.New(e.Quarantined)
	case !isToolName(e.Tool):
		return nil, fmt.Errorf("the name %q is not one that clients take", fault.Shorten(e.Tool, 60))
	case taken[e.Tool]:
		return nil, fmt.Errorf("the name %s is taken", e.Tool)
	}
	if err := describesObject(e.InputSchema); err != nil {
		return nil, err
	}
	title := fault.Shorten(cmp.Or(e.Name, e.ID), 100)
	hints := annotations(e)
	hints.Title = title
	t := &generatedTool{id: e.ID, definition: &mcp.Tool{
		Name:        e.Tool,
		Title:       title,
		Description: toolDescription(e),
		InputSchema: json.RawMessage(compact(e.InputSchema)), // the order of properties is kept
		Annotations: &hints,
	}}
	line, err := json.Marshal(t.definition)
	if err != nil {
		return nil, errors.New("its definition is not JSON")
	}
	if len(line) > maxDefinition {
		return nil, fmt.Errorf("its definition has %d bytes, the limit is %d", len(line), maxDefinition)
	}
	t.line = e.ID + "\n" + string(line)
	return t, nil
}

// describesObject admits what AddTool takes without a panic: an object that
// describes an object.
func describesObject(raw json.RawMessage) error {
	var root struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	switch err := json.Unmarshal(raw, &root); {
	case len(raw) == 0:
		return errors.New("it has no input schema")
	case err != nil || root.Type != "object" || root.Properties == nil:
		return errors.New("its input schema does not describe an object")
	}
	return nil
}

// maxDescription is how many characters the description of a tool has: OpenAI's
// and compatible APIs refuse a longer one, and the whole list with it.
const maxDescription = 1024

// maxToolText is how many of them are the author's at most.
const maxToolText = 800

// toolDescription is what a model reads: what it does, where it goes and what
// comes back.
func toolDescription(e api.ManifestEntry) string {
	methods := e.Method
	if len(e.Methods) > 1 {
		methods = strings.Join(e.Methods, "|")
	}
	where := fmt.Sprintf(" %s %s, answers in Markdown.", methods, e.Host)
	if e.Mutating {
		where += fmt.Sprintf(" Changes data: wrap_test with id %s shows the request first.", e.ID)
	}
	room := maxDescription - utf8.RuneCountInString(where) - len(".")
	about := strings.TrimSpace(fault.Shorten(cmp.Or(strings.TrimSpace(e.Description), e.Name, e.ID), min(maxToolText, room)))
	if !strings.HasSuffix(about, ".") && !strings.HasSuffix(about, "!") && !strings.HasSuffix(about, "?") && !strings.HasSuffix(about, "…") {
		about += "."
	}
	return about + where
}

// annotations are the hints of the worst of a wrapper's methods. A document
// that says that its writes change nothing is believed here, and only here.
func annotations(e api.ManifestEntry) mcp.ToolAnnotations {
	if !e.Mutating {
		return hints(true, false, true, true)
	}
	methods := e.Methods
	if len(methods) == 0 {
		methods = []string{e.Method}
	}
	destructive, idempotent, writes := false, true, false
	for _, m := range methods {
		switch m {
		case "GET", "HEAD":
			continue
		case "PUT", "DELETE":
			destructive = true
		case "POST":
			idempotent = false
		default: // PATCH
			destructive, idempotent = true, false
		}
		writes = true
	}
	if !writes { // the document alone knows what it changes
		destructive, idempotent = true, false
	}
	return hints(false, destructive, idempotent, true)
}

// generatedHandler makes the SDK's handler of a generated tool.
func (s *Server) generatedHandler(t *generatedTool) mcp.ToolHandler {
	name := t.definition.Name
	return s.logged(name, "", func(ctx context.Context, raw json.RawMessage) (*answer, error) {
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || string(raw) == "null" {
			raw = json.RawMessage("{}")
		}
		if raw[0] != '{' {
			return nil, badArgument("arguments", "arguments of %s must be an object, not %s", name, kindOf(raw)).
				With(fault.Hint("Send one JSON object with the arguments by name."))
		}
		if err := checkText("args", raw); err != nil {
			return nil, err
		}
		r, err := s.client.Run(ctx, &api.RunRequest{ID: t.id, Args: raw, Format: api.FormatMarkdown})
		if err != nil {
			return nil, err
		}
		return presentRun(r, api.FormatMarkdown, ask{generated: true}), nil
	})
}
