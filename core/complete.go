package reprise

import (
	"context"
	"errors"

	"github.com/reprise-go/reprise/core/internal/text"
	"github.com/reprise-go/reprise/core/store"
)

// Completion is the answer to keep.
type Completion struct {
	Payload []byte // kept as it is; the caller may reuse it after Complete

	// DiscardEffects keeps the answer of an Atomic attempt and rolls its effects back.
	DiscardEffects bool
}

// CompleteResult says what became of a completion, and so which response the client gets.
type CompleteResult struct {
	Status  CompleteStatus
	Payload []byte // of Superseded: the answer that was kept instead; it must not be modified
	Err     error  // why it is not Recorded; nil where the store answered
}

// CompleteStatus says how an attempt ended, and so which response its client gets.
type CompleteStatus uint8

// The answers to a completion. The zero value is not one of them.
const (
	Recorded   CompleteStatus = iota + 1 // the answer is kept: send it
	Unrecorded                           // send the answer, marked: the effect is done and the record may not be
	Superseded                           // another attempt completed first: send its answer, CompleteResult.Payload
	Contested                            // another attempt runs, or may have run: 409
	RolledBack                           // Atomic: nothing was applied, a retry runs again: 503
	Undecided                            // Atomic: whether it was committed is unknown: 503
)

// lostStatus says what the claim that follows a lost lease means for the answer in hand.
// Claimed is not in it: the record itself was lost, so the completion is tried once more.
var lostStatus = [...]CompleteStatus{
	store.InProgress: Contested,
	store.Completed:  Superseded,
	store.Mismatch:   Unrecorded,
	store.Lapsed:     Contested,
}

// atomicStatus says what a failed completion of an Atomic attempt means.
func atomicStatus(err error) CompleteStatus {
	if errors.Is(err, store.ErrNotApplied) {
		return RolledBack
	}
	return Undecided
}

// Complete ends the attempt and keeps its answer. Call it before the response leaves: the
// result says which response may. It is bounded by Config.CompleteTimeout. A completion
// that the store could not take by then is repeated in the background, while the lease is
// kept, until the store has a definite answer, or refuses it and the lease has passed, or
// Config.Background.Age has passed, or the engine closes. The error is
// [store.ErrInvalid], for an attempt that was ended before.
func (a *Attempt) Complete(c Completion) (CompleteResult, error) {
	if err := a.end(stateCompleting); err != nil {
		return CompleteResult{}, err
	}
	if a.unprotected {
		a.conclude(EndUnrecorded, a.claimErr)
		return CompleteResult{Status: Unrecorded, Err: a.claimErr}, nil
	}
	ctx := a.completionContext()
	r := store.CompleteRequest{
		ID: a.id, Owner: a.owner, Payload: c.Payload, Retention: a.remembered(),
		Fingerprint: a.fingerprint, Label: a.label, Attempt: a.number, Fence: a.fence,
		DiscardEffects: c.DiscardEffects,
	}
	err := a.repeat(ctx, func(ctx context.Context) error { return a.engine.store.complete(ctx, r) })
	switch {
	case err == nil:
		a.conclude(EndRecorded, nil)
		return CompleteResult{Status: Recorded}, nil
	case a.atomic:
		status := atomicStatus(err)
		a.conclude(completeEnds[status], err)
		return CompleteResult{Status: status, Err: err}, nil
	case errors.Is(err, store.ErrLeaseLost):
		return a.completeLost(ctx, r), nil
	default:
		return a.completeLater(r, err), nil
	}
}

// completeLost finds out what became of the operation after the store called the lease
// lost: the claim of the same owner, without takeover, says who has it now.
func (a *Attempt) completeLost(ctx context.Context, r store.CompleteRequest) CompleteResult {
	if !a.lost.Swap(true) {
		a.observe(EventLeaseLost, nil)
	}
	var holder store.ClaimResult
	err := a.repeat(ctx, func(ctx context.Context) (err error) {
		holder, err = a.engine.store.claim(ctx, a.claimRequest(false))
		return err
	})
	if err == nil && holder.Outcome == store.Claimed { // the record itself was lost, and is this attempt's anew
		r.Attempt, r.Fence = holder.Attempt, holder.Fence
		err = a.repeat(ctx, func(ctx context.Context) error { return a.engine.store.complete(ctx, r) })
		if err == nil {
			a.conclude(EndRecorded, nil)
			return CompleteResult{Status: Recorded}
		}
	}
	if err != nil {
		return a.completeLater(r, err)
	}
	status := lostStatus[holder.Outcome]
	a.conclude(completeEnds[status], store.ErrLeaseLost)
	return CompleteResult{Status: status, Payload: holder.Payload, Err: store.ErrLeaseLost}
}

// completeLater lets the response leave, unrecorded, and goes on completing where that is
// of use.
func (a *Attempt) completeLater(r store.CompleteRequest, err error) CompleteResult {
	if f, _ := classify(err); f.repeatEnd {
		a.observe(EventUnrecorded, err)
		a.engine.background.add(&task{kind: taskComplete, attempt: a, request: r, err: err})
	} else {
		a.conclude(EndUnrecorded, err)
	}
	return CompleteResult{Status: Unrecorded, Err: err}
}

// completionContext returns the context in which the store is asked to end the attempt,
// from now on.
func (a *Attempt) completionContext() context.Context {
	at := sinceStart()
	a.ending = at
	ctx := a.engine.completing.context(at)
	if !a.hasValues() {
		return ctx
	}
	a.completion = callContext{Context: ctx, values: a.values}
	return &a.completion
}

// repeat repeats a completion or release until it succeeds, ctx ends, or repeating at
// once is of no use. Where a store did not decide about an Atomic attempt, repeating does
// not decide either.
func (a *Attempt) repeat(ctx context.Context, operation func(context.Context) error) error {
	for wait := firstPause; ; wait = min(4*wait, longestPause) {
		err := operation(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrLeaseLost) { // which is an answer
			a.observe(EventStoreError, err)
		}
		if f, _ := classify(err); !f.repeatEnd || f.refused || a.atomic || !pause(ctx, wait) {
			return err
		}
	}
}

// String returns the status as it appears in logs.
func (s CompleteStatus) String() string { return text.Name(completeNames[:], int(s)) }

var completeNames = [...]string{
	Recorded: "recorded", Unrecorded: "unrecorded", Superseded: "superseded", Contested: "contested",
	RolledBack: "rolled-back", Undecided: "undecided",
}
