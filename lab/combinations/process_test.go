package combinations

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
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
	harmed  bool    // a fault was drawn for it
	sights  []sight // the results of its claims
}

// sight is the result of a claim that reached a process.
type sight struct {
	at  time.Duration
	id  store.ID
	res store.ClaimResult
	err error
}

// start starts a process for a service.
func (w *world) start(name string, options service) (*process, error) {
	p := &process{name: name, settings: settingsOf(options), dead: make(chan struct{})}
	inner, faults := faultstore.New(w.store)
	p.faults = faults
	s := &p.settings
	if s.guard.Engine.Observer == nil {
		s.guard.Engine.Observer = reprise.Observers()
	}
	if s.selected != nil {
		s.guard.Select = func(_ context.Context, r *protocol.Request) *protocol.Guard {
			if isVersion2(r) {
				return p.selected
			}
			return nil
		}
	}
	if s.inner != nil { // so that both guards meet one operation
		s.inner.Endpoint = s.guard.Endpoint
		if s.selected != nil {
			s.selected.Endpoint = s.guard.Endpoint
		}
	}
	made, err := []*protocol.Guard{}, error(nil)
	for _, cfg := range []*protocol.Config{&s.guard, s.selected, s.inner} {
		var g *protocol.Guard
		if cfg != nil {
			cfg.Offload.Blobs = w.blobs
			own := *cfg
			if len(made) == 0 {
				g, err = protocol.New(&wire{inner, w, p}, own)
			} else {
				g, err = protocol.Over(made[0].Engine(), own)
			}
			if err := w.judgeConstruction(cfg, err); err != nil {
				return nil, err
			}
		}
		made = append(made, g)
	}
	p.guard, p.selected, p.inner = made[0], made[1], made[2]
	p.handler = p.chain(http.HandlerFunc(w.serve))
	return p, nil
}

// chain puts the middlewares and the layer around the handler.
func (p *process) chain(handler http.Handler) http.Handler {
	scope := func(r *http.Request) (string, error) { return r.Header.Get(scopeField), nil }
	if p.inner != nil {
		handler = reprisehttp.Middleware(p.inner, scope)(handler)
	}
	if p.settings.twice {
		handler = reprisehttp.Middleware(p.guard, scope)(handler)
	}
	handler = reprisehttp.Middleware(p.guard, scope)(handler)
	if layer := layers[p.settings.layer]; layer != nil {
		handler = layer(handler)
	}
	return handler
}

// policy returns the policy for a request, with its defaults.
func (p *process) policy(q *request) *protocol.Config {
	g := p.guard
	if p.selected != nil && q.version == "2" {
		g = p.selected
	}
	c := g.Config()
	if c.Retention == 0 {
		c.Retention = g.Engine().Config().Retention
	}
	c.Engine = g.Engine().Config()
	return &c
}

// crash ends the process at once: nothing that it sends arrives, and nothing reaches it.
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

// saw returns the claims of an operation whose results reached the process from then on.
func (p *process) saw(id store.ID, from time.Duration) (list []sight) {
	for _, s := range slices.Backward(p.sights) {
		if s.at < from {
			break
		}
		if s.id == id {
			list = append(list, s)
		}
	}
	return list
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
	res, err := cut(n, func() (store.ClaimResult, error) { return n.Store.Claim(ctx, r) })
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.process.sights = append(n.process.sights, sight{n.world.now(), r.ID, res, err})
	return res, err
}

func (n *wire) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return cut(n, func() ([]store.RenewStatus, error) { return n.Store.Renew(ctx, rs) })
}

func (n *wire) Complete(ctx context.Context, r store.CompleteRequest) error {
	_, err := cut(n, func() (struct{}, error) { return struct{}{}, n.Store.Complete(ctx, r) })
	return err
}

func (n *wire) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	_, err := cut(n, func() (struct{}, error) { return struct{}{}, n.Store.Release(ctx, id, owner) })
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
