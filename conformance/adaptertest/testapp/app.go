package testapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// App is the programmable application behind a native server of any framework. Each
// server has one. It is safe for concurrent use.
type App struct {
	Log   *slog.Logger // of the server
	Limit int          // of the body of a request, by a layer outside of the middleware; 0: none
	Outer bool         // add a layer outside of the middleware that sets the fields of [NewOuter]

	OuterBody adaptertest.OuterBody // of a layer outside of the middleware that calls [App.ReadBody]; empty: there is none

	Inner *protocol.Guard // of a second middleware, inside of the first; nil: there is none

	engine      *reprise.Engine
	policy      protocol.Config
	guard       *protocol.Guard // of policy
	perEndpoint bool
	effect      func(ctx context.Context, op string) error // nil: programs have no effect
	runs        runs
}

// New returns an App and its engine, which [App.Drain] closes. The error names the
// invalid field of o.
func New(o adaptertest.Options, log *slog.Logger) (*App, error) {
	if o.Engine.Log == nil {
		o.Engine.Log = log
	}
	engine, err := reprise.New(o.Store, o.Engine)
	if err != nil {
		return nil, err
	}
	guard, err := protocol.Over(engine, o.Guard)
	if err != nil {
		return nil, err
	}
	var inner *protocol.Guard
	if o.Inner != nil {
		if inner, err = o.Inner(guard); err != nil {
			return nil, err
		}
	}
	return &App{
		Inner: inner, engine: engine, policy: o.Guard, guard: guard, perEndpoint: o.PerEndpoint, effect: o.Effect,
		Outer: o.Outer, OuterBody: o.OuterBody, Limit: o.OuterLimit, Log: log,
	}, nil
}

// Guarded holds the middleware of a framework: one, or, if the app asks for it, one for
// each endpoint with its own guard. M is the framework's type of a middleware, or of a
// handler behind one.
type Guarded[M any] struct {
	app  *App
	make func(*protocol.Guard) M
	one  M

	mu         sync.Mutex
	byEndpoint map[string]M
}

// NewGuarded returns the middleware of a framework for each guard of a.
func NewGuarded[M any](a *App, middleware func(*protocol.Guard) M) *Guarded[M] {
	return &Guarded[M]{app: a, make: middleware, one: middleware(a.guard), byEndpoint: make(map[string]M)}
}

// Of returns the middleware for a request. An endpoint is a method and the escaped path.
func (g *Guarded[M]) Of(method, rawPath string) M {
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
		guard, err := protocol.Over(g.app.engine, policy)
		if err != nil {
			panic(err) // the policy made a guard before, and any name is an endpoint
		}
		m = g.make(guard)
		g.byEndpoint[endpoint] = m
	}
	return m
}

// Report is the body of the response to GET /executions/{op}, as JSON.
func (a *App) Report(op string) []byte { return a.runs.report(op) }

var (
	errNoTenant    = errors.New("the tenant header is empty")
	errTenantsAway = fmt.Errorf("%w: tenant database: connection refused", store.ErrUnavailable)
)

// TenantOf returns the scope of a request from the lines of its tenant header.
func TenantOf(lines []string) (string, error) {
	switch {
	case len(lines) == 0:
		return adaptertest.DefaultTenant, nil
	case lines[0] == "":
		return "", errNoTenant
	case lines[0] == adaptertest.AwayTenant:
		return "", errTenantsAway
	default:
		return lines[0], nil
	}
}
