package shim

import (
	"fmt"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// maxAbout is how many characters of a description a line of the list has. The
// list is read whole, again and again; wrap_get has the rest.
const maxAbout = 120

// presentList is one line for each wrapper that matches query:
//
//	id - what it does - METHOD host - needs a, b - secret NAME - verified 2026-11-30
func presentList(all []api.ManifestEntry, query string, limit int) string {
	if len(all) == 0 {
		return "No wrappers are saved. Make one: wrap_derive, then wrap_create."
	}
	query = strings.ToLower(strings.TrimSpace(query))
	var lines []string
	matched := 0
	for _, e := range all {
		if !matches(e, query) {
			continue
		}
		if matched++; len(lines) < limit {
			lines = append(lines, listLine(e))
		}
	}
	if matched == 0 {
		return fmt.Sprintf("None of %d wrappers has %q in its id, name, description or host.", len(all), query)
	}
	if more := matched - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("... and %d more: narrow with query, or raise limit", more))
	}
	return strings.Join(lines, "\n")
}

func matches(e api.ManifestEntry, query string) bool {
	for _, s := range []string{e.ID, e.Name, e.Description, e.Host} {
		if strings.Contains(strings.ToLower(s), query) {
			return true
		}
	}
	return false
}

func listLine(e api.ManifestEntry) string {
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
	return strings.Join(append(parts, verified(e.Verified)), " - ")
}

// verified shows the day: the list is about "lately" or "long ago".
func verified(at string) string {
	if at == "" {
		return "never verified"
	}
	return "verified " + at[:min(len(at), len("2006-01-02"))]
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

func presentReload(m *api.Manifest) string {
	damaged := 0
	for _, e := range m.Wrappers {
		if e.Damaged != "" {
			damaged++
		}
	}
	s := fmt.Sprintf("Revision %d: %d wrappers", m.Revision, len(m.Wrappers))
	if len(m.Wrappers) == 1 {
		s = fmt.Sprintf("Revision %d: 1 wrapper", m.Revision)
	}
	if damaged > 0 {
		s += fmt.Sprintf(", %d damaged (wrap_list names them)", damaged)
	}
	return s + "."
}
