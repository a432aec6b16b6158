package outbound_test

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A client is made for one policy. Where a request may not go is known before
// anything is sent, and a name counts as every address it has.
func Example() {
	client := outbound.New(outbound.Policy{}, outbound.Options{
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.0.0.1")}, nil
		},
		Observe: func(_ context.Context, x outbound.Exchange) {
			fmt.Println("audit:", x.Tag.Kind, x.Method, x.Host, x.Status, x.Err)
		},
	})
	defer client.Close()

	for _, to := range []string{"https://169.254.169.254/latest/meta-data/", "http://api.example.com/", "https://api.example.com/items"} {
		u, err := url.Parse(to)
		if err != nil {
			panic(err)
		}
		r := outbound.NewRequest("GET", u, nil)
		r.Tag = outbound.Tag{Kind: "run", Wrapper: "items"}
		_, err = client.Send(context.Background(), r)
		fmt.Println(err)
	}
	// Output:
	// audit: run GET 169.254.169.254 0 POLICY_PRIVATE_ADDRESS
	// POLICY_PRIVATE_ADDRESS: 169.254.169.254 is link-local, where cloud metadata lives (RFC 3927)
	// audit: run GET api.example.com 0 POLICY_SCHEME
	// POLICY_SCHEME: plain http to api.example.com is not allowed
	// audit: run GET api.example.com 0 POLICY_PRIVATE_ADDRESS
	// POLICY_PRIVATE_ADDRESS: api.example.com has the address 10.0.0.1, which is private (RFC 1918)
}

// CheckURL is the part of the policy that a dry run can ask: no name is resolved.
func ExamplePolicy_CheckURL() {
	allow := outbound.Policy{Allowed: []outbound.HostPort{{Host: "nas.internal", Port: "5000", HTTP: true}}}
	for _, to := range []string{"http://nas.internal:5000/photos", "http://nas.internal/", "https://2130706433/"} {
		u, err := url.Parse(to)
		if err != nil {
			panic(err)
		}
		fmt.Println(allow.CheckURL(u))
	}
	// Output:
	// <nil>
	// POLICY_SCHEME: plain http to nas.internal is not allowed
	// POLICY_URL: host "2130706433" is a number that some systems read as an address; write a name or four decimal numbers
}
