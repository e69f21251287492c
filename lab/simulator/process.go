package simulator

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// process is a service that runs, until it crashes or is replaced.
type process struct {
	world    *world
	name     string
	settings settings
	guard    *protocol.Guard
	handler  http.Handler

	// The policies: of requests of version 2, of all others, and of a guard inside of
	// that of both, nil where there is none.
	selected, outer, inner *protocol.Config

	faults *faultstore.Faults
	dead   chan struct{} // closed when it crashed

	// The world's lock guards these.
	closing bool
	harmed  bool            // a fault was drawn for it
	paused  time.Duration   // it is stopped until then
	settled map[uint64]bool // the fences of its attempts whose completion or mark had a definite result, or was given up
	asked   uint64          // requests
	passed  uint64          // requests that no guard decided about
	counted counted
}

// sight is the result of a claim that reached its process.
type sight struct {
	res store.ClaimResult
	err error
	at  time.Duration
}

// start starts a process for a service.
func (w *world) start(name string, options service) (*process, error) {
	p := &process{world: w, name: name, settings: settingsOf(options), dead: make(chan struct{}), settled: map[uint64]bool{}, counted: newCounted()}
	var inner store.Store
	inner, p.faults = faultstore.New(w.broken(w.store))
	s := &p.settings
	s.guard.Engine.Observer = reprise.Observers(s.guard.Engine.Observer, p)
	var selected, within *protocol.Guard
	var err error
	if p.guard, err = protocol.New(&wire{inner, p}, s.guard); err != nil {
		return nil, err
	}
	p.outer = policyOf(p.guard)
	p.selected = p.outer
	if s.selected != nil {
		if selected, err = p.guard.With(func(c *protocol.Config) { apply(c, s.selected...) }); err != nil {
			return nil, err
		}
		p.selected = policyOf(selected)
	}
	p.handler = http.HandlerFunc(w.serve)
	scope := func(r *http.Request) (string, error) { return r.Header.Get(scopeField), nil }
	if s.inner != nil {
		s.inner.Engine = reprise.Config{} // it has that of the guard around
		if within, err = protocol.Over(p.guard.Engine(), *s.inner); err != nil {
			return nil, err
		}
		p.inner, p.handler = policyOf(within), reprisehttp.Middleware(within, scope)(p.handler)
	}
	around := func(g *protocol.Guard) http.Handler {
		handler := p.handler
		if s.twice {
			handler = reprisehttp.Middleware(g, scope)(handler)
		}
		return reprisehttp.Middleware(g, scope)(handler)
	}
	first, second := around(p.guard), around(cmp.Or(selected, p.guard))
	p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(versionField) == "2" {
			second.ServeHTTP(w, r)
			return
		}
		first.ServeHTTP(w, r)
	})
	return p, nil
}

// Observe implements [reprise.Observer].
func (p *process) Observe(_ context.Context, e reprise.Event) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if e.End == reprise.EndDropped || e.End == reprise.EndUnknown {
		p.settled[e.Fence] = true
	}
	p.counted.add(p.world, e)
}

// policy returns the policy of the outer guard for a request.
func (p *process) policy(q *request) *protocol.Config {
	if q.version == "2" {
		return p.selected
	}
	return p.outer
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
	switch {
	case p.inner == nil || !demanded(p.inner):
		return c, false
	case c == nil:
		return p.inner, false
	default:
		return c, q.keyed(outer)
	}
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

// awake returns when the process is not paused, or is dead. No deadline ends the wait: a
// process that does not run does not notice one.
func (p *process) awake() {
	for {
		p.world.mu.Lock()
		left := p.paused - p.world.now()
		p.world.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-time.After(left):
		case <-p.dead:
			return
		}
	}
}

// wire is the way of a process to the store, which takes time, and which its crash cuts.
type wire struct {
	store.Store
	process *process
}

// Unwrap lets the engine find the abilities of the store.
func (n *wire) Unwrap() store.Store { return n.Store }

func (n *wire) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	res, err := store.ClaimResult{}, store.ErrUnknown // as of a store that panics
	defer func() {
		n.process.world.mu.Lock()
		defer n.process.world.mu.Unlock()
		if q, ok := ctx.Value(requestKey{}).(*request); ok { // not in the background
			q.sights = append(q.sights, sight{res, err, n.process.world.now()})
		}
	}()
	res, err = pass(ctx, n, r.ID, func() (store.ClaimResult, error) { return n.Store.Claim(ctx, r) })
	return res, err
}

func (n *wire) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	return pass(ctx, n, rs[0].ID, func() ([]store.RenewStatus, error) { return n.Store.Renew(ctx, rs) })
}

func (n *wire) Complete(ctx context.Context, r store.CompleteRequest) error {
	_, err := pass(ctx, n, r.ID, func() (struct{}, error) { return struct{}{}, n.Store.Complete(ctx, r) })
	if err == nil || errors.Is(err, store.ErrLeaseLost) {
		n.process.world.mu.Lock()
		defer n.process.world.mu.Unlock()
		n.process.settled[r.Fence] = true
	}
	return err
}

func (n *wire) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	_, err := pass(ctx, n, id, func() (struct{}, error) { return struct{}{}, n.Store.Release(ctx, id, owner) })
	return err
}

func (n *wire) Unknown(ctx context.Context, r store.UnknownRequest) error {
	_, err := pass(ctx, n, r.ID, func() (struct{}, error) { return struct{}{}, n.Store.Unknown(ctx, r) })
	return err
}

// pass makes a call when the process is awake, unless it is dead or gave the call up, and
// forgets its result if it died meanwhile.
func pass[T any](ctx context.Context, n *wire, id store.ID, call func() (T, error)) (result T, err error) {
	n.process.awake()
	n.lag(id)
	switch {
	case n.process.isDead():
		return result, fmt.Errorf("%w: crashed", store.ErrUnavailable)
	case ctx.Err() != nil:
		return result, fmt.Errorf("%w: not sent", store.ErrUnavailable)
	}
	got, err := call()
	n.lag(id)
	n.process.awake()
	if n.process.isDead() {
		return result, fmt.Errorf("%w: crashed", store.ErrUnknown)
	}
	return got, err
}

// lag lets the time of a message pass. It follows from the record and the instant, so
// that messages of one instant may come in any order.
func (n *wire) lag(id store.ID) {
	if most := n.process.world.draw.lag; most > 0 {
		d := newDice(n.process.world.draw.seed^binary.BigEndian.Uint64(id[:]), uint64(n.process.world.now())) //nolint:gosec // not negative
		inTime(time.Duration(d.Int64N(int64(most))))
	}
}
