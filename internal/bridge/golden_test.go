package bridge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// The wire, case by case: see testdata/README.md for the sections.
func TestProtocol(t *testing.T) {
	golden.Run(t, "testdata/http/*.txtar", []string{"request"}, []string{"answer", "calls"}, func(t *testing.T, c *golden.Case) {
		f := &fake{}
		s := serve(t, f)
		text := string(c.Input("request"))
		head, body, _ := strings.Cut(text, "\n\n")
		head = strings.NewReplacer("{PORT}", s.port, "{TOKEN}", testToken, "{LENGTH}", fmt.Sprint(len(body))).Replace(head)
		resp, answer := s.raw(t, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n"+body)

		var b strings.Builder
		fmt.Fprintf(&b, "%s %s\n", resp.Proto, resp.Status)
		var names []string
		for name := range resp.Header {
			if name != "Date" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(resp.Header[name], ", "))
		}
		b.WriteString("\n" + answer)
		c.Want("answer", b.String())

		calls, _ := f.asked()
		c.Want("calls", strings.Join(calls, "\n"))
	})
}
