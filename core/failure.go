package reprise

import (
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

// failure is a failed store operation, classified by how to go on.
type failure struct {
	err error

	repeatClaim bool // ask again, with the same owner, within the budget
	mayHold     bool // the claim may have been written, or may still be: it has to be released
	repeatEnd   bool // a completion or release is repeated, at last in the background
	unreachable bool // nothing is known of the server: a policy that fails open may run
	refused     bool // the store works and refuses: repeat in the background only, while the lease lasts
}

// errReached is [store.ErrUnknown] of a store that was reached: it panicked, gave an
// answer outside its contract, or granted a claim that cannot be relied on.
var errReached = fmt.Errorf("%w, although the store was reached", store.ErrUnknown)

// errNoReturn is the failure of a call that ended its goroutine ([runtime.Goexit]).
var errNoReturn = fmt.Errorf("%w: the call ended its goroutine", errReached)

// failures is searched in order, the careful readings first: an error that wraps two may
// have been executed. An error that wraps none is ErrUnknown before it gets here (see
// driver).
var failures = []failure{
	{err: errReached, repeatClaim: true, mayHold: true, repeatEnd: true},
	{err: store.ErrUnknown, repeatClaim: true, mayHold: true, repeatEnd: true, unreachable: true},
	{err: store.ErrNotReplicated, repeatClaim: true, mayHold: true, repeatEnd: true},
	{err: store.ErrBusy, repeatClaim: true, repeatEnd: true},
	{err: store.ErrUnavailable, repeatClaim: true, repeatEnd: true, unreachable: true},
	{err: store.ErrFull, repeatEnd: true, refused: true},
	{err: store.ErrMisconfigured, repeatEnd: true, refused: true},
	{err: store.ErrLeaseLost},
	{err: store.ErrNotApplied},
	{err: store.ErrCorrupt},
	{err: store.ErrInvalid},
	{err: store.ErrClosed},
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
