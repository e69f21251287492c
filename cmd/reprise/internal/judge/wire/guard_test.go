package wire

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

func TestGuardPermitsLoopbackOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guard     Guard
		addresses []string
		forbidden string // the address that is refused
	}{
		"IPv4":               {addresses: []string{"127.0.0.1"}},
		"IPv6":               {addresses: []string{"::1", "127.0.0.1"}},
		"IPv4 in IPv6":       {addresses: []string{"::ffff:127.0.0.1"}},
		"elsewhere":          {addresses: []string{"192.0.2.1"}, forbidden: "192.0.2.1"},
		"also elsewhere":     {addresses: []string{"127.0.0.1", "192.0.2.1"}, forbidden: "192.0.2.1"},
		"all interfaces":     {addresses: []string{"0.0.0.0"}, forbidden: "0.0.0.0"},
		"mapped elsewhere":   {addresses: []string{"::ffff:192.0.2.1"}, forbidden: "::ffff:192.0.2.1"},
		"the caller owns it": {guard: Guard{Own: true}, addresses: []string{"192.0.2.1"}},
	} {
		c.guard.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			var list []netip.Addr
			for _, a := range c.addresses {
				list = append(list, netip.MustParseAddr(a))
			}
			return list, nil
		}
		got, err := c.guard.Resolve(t.Context(), "service.test")
		var forbidden *ForbiddenError
		switch {
		case c.forbidden == "" && (err != nil || len(got) != len(c.addresses)):
			t.Errorf("%s: %v, %v", name, got, err)
		case c.forbidden != "" && (!errors.As(err, &forbidden) || forbidden.Address.String() != c.forbidden):
			t.Errorf("%s: %v, %v, want %s refused", name, got, err, c.forbidden)
		}
	}
}

func TestGuardRefusesNamesWithoutAddress(t *testing.T) {
	t.Parallel()
	g := Guard{Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }}
	if got, err := g.Resolve(t.Context(), "service.test"); err == nil {
		t.Errorf("%v", got)
	}
}
