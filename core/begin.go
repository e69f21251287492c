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
func (a *Attempt) begin(ctx context.Context) (Result, error) {
	res, err := a.look(a.began) //nolint:contextcheck // bounded by the engine, not by its client
	if err == nil && res.Outcome == InProgress && a.op.Wait > 0 {
		res, err = a.wait(ctx)
	}
	if err == nil && res.Outcome != Claimed {
		a.observe(outcomeEvents[res.Outcome], nil)
	}
	return res, err
}

// look asks the table of this process, and then the store. It begins at the given instant.
func (a *Attempt) look(at instant) (Result, error) {
	if outcome := a.engine.flights.find(a.id, a.op.Fingerprint); outcome != 0 {
		return Result{Outcome: outcome}, nil
	}
	return a.claim(at)
}

// claim asks the store until it has a definite answer, the budget is used up, or asking again is of no use. A claim that
// may be written without anybody running it is released in the background.
func (a *Attempt) claim(sent instant) (Result, error) {
	e := a.engine
	ctx := a.call(&e.claiming, sent)
	mayHold := false
	for try := 1; ; try++ {
		g, err := a.claimOnce(ctx, sent)
		if err == nil && g.Outcome == Claimed {
			a.stray = mayHold // by a try before this one
			return a.start(g)
		}
		again := false
		if err != nil {
			a.observe(EventStoreError, err)
			f, _ := classify(err)
			mayHold = mayHold || f.mayHold
			again = f.repeatClaim && try < claimTries && pause(ctx, firstPause<<(2*(try-1)))
			sent = now()
		}
		if !again {
			if mayHold {
				a.releaseLater()
			}
			return Result{Outcome: g.Outcome, Payload: g.Payload}, err
		}
	}
}

// claimOnce asks the store once, and renews a claim of its own that has too little left of its lease to run on. What it is
// granted counts from sent, which is not after the call.
func (a *Attempt) claimOnce(ctx context.Context, sent instant) (grant, error) {
	e := a.engine
	r, err := e.store.claim(ctx, a.claimRequest(a.op.Preset == Recoverable))
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
	statuses, err := e.store.renew(ctx, []RenewRequest{{ID: a.id, Owner: a.owner, Lease: e.cfg.Lease}})
	if err != nil {
		return grant{}, fmt.Errorf("%w: claimed, and not renewed: %v", ErrUnknown, err) //nolint:errorlint // whatever it was, the claim is held
	}
	g.believe(sent, e.cfg.Lease)
	if statuses[0] != Renewed || now().reached(g.deadline) {
		return grant{}, fmt.Errorf("%w: claimed, and lapsed before it was renewed", ErrUnknown)
	}
	return g, nil
}

func (a *Attempt) claimRequest(takeover bool) ClaimRequest {
	return ClaimRequest{
		ID: a.id, Owner: a.owner, Fingerprint: a.op.Fingerprint,
		Lease: a.engine.cfg.Lease, Retention: a.op.Retention,
		Takeover: takeover, MaxAttempts: a.op.MaxAttempts,
	}
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
