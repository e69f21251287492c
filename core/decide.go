package reprise

import (
	"errors"
	"time"
)

// This file holds the engine's decisions, as tables. The rest of the package carries them out.

// failure says what a failed store operation means for what comes next.
type failure struct {
	err error

	repeatClaim bool // ask again, with the same owner, within the budget
	mayHold     bool // the claim may have been written, or may still be: it has to be released
	repeatEnd   bool // a completion or release is repeated, at last in the background
}

// failures is searched in order, the careful readings first: an error that wraps two may have been executed. One that is none
// of them is ErrUnknown before it gets here (see driver).
var failures = []failure{
	//                      repeatClaim  mayHold  repeatEnd
	{err: ErrUnknown, repeatClaim: true, mayHold: true, repeatEnd: true},
	{err: ErrNotReplicated, repeatClaim: true, mayHold: true, repeatEnd: true},
	{err: ErrUnavailable, repeatClaim: true, mayHold: false, repeatEnd: true},
	{err: ErrFull, repeatClaim: false, mayHold: false, repeatEnd: true},
	{err: ErrLeaseLost, repeatClaim: false, mayHold: false, repeatEnd: false},
	{err: ErrNotApplied, repeatClaim: false, mayHold: false, repeatEnd: false},
	{err: ErrCorrupt, repeatClaim: false, mayHold: false, repeatEnd: false},
	{err: ErrMisconfigured, repeatClaim: false, mayHold: false, repeatEnd: false},
	{err: ErrInvalid, repeatClaim: false, mayHold: false, repeatEnd: false},
	{err: ErrClosed, repeatClaim: false, mayHold: false, repeatEnd: false},
}

// classify finds the row of an error, and reports false for one that no row names.
func classify(err error) (failure, bool) {
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f, true
		}
	}
	return failure{}, false
}

// move is what to do with a definite answer to a claim.
type move uint8

const (
	run        move = iota + 1 // start the attempt
	renewFirst                 // it is ours and too little of its lease is left: renew, then run
	tell                       // give the answer to the caller, who may wait and look again
)

// decide is the engine's first table: what a definite answer means here.
//
//	outcome   Atomic   lease left here → move
//	Claimed   yes      –               → run
//	Claimed   no       yes             → run
//	Claimed   no       no              → renewFirst
//	the rest                           → tell
func decide(r ClaimResult, leaseLeft time.Duration) move {
	switch {
	case r.Outcome == Claimed && (r.Atomic || leaseLeft > 0):
		return run
	case r.Outcome == Claimed:
		return renewFirst
	default:
		return tell
	}
}

// CompleteStatus says how an attempt ended, and so which response its client gets.
type CompleteStatus uint8

// The answers to a completion. The zero value is none of them.
const (
	Recorded   CompleteStatus = iota + 1 // the answer is kept: send it
	Unrecorded                           // send the answer, marked: the effect is done and the record may not be
	Superseded                           // another attempt completed first: send its answer, CompleteResult.Payload
	Contested                            // another attempt runs, or may have run: 409
	RolledBack                           // Atomic: nothing was applied, a retry runs again: 503
	Undecided                            // Atomic: it cannot be told whether it was committed: 503
)

// lostStatus is the second table: what the claim that follows a lost lease says about the answer in hand. Claimed is not in it: the
// record itself was lost, so the completion is tried once more.
var lostStatus = [...]CompleteStatus{
	InProgress: Contested,
	Completed:  Superseded,
	Mismatch:   Unrecorded,
	Lapsed:     Contested,
}

// atomicStatus says what a failed completion of an Atomic attempt means.
func atomicStatus(err error) CompleteStatus {
	if errors.Is(err, ErrNotApplied) {
		return RolledBack
	}
	return Undecided
}

// String returns the status as it appears in logs.
func (s CompleteStatus) String() string { return name(completeNames[:], int(s)) }

var completeNames = [...]string{
	Recorded: "recorded", Unrecorded: "unrecorded", Superseded: "superseded", Contested: "contested",
	RolledBack: "rolled-back", Undecided: "undecided",
}

// localDeadline is how long after a claim or renewal was sent its lease is believed in: a margin before it runs out by the
// store's clock, for what the clocks drift and the handler needs to stop.
func localDeadline(lease time.Duration) time.Duration {
	return lease - max(lease/10, 250*time.Millisecond)
}
