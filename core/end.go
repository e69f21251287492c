package reprise

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// Completion is the answer to keep.
type Completion struct {
	Payload []byte // kept as it is; the caller may reuse it after Complete

	// DiscardEffects keeps the answer of an Atomic attempt and undoes its effects.
	DiscardEffects bool
}

// CompleteResult says what became of a completion, and so which response the client gets.
type CompleteResult struct {
	Status  CompleteStatus
	Payload []byte // of Superseded: the answer that was kept instead; nobody may modify it
	Err     error  // why it is not Recorded; nil where the store answered
}

// Complete ends the attempt and keeps its answer. Call it before the response leaves: the ending says which one may.
// It is bounded by Config.CompleteTimeout; a completion that the store could not take by then is repeated in the background
// while the lease is kept, until the store has a definite answer or the engine closes. The error is [ErrInvalid], for an
// attempt that was ended before.
func (a *Attempt) Complete(c Completion) (CompleteResult, error) {
	if err := a.resolve(); err != nil {
		return CompleteResult{}, err
	}
	ctx := a.end()
	r := CompleteRequest{ID: a.id, Owner: a.owner, Payload: c.Payload, Retention: a.retention, DiscardEffects: c.DiscardEffects}
	err := a.insist(ctx, a.completion(r))
	switch {
	case err == nil:
		a.conclude(EventCompleted, nil)
		return CompleteResult{Status: Recorded}, nil
	case a.atomic:
		a.conclude(EventUnrecorded, err)
		return CompleteResult{Status: atomicStatus(err), Err: err}, nil
	case errors.Is(err, ErrLeaseLost):
		return a.completeLost(ctx, r), nil
	default:
		return a.completeLater(r, err), nil
	}
}

// Release ends the attempt and forgets its claim, so that the next request runs. Call it before the response leaves. It is
// bounded and repeated as Complete is; an error other than [ErrInvalid] says that the release goes on in the background, or, where
// repeating is of no use, that the claim lapses.
func (a *Attempt) Release() error {
	if err := a.resolve(); err != nil {
		return err
	}
	e := a.engine
	err := a.insist(a.end(), a.release)
	f, _ := classify(err)
	switch {
	case err == nil:
		a.released()
	case a.atomic || !f.repeatEnd:
		a.finish()
	default:
		go func() {
			if a.insist(e.base, a.bounded(a.release)) != nil {
				a.finish()
				return
			}
			a.released()
		}()
	}
	return err
}

func (a *Attempt) release(ctx context.Context) error {
	return a.engine.store.release(ctx, a.id, a.owner)
}

// released ends an attempt whose claim is forgotten.
func (a *Attempt) released() {
	if a.stray {
		a.engine.also()
		go func() {
			defer a.engine.leave()
			_ = a.releaseStray()
		}()
	}
	a.conclude(EventReleased, nil)
}

// completion is the operation that r asks for.
func (a *Attempt) completion(r CompleteRequest) func(context.Context) error {
	return func(ctx context.Context) error { return a.engine.store.complete(ctx, r) }
}

// completeLost finds out what became of the operation after the store called the lease lost: the claim of the same owner, without
// takeover, tells who has it now.
func (a *Attempt) completeLost(ctx context.Context, r CompleteRequest) CompleteResult {
	a.observeLoss()
	var who ClaimResult
	err := a.insist(ctx, func(ctx context.Context) (err error) {
		who, err = a.engine.store.claim(ctx, a.claimRequest(false))
		return err
	})
	if err == nil && who.Outcome == Claimed { // the record itself was lost, and is ours anew
		err = a.insist(ctx, a.completion(r))
		if err == nil {
			a.conclude(EventCompleted, nil)
			return CompleteResult{Status: Recorded}
		}
	}
	if err != nil {
		return a.completeLater(r, err)
	}
	status := lostStatus[who.Outcome]
	if status == Unrecorded {
		a.observe(EventUnrecorded, ErrLeaseLost)
	}
	a.finish()
	return CompleteResult{Status: status, Payload: who.Payload, Err: ErrLeaseLost}
}

// completeLater gives the response free, unrecorded, and goes on completing where that is of use.
func (a *Attempt) completeLater(r CompleteRequest, err error) CompleteResult {
	a.observe(EventUnrecorded, err)
	if f, _ := classify(err); !f.repeatEnd {
		a.finish()
		return CompleteResult{Status: Unrecorded, Err: err}
	}
	r.Payload = bytes.Clone(r.Payload)
	go func() {
		switch err := a.insist(a.engine.base, a.bounded(a.completion(r))); {
		case err == nil:
			a.conclude(EventCompleted, nil)
		case errors.Is(err, ErrLeaseLost):
			a.observeLoss()
			a.finish()
		default:
			a.finish()
		}
	}()
	return CompleteResult{Status: Unrecorded, Err: err}
}

// insist repeats a completion or release until it succeeds, ctx ends, or repeating is of no use. What an Atomic store has
// not settled by itself, repeating does not settle.
func (a *Attempt) insist(ctx context.Context, operation func(context.Context) error) error {
	for wait := firstPause; ; wait = min(4*wait, longestPause) {
		err := operation(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrLeaseLost) { // which is an answer
			a.observe(EventStoreError, err)
		}
		if f, _ := classify(err); !f.repeatEnd || a.atomic || !pause(ctx, wait) {
			return err
		}
	}
}

// bounded gives each try of an operation in the background a deadline and the values of the request.
//
//nolint:contextcheck // it inherits
func (a *Attempt) bounded(operation func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, a.engine.cfg.CompleteTimeout)
		defer cancel()
		return operation(&callContext{Context: ctx, values: a.values})
	}
}

// releaseLater gives up a claim that nobody runs: it is forgotten in the background, and once more when the last of its
// tries has arrived. The bid gets another owner for it, so that a claim that it makes later, as one that waits does, is
// not released with this one.
func (b *bid) releaseLater() {
	e, given := b.engine, newAttempt(b)
	b.owner = NewOwner()
	e.also()
	go func() {
		defer e.leave()
		if given.insist(e.base, given.bounded(given.release)) == nil && given.releaseStray() == nil {
			given.observe(EventReleased, nil)
		}
		e.waitroom.wake(given.id)
	}()
}

// releaseStray forgets what a try of a claim that is still on its way may yet write. A claim's budget from now it has
// arrived; a closing engine does not wait for it.
func (a *Attempt) releaseStray() error {
	arrived := time.NewTimer(a.engine.cfg.ClaimTimeout)
	defer arrived.Stop()
	select {
	case <-arrived.C:
	case <-a.engine.closing:
	}
	return a.insist(a.engine.base, a.bounded(a.release))
}
