package reprise

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

const (
	claimTries  = 4 // of one claim, within its budget
	claimRounds = 4 // of shared claims that a call joins before it asks alone
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
	defer func() { _ = recover() }() // then there are no values
	if copied := c.engine.cfg.Detach(c.values); copied != nil {
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
	s.tally.outcomes[event.Outcome].Add(1)
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

// look asks the table of this process, then the claims that are in flight already, and
// then the store. It begins at the given instant.
func (c *call) look(at instant) (Result, error) {
	e := c.engine
	budget := e.claiming.context(at.mono)
	for round := 1; round <= claimRounds; round++ {
		outcome, claim, leads := e.table.join(c)
		switch {
		case outcome != 0:
			return Result{Outcome: outcome}, nil
		case leads:
			return c.lead(budget, claim, at)
		}
		if err := c.await(budget, claim); err != nil {
			c.seen = InProgress
			return Result{}, err
		}
		if res, ok := claim.answerTo(c, round); ok {
			return res, nil
		}
		switch {
		case claim.err == nil:
			c.seen = InProgress // or something else that another call found
			continue
		case budget.Err() != nil:
			return Result{}, claim.err
		}
		break // each is on its own
	}
	res, err := c.claim(budget, now())
	res, turnedAway := e.table.add(res)
	if turnedAway != nil {
		turnedAway.discard()
	}
	return res, err
}

// lead claims for this call and for those that join it meanwhile.
//
//nolint:contextcheck // what a claim that is turned away leaves behind does not end with it
func (c *call) lead(budget context.Context, claim *sharedClaim, at instant) (Result, error) {
	published := false
	defer func() {
		if !published { // the store or the observer ended the goroutine
			c.engine.table.publish(claim, Result{}, errNoReturn)
		}
	}()
	res, err := c.claim(budget, at)
	published = true
	res, turnedAway := c.engine.table.publish(claim, res, err)
	if turnedAway != nil {
		turnedAway.discard()
	}
	return res, err
}

// await waits for the result of a claim that another call leads, within the budget of
// this one.
func (c *call) await(budget context.Context, claim *sharedClaim) error {
	select {
	case <-claim.done:
		return nil
	case <-budget.Done():
		select {
		case <-claim.done: // both are ready: prefer the result
			return nil
		default:
			return fmt.Errorf("%w: the claim of a simultaneous duplicate got no result within %v", store.ErrUnavailable, c.engine.cfg.ClaimTimeout)
		}
	}
}

// claim asks the store, from sent on, until it has a definite result, the budget is used
// up, or asking again is of no use:
//
//	the last try      the tries before it       the call
//	claimed           none may hold the key     runs
//	claimed           one may still arrive      runs, and is released twice: see Attempt.late
//	another result                              returns it
//	failed            all were unreachable      fails, or runs unprotected if it fails open
//	failed            the store was reached     fails
//
// Where one of the tries may hold the key and the call does not run by it, the key is
// released in the background. The table of failures says what each error means.
//
//nolint:contextcheck // what the claim leaves behind does not end with it
func (c *call) claim(ctx context.Context, sent instant) (res Result, err error) {
	returned := false
	defer func() {
		if !returned { // the store or the observer ended the goroutine
			c.releaseLater(errNoReturn)
		}
	}()
	g, tried, err := c.ask(ctx, sent)
	granted := err == nil && g.Outcome == store.Claimed
	if tried.mayHold && !granted {
		c.releaseLater(err)
	}
	switch {
	case granted:
		res, err = c.start(g, tried.mayHold)
	case err == nil:
		res = Result{Outcome: Outcome(g.Outcome), Payload: g.Payload, Remaining: g.Remaining}
	case tried.unreachable && c.failOpen && c.seen == 0:
		res, err = c.startUnprotected(err)
	}
	returned = true
	return res, err
}

// ask returns the result of the last try, and the failures of all joined: whether one of
// them may hold the key, and whether all of them were unreachable.
//
//nolint:contextcheck // a callContext inherits
func (c *call) ask(ctx context.Context, sent instant) (g grant, tried failure, err error) {
	if c.hasValues() {
		ctx = &callContext{Context: ctx, values: c.values}
	}
	tried.unreachable = true
	for try := 1; ; try++ {
		if g, err = c.claimOnce(ctx, sent); err == nil {
			return g, tried, nil
		}
		c.observe(Event{Kind: EventStoreError, Err: err})
		f, _ := classify(err)
		tried.mayHold = tried.mayHold || f.mayHold
		tried.unreachable = tried.unreachable && f.unreachable
		if !f.repeatClaim || try == claimTries || !pause(ctx, firstPause<<(2*(try-1))) {
			return g, tried, err
		}
		sent = now()
	}
}

// claimOnce asks the store once, and renews its claim if too little of the lease is left
// to run on. The lease it is granted counts from sent, which is not after the call.
func (c *call) claimOnce(ctx context.Context, sent instant) (grant, error) {
	e := c.engine
	r, err := e.store.claim(ctx, c.claimRequest(true))
	if err != nil {
		return grant{}, err
	}
	g := grant{ClaimResult: r}
	if r.Outcome != store.Claimed {
		return g, nil
	}
	g.count(sent, min(r.Remaining, e.cfg.Lease))
	if !now().reached(g.deadline) {
		return g, nil // enough of the lease is left to run on
	}

	sent = now()
	statuses, err := e.store.renew(ctx, []store.RenewRequest{{ID: c.id, Owner: c.owner, Lease: e.cfg.Lease}})
	if err != nil {
		return grant{}, fmt.Errorf("%w: claimed, but the renewal failed: %v", errReached, err) //nolint:errorlint // whatever it was, the claim is held
	}
	g.count(sent, e.cfg.Lease)
	if statuses[0] != store.Renewed || now().reached(g.deadline) {
		return grant{}, fmt.Errorf("%w: claimed, but the lease ran out before it was renewed", errReached)
	}
	return g, nil
}

// grant is a claim that the store granted, and how long to rely on its lease.
type grant struct {
	store.ClaimResult
	deadline, renewAt instant
}

// count sets until when a lease that was asked for at sent is relied on, and when it is
// to be renewed.
func (g *grant) count(sent instant, lease time.Duration) {
	g.deadline, g.renewAt = sent.add(localDeadline(lease)), renewalDue(sent, lease)
}

// start makes the attempt of a call that was granted. A claim for which the store has no
// transaction is released; late says that an earlier try of it may still arrive.
func (c *call) start(g grant, late bool) (Result, error) {
	e, a := c.engine, newAttempt(c)
	a.late = late
	if c.transacts {
		run, tx, err := e.store.transaction(&a.run, a.id, a.owner)
		if err != nil {
			c.observe(Event{Kind: EventStoreError, Err: err})
			c.releaseLater(err)
			return Result{}, err
		}
		a.tx = &transaction{tx, run}
	}
	a.number, a.fence = g.Attempt, g.Fence
	if !e.renewer.add(e.base, a, g.deadline, g.renewAt, e.cfg.runUntil()) { // Close gave up while the claim was on its way
		a.releaseUnrun()
		return Result{}, store.ErrClosed
	}
	return Result{Outcome: Claimed, Attempt: a}, nil
}

// startUnprotected starts an attempt without a claim: the store could not be reached,
// with err. Only the table of this process excludes others.
func (c *call) startUnprotected(err error) (Result, error) {
	a := newAttempt(c)
	a.unprotected, a.claimErr = true, err
	if !c.engine.renewer.add(c.engine.base, a, never, never, c.engine.cfg.runUntil()) {
		return Result{}, store.ErrClosed
	}
	return Result{Outcome: Unprotected, Attempt: a}, nil
}

// discard ends an attempt that the table turned away. The call to Begin continues without
// it.
func (a *Attempt) discard() {
	if a.unprotected {
		a.engine.renewer.remove(a)
	} else {
		a.releaseUnrun() // its claim was granted
	}
}

// releaseUnrun releases a granted attempt that will not run.
func (a *Attempt) releaseUnrun() {
	a.unrun = true
	a.engine.work.retain() // the release ends the attempt, and Begin ends too
	_ = a.Release()        // it continues in the background if necessary
}
