package api

import (
	"cmp"
	"slices"
)

// ToolRanks is the place of each tool under a client's cap, from 1: higher
// priority first, then by id. What is hidden, quarantined or damaged has none.
func (m *Manifest) ToolRanks() map[string]int {
	var tools []ManifestEntry
	for _, w := range m.Wrappers {
		if w.ExposeAsTool && w.Quarantined == "" && w.Damaged == "" {
			tools = append(tools, w)
		}
	}
	slices.SortStableFunc(tools, func(a, b ManifestEntry) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	ranks := map[string]int{}
	for i, w := range tools {
		ranks[w.ID] = i + 1
	}
	return ranks
}
