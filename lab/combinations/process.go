package combinations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// process is a service that runs, until it crashes or is replaced.
type process struct {
	name     string
	settings settings
	guard    *protocol.Guard
	selected *protocol.Guard
	inner    *protocol.Guard
	handler  http.Handler
	faults   *faultstore.Faults
	dead     chan struct{} // closed when it crashed

	// The world's lock guards these.
	closing bool
	harmed  bool            // a fault was drawn for it
	settled map[uint64]bool // the fences of its attempts whose completion or mark had a definite result, or was given up
}

// sight is the result of a claim that reached its process.
type sight struct {
	res store.ClaimResult
	err error
}

// start starts a process for a service.
func (w *world) start(name string, options service) (*process, error) {
	p := &process{name: name, settings: settingsOf(options), dead: make(chan struct{}), settled: map[uint64]bool{}}
	inner, faults := faultstore.New(w.store)
	p.faults = faults
	s := &p.settings
	s.guard.Engine.Log = slog.New(slog.DiscardHandler)
	s.guard.Engine.Observer = reprise.Observers(s.guard.Engine.Observer, reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
		if e.End == reprise.EndDropped || e.End == reprise.EndUnknown {
			w.mu.Lock()
			defer w.mu.Unlock()
			p.settled[e.Fence] = true
		}
	}))
	if s.selected != nil {
		s.guard.Select = func(_ context.Context, r *protocol.Request) *protocol.Guard {
			if isVersion2(r) {
				return p.selected
			}
			return nil
		}
	}
	var err error
	policies := s.policies()
	p.guard, err = protocol.New(&wire{inner, w, p}, *w.complete(policies[0]))
	if w.refuses(policies[0], err) {
		return nil, err
	}
	if s.selected != nil {
		p.selected, err = p.guard.With(func(c *protocol.Config) {
			c.Select = nil
			apply(c, s.selected...)
		})
		if w.refuses(policies[1], err) {
			return nil, err
		}
	}
	if s.inner != nil {
		p.inner, err = protocol.Over(p.guard.Engine(), *w.complete(s.inner))
		if w.refuses(policies[2], err) {
			return nil, err
		}
	}
	p.handler = p.chain(w.protect, http.HandlerFunc(w.serve))
	return p, nil
}

// complete adds the blob store of the deployment to a policy.
func (w *world) complete(c *protocol.Config) *protocol.Config {
	c.Offload.Blobs = w.blobs
	return c
}

// chain puts the middlewares and the layer around the handler.
func (p *process) chain(protect Adapter, handler http.Handler) http.Handler {
	scope := func(r *http.Request) (string, error) { return r.Header.Get(scopeField), nil }
	if p.inner != nil {
		handler = protect(p.inner, scope, handler)
	}
	if p.settings.twice {
		handler = protect(p.guard, scope, handler)
	}
	handler = protect(p.guard, scope, handler)
	if layer := layers[p.settings.layer]; layer != nil {
		handler = layer(handler)
	}
	return handler
}

// policy returns the policy of the outer guard for a request.
func (p *process) policy(q *request) *protocol.Config {
	if p.selected != nil && q.version == "2" {
		return policyOf(p.selected)
	}
	return policyOf(p.guard)
}

// policyOf returns the policy of a guard with the defaults of its engine.
func policyOf(g *protocol.Guard) *protocol.Config {
	c := g.Config()
	if c.Retention == 0 {
		c.Retention = g.Engine().Config().Retention
	}
	c.Engine = g.Engine().Config()
	return &c
}

// decides returns the policy that decides about a request, nil if none does, and whether
// two do, which is refused (R51).
func (p *process) decides(q *request) (c *protocol.Config, both bool) {
	demanded := func(c *protocol.Config) bool { return q.keyed(c) || q.concerned(c) && c.Required }
	outer := p.policy(q)
	if demanded(outer) {
		c = outer
	}
	if p.inner != nil {
		if inner := policyOf(p.inner); demanded(inner) && c == nil {
			return inner, false
		} else if demanded(inner) {
			return c, q.keyed(outer)
		}
	}
	return c, false
}

// marker returns the field that marks a replay for the client of a request.
func (p *process) marker(q *request) string {
	c, _ := p.decides(q)
	if c == nil {
		c = new(protocol.Config)
	}
	return c.ControlFields().Replayed
}

// crash ends the process at once: no message that it sends arrives, and none reaches it.
func (p *process) crash() {
	close(p.dead)
	p.faults.LetGo()
	ended, end := context.WithCancel(context.Background())
	end()
	_ = p.guard.Close(ended) // its memory is given back; its claims lapse
}

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// wire is the way of a process to the store, which its crash cuts.
type wire struct {
	store.Store
	world   *world
	process *process
}

// Unwrap lets the engine find the abilities of the store.
func (n *wire) Unwrap() store.Store { return n.Store }

func (n *wire) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	res, err := store.ClaimResult{}, store.ErrUnknown // as of a store that panics
	defer func() {
		n.world.mu.Lock()
		defer n.world.mu.Unlock()
		q := ctx.Value(requestKey{}).(*request)
		q.sights = append(q.sights, sight{res, err})
	}()
	res, err = cut(n, func() (store.ClaimResult, error) { return n.Store.Claim(ctx, r) })
	return res, err
}

func (n *wire) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return cut(n, func() ([]store.RenewStatus, error) { return n.Store.Renew(ctx, rs) })
}

func (n *wire) Complete(ctx context.Context, r store.CompleteRequest) error {
	_, err := cut(n, func() (struct{}, error) { return struct{}{}, n.Store.Complete(ctx, r) })
	if err == nil || errors.Is(err, store.ErrLeaseLost) {
		n.world.mu.Lock()
		defer n.world.mu.Unlock()
		n.process.settled[r.Fence] = true
	}
	return err
}

func (n *wire) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	_, err := cut(n, func() (struct{}, error) { return struct{}{}, n.Store.Release(ctx, id, owner) })
	return err
}

func (n *wire) Unknown(ctx context.Context, r store.UnknownRequest) error {
	_, err := cut(n, func() (struct{}, error) { return struct{}{}, n.Store.Unknown(ctx, r) })
	return err
}

// cut makes a call unless the process is dead, and forgets its result if it died
// meanwhile.
func cut[T any](n *wire, call func() (T, error)) (result T, err error) {
	if n.process.isDead() {
		return result, fmt.Errorf("%w: crashed", store.ErrUnavailable)
	}
	got, err := call()
	if n.process.isDead() {
		return result, fmt.Errorf("%w: crashed", store.ErrUnknown)
	}
	return got, err
}
