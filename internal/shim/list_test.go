package shim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

var someWrappers = []api.ManifestEntry{
	{ID: "broken", Damaged: "checksum differs"},
	{
		ID: "dummyjson.products.search", Name: "Product search", Description: "Search the DummyJSON product catalogue.", Method: "GET", Host: "dummyjson.com",
		Required: []string{"query"}, Verified: "2026-11-30T10:00:00Z",
	},
	{ID: "orders.create", Name: "Create order", Method: "POST", Host: "api.example.com", Required: []string{"customer_id", "items"}, Secret: "orders-key", Mutating: true},
	{ID: "weather", Method: "GET", Methods: []string{"GET", "POST"}, Host: "api.example.com", Mutating: true, Description: strings.Repeat("long ", 60) + "\nsecond line"},
}

func TestPresentList(t *testing.T) {
	search := "dummyjson.products.search - Search the DummyJSON product catalogue. - GET dummyjson.com - needs query - verified 2026-11-30"
	orders := "orders.create - Create order - POST api.example.com (mutating) - needs customer_id, items - secret orders-key - never verified"
	weather := "weather - " + strings.Repeat("long ", 23) + "long… - GET|POST api.example.com (mutating) - never verified"
	tests := map[string]struct {
		query string
		limit int
		want  []string
	}{
		"all":            {"", 100, []string{"broken - DAMAGED, cannot run: checksum differs", search, orders, weather}},
		"at the limit":   {"", 4, []string{"broken - DAMAGED, cannot run: checksum differs", search, orders, weather}},
		"over the limit": {"", 3, []string{"broken - DAMAGED, cannot run: checksum differs", search, orders, "... and 1 more: narrow with query, or raise limit"}},
		"by id":          {"BROKEN", 100, []string{"broken - DAMAGED, cannot run: checksum differs"}},
		"by name":        {"create ORDER", 100, []string{orders}},
		"by description": {" catalogue", 100, []string{search}},
		"by host":        {"api.example", 1, []string{orders, "... and 1 more: narrow with query, or raise limit"}},
		"no match":       {"zebra", 100, []string{`None of 4 wrappers has "zebra" in its id, name, description or host.`}},
	}
	for name, tt := range tests {
		if d := cmp.Diff(strings.Join(tt.want, "\n"), presentList(someWrappers, nil, tt.query, tt.limit)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	drifted := []api.ManifestEntry{{ID: "p", Name: "Prices", Method: "GET", Host: "h.test", Verified: "2026-10-01T10:00:00Z", Stale: true, Drift: []api.Drift{{Field: "Price", Since: "2026-09-30T08:00:00Z"}}}}
	if got, want := presentList(drifted, nil, "", 100), "p - Prices - GET h.test - verified 2026-10-01 (stale) - drift: Price empty since 2026-09-30"; got != want {
		t.Errorf("drift: %q", got)
	}
	if got, want := presentList(nil, nil, "", 100), "No wrappers are saved. Make one: wrap_derive, then wrap_create."; got != want {
		t.Errorf("empty: %q", got)
	}
}

func TestPresentSecrets(t *testing.T) {
	key := api.Secret{Name: "orders-key", Headers: []string{"Authorization"}, AllowedHosts: []string{"api.example.com", "api2.example.com"}}
	line := "orders-key - headers Authorization - hosts api.example.com, api2.example.com"
	tests := map[string]struct {
		l    api.SecretList
		want string
	}{
		"one":         {api.SecretList{Secrets: []api.Secret{key}, Available: true}, line},
		"none":        {api.SecretList{Available: true}, "No credentials are stored. Only a person can add one."},
		"unavailable": {api.SecretList{Reason: "no keyring"}, "Credentials cannot be used now: no keyring"},
		"locked":      {api.SecretList{Secrets: []api.Secret{key}}, line + "\nCredentials cannot be used now."},
	}
	for name, tt := range tests {
		if d := cmp.Diff(tt.want, presentSecrets(&tt.l)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestPresentReload(t *testing.T) {
	if got, want := presentReload(&api.Manifest{Revision: 9, Wrappers: someWrappers}, nil), "Revision 9: 4 wrappers, 1 damaged (wrap_list names them)."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
