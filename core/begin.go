package reprise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

const (
	claimTries   = 4                     // of one claim, within its budget
	claimRounds  = 4                     // of shared claims that a call joins before it asks alone
	firstPause   = 10 * time.Millisecond // before the second try; each further one is four times as long
	longestPause = time.Second           // between tries in the background
)

// begin finds the result for the operation, counts it, and notifies the observer.
func (e *Engine) begin(ctx context.Context, op *Operation) (res Result, err error) {
	at := now()
	c := newCall(ctx, e, op, at)
	answered, returned := false, false
	defer func() { //nolint:contextcheck // the release is bounded by the engine, not by its client
		switch {
		case !answered: // the store or the observer ended the goroutine
			c.answer(Event{Outcome: Unavailable, Err: errNoReturn}, nil)
		case !returned && res.Attempt != nil: // the observer did, and no handler will run
			e.work.retain() // the attempt ends, and Begin ends too
			_ = res.Attempt.Release()
		}
	}()
	if res.Outcome = c.outcomeInside(ctx); res.Outcome == 0 {
		res, err = c.look(at) //nolint:contextcheck // bounded by the engine, not by its client
		if err == nil && res.Outcome == InProgress && op.Wait > 0 {
			waiting := sinceStart()
			res, err = c.wait(ctx, op.Scope, op.Wait)
			c.waited = sinceStart() - waiting
		}
	}
	if known, ok := c.answerUnreachable(err); ok {
		res, err = known, nil
	}
	if err != nil {
		res.Outcome = outcomeOf(err)
	}
	answered = true
	if res.Outcome == Replayed && op.Reads {
		res.unread = c.subject
	} else {
		c.answer(Event{Outcome: res.Outcome, Err: err}, res.Attempt)
	}
	returned = true
	return res, err
}

// outcomeInside returns the outcome of an operation that begins inside its own run, with
// a context of that: it would wait for itself, or take over from itself. It is zero
// anywhere else.
func (c *call) outcomeInside(ctx context.Context) Outcome {
	view, _ := AttemptFrom(ctx)
	c.around = view.a
	for a := c.around; a != nil && a.open(); a = a.around {
		switch {
		case a.engine != c.engine || a.id != c.id:
		case a.fingerprint != c.fingerprint:
			return Mismatch
		default:
			return InProgress
		}
	}
	return 0
}

// outcomeOf returns the outcome of a request that got no definite result.
func outcomeOf(err error) Outcome {
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return Corrupt
	case errors.Is(err, store.ErrInvalid):
		return Failed
	default:
		return Unavailable
	}
}

// Read counts a Replayed result of an operation with Operation.Reads, and notifies the
// observer. Call it once, from the goroutine of the request. The annotation that the
// payload has becomes that of the [Event]. An err says that the payload is unreadable:
// then the outcome becomes Corrupt, and the error wraps [store.ErrCorrupt].
func (r *Result) Read(annotation string, err error) error {
	s := r.unread
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
			e.sharedClaims.Add(1)
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
	return e.table.add(res), err
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
	return c.engine.table.publish(claim, res, err), err
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

// pause sleeps about d before the next try, and reports whether there is time for one.
func pause(ctx context.Context, d time.Duration) bool { return sleep(ctx, jitter(d)) }

// sleep reports false when ctx ends before d has passed.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// startUnprotected starts an attempt without a claim: the store could not be reached,
// with err. Only the table of this process excludes others.
func (c *call) startUnprotected(err error) (Result, error) {
	a := newAttempt(c)
	a.unprotected, a.claimErr, a.bound = true, err, &a.run
	if !c.engine.renewer.add(c.engine.base, a, never, never, c.engine.runUntil()) {
		return Result{}, store.ErrClosed
	}
	return Result{Outcome: Unprotected, Attempt: a}, nil
}

// answerUnreachable returns what a call of a policy that fails open knows of its key
// itself, where the store could not be reached with err. It is not ok where it knows
// nothing.
func (c *call) answerUnreachable(err error) (res Result, ok bool) {
	f, _ := classify(err)
	return Result{Outcome: c.seen}, c.failOpen && c.seen != 0 && f.unreachable
}

// discard ends an attempt that the table turned away. The call to Begin continues without
// it.
func (a *Attempt) discard() {
	switch {
	case a == nil:
	case a.unprotected:
		a.engine.renewer.remove(a)
	default:
		a.releaseUnrun() // its claim was granted
	}
}
