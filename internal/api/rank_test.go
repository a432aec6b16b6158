package api_test

import (
	"maps"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// Higher priority first, then by id as bytes; what is no tool has no place.
func TestToolRanks(t *testing.T) {
	m := &api.Manifest{Wrappers: []api.ManifestEntry{
		{ID: "d.x", ExposeAsTool: true, Tool: "wrap_d_x"},
		{ID: "b.x", ExposeAsTool: true, Tool: "wrap_b_x", Priority: 10},
		{ID: "hidden", Priority: 1000},
		{ID: "a.x", ExposeAsTool: true, Tool: "wrap_a_x", Priority: 10},
		{ID: "E.x", ExposeAsTool: true, Tool: "wrap_E_x"},
		{ID: "c.x", ExposeAsTool: true, Tool: "wrap_c_x", Priority: 1000},
	}}
	want := map[string]int{"c.x": 1, "a.x": 2, "b.x": 3, "E.x": 4, "d.x": 5}
	if got := m.ToolRanks(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
