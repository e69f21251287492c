package reprise

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	claimTries   = 4                     // of one claim, within its budget
	firstPause   = 10 * time.Millisecond // before the second try; each further one is four times as long
	longestPause = time.Second           // between tries in the background
)

// begin finds the answer for the operation, and tells the observer when it is not to run it.
func (e *Engine) begin(ctx context.Context, op *Operation) (Result, error) {
	at := now()
	b := newBid(ctx, e, op, at)
	res, err := b.look(at) //nolint:contextcheck // bounded by the engine, not by its client
	if err == nil && res.Outcome == InProgress && op.Wait > 0 {
		res, err = b.wait(ctx, op.Scope, op.Wait)
	}
	if err == nil && res.Outcome != Claimed {
		b.report(Event{Kind: outcomeEvents[res.Outcome]})
	}
	return res, err
}

// look asks the table of this process, and then the store. It begins at the given instant.
func (b *bid) look(at instant) (Result, error) {
	if outcome := b.engine.flights.find(b.id, b.fingerprint); outcome != 0 {
		return Result{Outcome: outcome}, nil
	}
	return b.claim(at)
}

// claim asks the store until it has a definite answer, the budget is used up, or asking again is of no use. A claim that
// may be written without anybody running it is released in the background.
func (b *bid) claim(sent instant) (Result, error) {
	ctx := b.engine.claiming.context(sent)
	if b.hasValues() {
		ctx = &callContext{Context: ctx, values: b.values}
	}
	mayHold := false
	for try := 1; ; try++ {
		g, err := b.claimOnce(ctx, sent)
		if err == nil && g.Outcome == Claimed {
			return b.start(g, mayHold)
		}
		again := false
		if err != nil {
			b.report(Event{Kind: EventStoreError, Err: err})
			f, _ := classify(err)
			mayHold = mayHold || f.mayHold
			again = f.repeatClaim && try < claimTries && pause(ctx, firstPause<<(2*(try-1)))
			sent = now()
		}
		if !again {
			if mayHold {
				b.releaseLater()
			}
			return Result{Outcome: g.Outcome, Payload: g.Payload}, err
		}
	}
}

// claimOnce asks the store once, and renews a claim of its own that has too little left of its lease to run on. What it is
// granted counts from sent, which is not after the call.
func (b *bid) claimOnce(ctx context.Context, sent instant) (grant, error) {
	e := b.engine
	r, err := e.store.claim(ctx, b.claimRequest(b.preset == Recoverable))
	if err != nil {
		return grant{}, err
	}
	g := grant{ClaimResult: r, deadline: sent.add(r.Remaining), renewAt: never} // as it is for an Atomic claim
	var left time.Duration
	if r.Outcome == Claimed && !r.Atomic {
		g.believe(sent, min(r.Remaining, e.cfg.Lease))
		left = now().until(g.deadline)
	}
	if decide(r, left) != renewFirst {
		return g, nil
	}

	sent = now()
	statuses, err := e.store.renew(ctx, []RenewRequest{{ID: b.id, Owner: b.owner, Lease: e.cfg.Lease}})
	if err != nil {
		return grant{}, fmt.Errorf("%w: claimed, and not renewed: %v", ErrUnknown, err) //nolint:errorlint // whatever it was, the claim is held
	}
	g.believe(sent, e.cfg.Lease)
	if statuses[0] != Renewed || now().reached(g.deadline) {
		return grant{}, fmt.Errorf("%w: claimed, and lapsed before it was renewed", ErrUnknown)
	}
	return g, nil
}

// pause sleeps about d before the next try, and reports whether there is time for one.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(jitter(d))
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// jitter returns d give or take a quarter.
func jitter(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1) //nolint:gosec // nobody gains by guessing it
}
