package reprise

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// call is one call to Begin: an operation, and the owner that would run it. Most calls
// end in a result and not in a claim, so a call stays on the stack; an [Attempt] is made
// of one that was granted.
type call struct {
	engine      *Engine
	id          store.ID
	owner       store.Owner
	fingerprint store.Fingerprint
	policy      store.Policy
	description string
	maxAttempts int
	failOpen    bool
	transacts   bool    // see Operation.Transactional
	waiting     bool    // for the attempt of another to end
	seen        Outcome // of the key, without a definite result of the store: InProgress, Mismatch, or zero
	tally       *tally
	scope       uint64          // see ClaimRequest.Scope
	scopeSum    [6]byte         // the start of its SHA-256; zero where no observer wants it
	began       time.Duration   // by the monotonic clock
	values      context.Context // of the request, for its values only: its end is not the attempt's
	around      *Attempt        // whose handler began this one, nil for none
}

// scopeSeed makes the scopes of [store.ClaimRequest] unpredictable outside of this
// process.
var scopeSeed = maphash.MakeSeed()

func newCall(ctx context.Context, e *Engine, op *Operation, at instant) call {
	c := call{
		engine: e, id: store.DeriveID(op.Scope, op.Endpoint, op.Key), owner: store.NewOwner(), fingerprint: op.Fingerprint,
		policy:      store.Policy{Label: op.Label, AtMostOnce: op.Preset == AtMostOnce, Retention: op.Retention, Horizon: op.Horizon},
		maxAttempts: op.MaxAttempts, failOpen: op.FailOpen, transacts: op.Transactional, tally: e.tallies.of(op.Label),
		scope: maphash.String(scopeSeed, op.Scope), began: at.mono, values: ctx,
	}
	if op.Description != "" {
		c.description = strings.Clone(bounds.Printable(op.Description, store.MaxDescription))
	}
	if e.cfg.Observer != nil {
		sum := sha256.Sum256([]byte(op.Scope))
		copy(c.scopeSum[:], sum[:])
	}
	return c
}

func (c *call) claimRequest(takeover bool) store.ClaimRequest {
	return store.ClaimRequest{
		ID: c.id, Owner: c.owner, Fingerprint: c.fingerprint, Policy: c.policy, Description: c.description, Scope: c.scope,
		Lease: c.engine.cfg.Lease, Takeover: takeover, MaxAttempts: c.maxAttempts, Waiting: c.waiting,
	}
}

// hasValues reports whether the store may find anything in the context of the request.
// Frameworks whose requests have no values pass the background.
func (c *call) hasValues() bool {
	return !c.engine.store.ignoresValues && c.values != context.Background()
}

// detached returns the context of work after the request: the values that Config.Detach
// copies. It is called while the request lives.
func (c *call) detached() (ctx context.Context) {
	ctx = context.Background()
	detach := c.engine.cfg.Detach
	if detach == nil {
		return ctx
	}
	defer func() { _ = recover() }() // then there are no values
	if copied := detach(c.values); copied != nil {
		ctx = context.WithoutCancel(copied)
	}
	return ctx
}

// observe notifies the observer, with the values of the request, of an event of the call.
// It is called by the request's goroutine.
func (c *call) observe(e Event) {
	if o := &c.engine.observing; o.wants(&e) {
		c.describe(&e)
		o.notify(c.values, e)
	}
}

// answer counts the outcome of a call, and notifies the observer with event, which has
// the fields that only Begin knows. It is the last thing that Begin does.
func (c *call) answer(outcome Outcome, a *Attempt, event Event) {
	c.tally.outcome(outcome)
	event.Outcome, event.Counted = outcome, true
	if a != nil {
		event.Attempt, event.Fence, event.Err = a.number, a.fence, a.claimErr
	}
	o := &c.engine.observing
	if !o.wants(&event) {
		return
	}
	c.describe(&event)
	event.ClaimTime = event.Elapsed - event.WaitTime
	if a != nil {
		a.started = c.began + event.Elapsed
	}
	o.notify(c.values, event)
}

// describe fills in whom an event concerns.
func (c *call) describe(e *Event) {
	e.ID, e.Label, e.Elapsed = c.id, c.policy.Label, sinceStart()-c.began
	if c.engine.cfg.Observer != nil {
		e.Scope = hex.EncodeToString(c.scopeSum[:])
	}
}
