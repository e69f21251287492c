package serve

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/reprise-go/reprise/conformance"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// app is what a native server serves, whatever its framework.
type app struct {
	engine      *reprise.Engine
	policy      protocol.Config
	guard       *protocol.Guard // of policy
	perEndpoint bool
	outer       bool
	effect      func(ctx context.Context, op string) error // nil: programs have no effect
	runs        runs
	log         *slog.Logger
}

// newApp makes an app and its engine, which the caller closes. The error names what of o cannot be.
func newApp(o conformance.AdapterOptions, log *slog.Logger) (*app, error) {
	engine, err := reprise.New(o.Store, o.Engine)
	if err != nil {
		return nil, err
	}
	guard, err := protocol.New(engine, o.Guard)
	if err != nil {
		return nil, err
	}
	return &app{
		engine: engine, policy: o.Guard, guard: guard, perEndpoint: o.PerEndpoint, outer: o.Outer, effect: o.Effect, log: log,
	}, nil
}

// guarded keeps the middleware of a framework: one, or where the app asks for it one per endpoint, each with a guard of its own. M
// is what the framework calls a middleware, or a handler that is behind one already.
type guarded[M any] struct {
	app  *app
	make func(*protocol.Guard) M
	one  M

	mu         sync.Mutex
	byEndpoint map[string]M
}

func newGuarded[M any](a *app, middleware func(*protocol.Guard) M) *guarded[M] {
	return &guarded[M]{app: a, make: middleware, one: middleware(a.guard), byEndpoint: make(map[string]M)}
}

// of returns the middleware for a request. An endpoint is a method and the escaped path.
func (g *guarded[M]) of(method, rawPath string) M {
	if !g.app.perEndpoint {
		return g.one
	}
	endpoint := method + " " + rawPath
	g.mu.Lock()
	defer g.mu.Unlock()
	m, made := g.byEndpoint[endpoint]
	if !made {
		policy := g.app.policy
		policy.Endpoint = endpoint
		guard, err := protocol.New(g.app.engine, policy)
		if err != nil {
			panic(err) // the policy made a guard before, and any name is an endpoint
		}
		m = g.make(guard)
		g.byEndpoint[endpoint] = m
	}
	return m
}

var errNoTenant = errors.New("the tenant header is empty")

// tenantOf is the scope of a request by the lines of its tenant header.
func tenantOf(lines []string) (string, error) {
	switch {
	case len(lines) == 0:
		return conformance.DefaultTenant, nil
	case lines[0] == "":
		return "", errNoTenant
	default:
		return lines[0], nil
	}
}
