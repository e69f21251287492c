package wire

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// Guard decides which addresses may be dialled. Its zero value permits loopback only.
type Guard struct {
	// Own permits every address: the caller says that the service is theirs.
	Own bool

	// Lookup resolves a host name; nil is the resolver of the machine.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// ForbiddenError says that a host is not on this machine.
type ForbiddenError struct {
	Host    string
	Address netip.Addr
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s resolves to %s, which is not a loopback address; pass --i-own-this if the service is yours", e.Host, e.Address)
}

// Resolve returns the addresses to dial for host. It runs for every connection, and the
// connection goes to an address that was checked: a name that starts to resolve elsewhere
// is refused.
func (g *Guard) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addresses, err := g.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", host, err)
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("resolve %s: no address", host)
	}
	for i, a := range addresses {
		if addresses[i] = a.Unmap(); !g.Own && !addresses[i].IsLoopback() {
			return nil, &ForbiddenError{host, a}
		}
	}
	return addresses, nil
}

func (g *Guard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if g.Lookup != nil {
		return g.Lookup(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
