package outbound

import (
	"context"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The second net judges the address by itself, whatever the first one let by.
func TestControl(t *testing.T) {
	strict := New(Policy{}, Options{}).control("api.example.com")
	open := New(Policy{AllowPrivate: true}, Options{}).control("api.example.com")
	for _, c := range []struct {
		address        string
		strictOK, open bool
	}{
		{"93.184.216.34:443", true, true}, {"127.0.0.1:443", false, true}, {"[::1]:443", false, true},
		{"169.254.169.254:80", false, false}, {"[fe80::1%lo]:80", false, false}, {"[::ffff:10.0.0.1]:443", false, true},
		{"api.example.com:443", false, false}, {"", false, false},
	} {
		if err := strict(context.Background(), "tcp4", c.address, nil); (err == nil) != c.strictOK {
			t.Errorf("strict %s: %v", c.address, err)
		}
		if err := open(context.Background(), "tcp4", c.address, nil); (err == nil) != c.open {
			t.Errorf("open %s: %v", c.address, err)
		}
	}
	if err := strict(context.Background(), "tcp", "10.0.0.1:1", nil); !fault.Is(err, "POLICY_PRIVATE_ADDRESS") {
		t.Error(err)
	}
}
