package reprise

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// subject is a call to Begin as far as its events and counts, and those of its attempt,
// tell of it.
type subject struct {
	engine   *Engine
	id       store.ID
	policy   store.Policy
	tally    *tally
	scopeSum [6]byte         // the start of its SHA-256; zero where no observer wants it
	began    time.Duration   // by the monotonic clock
	waited   time.Duration   // for the attempt of another to end
	values   context.Context // of the request, for its values only: its end is not the attempt's
}

// call is one call to Begin: an operation, and the owner that would run it. Most calls
// end in a result and not in a claim, so a call stays on the stack; an [Attempt] is made
// of one that was granted.
type call struct {
	subject
	owner       store.Owner
	fingerprint store.Fingerprint
	description string
	maxAttempts int
	failOpen    bool
	transacts   bool     // see Operation.Transactional
	waiting     bool     // for the attempt of another to end
	seen        Outcome  // of the key, without a definite result of the store: InProgress, Mismatch, or zero
	scope       uint64   // see ClaimRequest.Scope
	around      *Attempt // whose handler began this one, nil for none
}

// scopeSeed makes the scopes of [store.ClaimRequest] unpredictable outside of this
// process.
var scopeSeed = maphash.MakeSeed()

func newCall(ctx context.Context, e *Engine, op *Operation, at instant) call {
	c := call{
		subject: subject{
			engine: e, id: store.DeriveID(op.Scope, op.Endpoint, op.Key), tally: e.tallies.of(op.Label), began: at.mono, values: ctx,
			policy: store.Policy{Label: op.Label, AtMostOnce: op.Preset == AtMostOnce, Retention: op.Retention, Horizon: op.Horizon},
		},
		owner: store.NewOwner(), fingerprint: op.Fingerprint, maxAttempts: op.MaxAttempts, failOpen: op.FailOpen,
		transacts: op.Transactional, scope: maphash.String(scopeSeed, op.Scope),
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
func (s *subject) observe(e Event) {
	if o := &s.engine.observing; o.wants(&e) {
		s.describe(&e)
		o.notify(s.values, e)
	}
}

// answer counts the outcome of a call, and notifies the observer with event, which has
// that outcome. It is the last thing that Begin does.
func (s *subject) answer(event Event, a *Attempt) {
	s.tally.outcome(event.Outcome)
	event.Counted, event.WaitTime = true, s.waited
	if a != nil {
		event.Attempt, event.Fence, event.Err = a.number, a.fence, a.claimErr
	}
	o := &s.engine.observing
	if !o.wants(&event) {
		return
	}
	s.describe(&event)
	event.ClaimTime = event.Elapsed - event.WaitTime
	if a != nil {
		a.started = s.began + event.Elapsed
	}
	o.notify(s.values, event)
}

// describe fills in whom an event concerns.
func (s *subject) describe(e *Event) {
	e.ID, e.Label, e.Elapsed = s.id, s.policy.Label, sinceStart()-s.began
	if s.engine.cfg.Observer != nil {
		e.Scope = hex.EncodeToString(s.scopeSum[:])
	}
}

// Result is the result of [Engine.Begin].
type Result struct {
	Outcome Outcome
	Attempt *Attempt // of Claimed and Unprotected: run it, and end it by Complete or Release
	Payload []byte   // of Replayed; it must not be modified

	// Remaining, of InProgress, is the rest of the other attempt's lease, from the store. It
	// is zero where the store was not asked, because the attempt runs in this process or
	// another call asked a moment ago.
	Remaining time.Duration

	unread subject // of Replayed, where Read is to be called
}

// Read counts a Replayed result of an operation with Operation.Reads, and notifies the
// observer. Call it once, from the goroutine of the request, which Close does not wait
// for; a second call, and one for another result, has no effect. The annotation that the
// payload has becomes that of the [Event]. An err says that the payload is unreadable:
// then the outcome becomes Corrupt, and the error wraps [store.ErrCorrupt].
func (r *Result) Read(annotation string, err error) error {
	s := r.unread
	if r.unread = (subject{}); s.engine == nil {
		return err
	}
	if err == nil {
		s.answer(Event{Outcome: Replayed, Annotation: annotation}, nil)
		return nil
	}
	if !errors.Is(err, store.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	*r = Result{Outcome: Corrupt}
	s.observe(Event{Kind: EventStoreError, Err: err})
	s.answer(Event{Outcome: Corrupt, Err: err}, nil)
	return err
}
