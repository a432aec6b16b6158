package fault_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// docs/errors.md is made from the table, so the two cannot differ.
func TestErrorsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Error codes

Generated from internal/fault by ` + "`make docs`" + `. A code names one cause, is stable, and is never reused for another meaning.

Every failure has one shape, on the bridge and behind the MCP tools:

| Member | Meaning |
| --- | --- |
| ` + "`ok`" + ` | always false |
| ` + "`code`" + ` | from this page |
| ` + "`status`" + ` | the API's HTTP status, or null when it gave no answer. The bridge's own status is the HTTP status of its response |
| ` + "`field`" + ` | where the fault sits: ` + "`args.city`, `wrapper.request.url`, `response.fields.Price.format`, `body.sample`; `upstream:NAME`" + ` for what the API itself names; or null |
| ` + "`retryable`" + ` | the same call may succeed later without a change. False for a POST or PATCH that may have reached the API |
| ` + "`hint`" + fmt.Sprintf(` | what to do next, at most %d characters |
| `, fault.MaxHint) + "`message`" + fmt.Sprintf(` | what happened, at most %d characters; never a page of the API's |
| `, fault.MaxMessage) + "`retryAfterMs`" + ` | how long to wait, at most one hour; absent when unknown |
| ` + "`details`" + ` | every problem of a refused document: ` + "`field`, `code`, `message`, `hint`" + fmt.Sprintf(`; at most %d |
| `, fault.MaxDetails) + "`wrapper`, `request`, `durationMs`" + ` | what is known of the call |

"HTTP" is the status of the bridge's response; 200 means that the bridge did its part and the outcome is a failure. A dash means that hb-rest makes the code itself.
`)
	group := ""
	for _, e := range fault.Catalogue() {
		if e.Group != group {
			group = e.Group
			fmt.Fprintf(&b, "\n## %s\n\n| Code | HTTP | Retryable | When | Hint |\n| --- | --- | --- | --- | --- |\n", group)
		}
		http, retry := fmt.Sprint(e.HTTP), "no"
		if e.HTTP == 0 {
			http = "–"
		}
		if e.Retryable {
			retry = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Code, http, retry, cell(e.When), cell(e.Hint))
	}
	b.WriteString("\n## Detail codes\n\nThey occur only inside `details` and in warnings.\n\n| Group | Codes |\n| --- | --- |\n")
	for _, g := range []string{"general", "request", "input schema", "recipe", "arguments", "warnings"} {
		var cs []string
		for _, c := range fault.DetailCodes()[g] {
			cs = append(cs, "`"+string(c)+"`")
		}
		fmt.Fprintf(&b, "| %s | %s |\n", g, strings.Join(cs, ", "))
	}
	golden.File(t, "../../docs/errors.md", b.String())
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
