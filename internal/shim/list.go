package shim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// maxAbout is how many characters of a description a line of the list has. The
// list is read whole, again and again; wrap_get has the rest.
const maxAbout = 120

// presentList is one line for each wrapper that matches query:
//
//	id - what it does - METHOD host - needs a, b - secret NAME - tool NAME - verified 2026-11-30 - drift: Price empty since 2026-11-20
func presentList(all []api.ManifestEntry, marks map[string]mark, query string, limit int) string {
	if len(all) == 0 {
		return "No wrappers are saved. Make one: wrap_derive, then wrap_create."
	}
	m := &api.Manifest{Total: len(all)}
	for _, e := range all {
		if !api.Finds(query, e.ID, e.Name, e.Description, e.Host) {
			continue
		}
		if m.Matched++; len(m.Wrappers) < limit {
			m.Wrappers = append(m.Wrappers, e)
		}
	}
	return presentFound(m, marks, query)
}

// presentFound is presentList of what the daemon has found.
func presentFound(m *api.Manifest, marks map[string]mark, query string) string {
	if m.Matched == 0 {
		return fmt.Sprintf("None of %d wrappers has %q in its id, name, description or host.", m.Total, strings.ToLower(strings.TrimSpace(query)))
	}
	var lines []string
	for _, e := range m.Wrappers {
		lines = append(lines, listLine(e, marks[e.ID]))
	}
	if more := m.Matched - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("... and %d more: narrow with query, or raise limit", more))
	}
	return strings.Join(lines, "\n")
}

func listLine(e api.ManifestEntry, tool mark) string {
	if e.Damaged != "" {
		return fmt.Sprintf("%s - DAMAGED, cannot run: %s", e.ID, fault.Shorten(e.Damaged, maxAbout))
	}
	about := e.Description
	if about == "" {
		about = e.Name
	}
	methods := e.Method
	if len(e.Methods) > 1 {
		methods = strings.Join(e.Methods, "|")
	}
	parts := []string{e.ID}
	if about != "" {
		parts = append(parts, fault.Shorten(about, maxAbout))
	}
	where := methods + " " + e.Host
	if e.Mutating {
		where += " (mutating)"
	}
	parts = append(parts, where)
	if len(e.Required) > 0 {
		parts = append(parts, "needs "+strings.Join(e.Required, ", "))
	}
	if e.Secret != "" {
		parts = append(parts, "secret "+e.Secret)
	}
	if t := tool.String(); t != "" {
		parts = append(parts, t)
	}
	parts = append(parts, e.VerifiedNote())
	if drift := e.DriftNote(); drift != "" {
		parts = append(parts, "drift: "+drift)
	}
	if e.Index != "" {
		parts = append(parts, "indexed: "+recallName)
	}
	return strings.Join(parts, " - ")
}

func presentSecrets(l *api.SecretList) string {
	var lines []string
	for _, s := range l.Secrets {
		lines = append(lines, fmt.Sprintf("%s - headers %s - hosts %s", s.Name, strings.Join(s.Headers, ", "), strings.Join(s.AllowedHosts, ", ")))
	}
	switch {
	case !l.Available && l.Reason != "":
		lines = append(lines, "Credentials cannot be used now: "+l.Reason)
	case !l.Available:
		lines = append(lines, "Credentials cannot be used now.")
	case len(lines) == 0:
		lines = append(lines, "No credentials are stored. Only a person can add one.")
	}
	return strings.Join(lines, "\n")
}

func presentReload(m *api.Manifest, marks map[string]mark) string {
	damaged := 0
	for _, e := range m.Wrappers {
		if e.Damaged != "" {
			damaged++
		}
	}
	s := fmt.Sprintf("Revision %d: %s", m.Revision, count(len(m.Wrappers), "wrapper"))
	states := map[toolState]int{}
	for _, t := range marks {
		states[t.state]++
	}
	if n := states[shown]; n > 0 {
		s += ", " + count(n, "tool")
	}
	if n := states[overCap]; n > 0 {
		s += fmt.Sprintf(", %d over the cap of tools", n)
	}
	if n := states[quarantined]; n > 0 {
		s += fmt.Sprintf(", %d quarantined as tools (wrap_list says why)", n)
	}
	if damaged > 0 {
		s += fmt.Sprintf(", %d damaged (wrap_list names them)", damaged)
	}
	return s + "."
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// toolNote is what the answer to a save says about the wrapper as a tool; empty
// when it is none.
func (s *Server) toolNote(t mark, r *api.ChangeResult) string {
	switch t.state {
	case shown:
		return "tool: " + t.name + " (clients that do not refresh their tool list: call it with wrap_run)"
	case overCap:
		return fmt.Sprintf("warning: TOOL_OVER_CAP: not in the tool list, which has its %s already (call it with wrap_run; a person can raise its priority or HB_WRAP_MAX_TOOLS)",
			count(s.tools.limit, "generated tool"))
	case quarantined:
		if slices.ContainsFunc(r.Warnings, func(w api.Warning) bool { return w.Code == "TOOL_QUARANTINED" }) {
			return "" // the daemon has said it
		}
		return "warning: TOOL_QUARANTINED: not in the tool list: " + t.reason + " (call it with wrap_run)"
	case disabled:
		return "warning: TOOLS_DISABLED: no wrapper is a tool of its own here, HB_WRAP_MAX_TOOLS is 0 (call it with wrap_run)"
	}
	return ""
}
