package reprise

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

// driver calls the store for the engine with two guarantees: every error wraps a
// sentinel, and a store that panics has an unknown outcome instead of ending the process
// from a background goroutine. See [errReached].
//
// A store may also end the goroutine that calls it, as FailNow does in a test double. A
// goroutine of the engine calls it through apart; one of a request ends, and the deferred
// functions of Begin and of the ends of an attempt leave their work to the background.
// The same goes for observers, whose queue goes on in another goroutine.
type driver struct {
	store      store.Store
	transactor store.Transactor // nil where the store is none
	waiter     store.Waiter     // likewise
	meter      store.Meter      // likewise

	maintain func(context.Context) // of a store.Maintainer; nil: it is none

	ignoresValues bool
}

// newDriver is the one place where the optional abilities that the engine itself uses are
// found.
func newDriver(s store.Store) driver {
	d := driver{store: s}
	d.transactor, _ = store.As[store.Transactor](s)
	d.waiter, _ = store.As[store.Waiter](s)
	d.meter, _ = store.As[store.Meter](s)
	if m, ok := store.As[store.Maintainer](s); ok {
		d.maintain = m.Maintain
	}
	d.ignoresValues = ignoresValues(s)
	return d
}

// ignoresValues reports whether a store reads no value of the contexts that it is called
// with, such as a trace: the memory store says so. Then no call needs a context that has
// both the values of the request and the deadline of the engine. A type that embeds such
// a store has its method too, and may read values.
func ignoresValues(s store.Store) (ignores bool) {
	defer func() { _ = recover() }() // a store of a type that cannot be compared
	v, ok := s.(interface{ IgnoresValues() store.Store })
	return ok && v.IgnoresValues() == s
}

func (d *driver) claim(ctx context.Context, r store.ClaimRequest) (res store.ClaimResult, err error) {
	defer classified(&err)
	res, err = d.store.Claim(ctx, r)
	if err == nil && (res.Outcome < store.Claimed || res.Outcome > store.Expired) {
		return store.ClaimResult{}, fmt.Errorf("%w: the store answered a claim with the outcome %v", errReached, res.Outcome)
	}
	return res, err
}

func (d *driver) renew(ctx context.Context, rs []store.RenewRequest) (statuses []store.RenewStatus, err error) {
	defer classified(&err)
	statuses, err = d.store.Renew(ctx, rs)
	if err == nil && len(statuses) != len(rs) {
		return nil, fmt.Errorf("%w: the store answered %d of %d renewals", errReached, len(statuses), len(rs))
	}
	return statuses, err
}

func (d *driver) complete(ctx context.Context, r store.CompleteRequest) (err error) {
	defer classified(&err)
	return d.store.Complete(ctx, r)
}

func (d *driver) release(ctx context.Context, id store.ID, owner store.Owner) (err error) {
	defer classified(&err)
	return d.store.Release(ctx, id, owner)
}

func (d *driver) unknown(ctx context.Context, r store.UnknownRequest) (err error) {
	defer classified(&err)
	return d.store.Unknown(ctx, r)
}

// transaction returns the transaction of an attempt, and the context for its handler.
func (d *driver) transaction(ctx context.Context, id store.ID, owner store.Owner) (bound context.Context, tx store.Transaction, err error) {
	defer classified(&err)
	bound, tx = d.transactor.Transaction(ctx, id, owner)
	if bound == nil || tx == nil {
		return nil, nil, fmt.Errorf("%w: Transactor.Transaction returned nil", errReached)
	}
	return bound, tx, nil
}

// commit calls [store.Transaction].Commit.
func (d *driver) commit(ctx context.Context, tx store.Transaction, r store.CompleteRequest) (err error) {
	defer classified(&err)
	return tx.Commit(ctx, r)
}

// rollback calls [store.Transaction].Rollback.
func (d *driver) rollback(ctx context.Context, tx store.Transaction) (err error) {
	defer classified(&err)
	return tx.Rollback(ctx)
}

// usage returns the store's usage of its resources, nil where it is not a Meter.
func (d *driver) usage() (list []store.Usage) {
	if d.meter == nil {
		return nil
	}
	defer func() { _ = recover() }() // then it does not say
	return d.meter.Usage()
}

// watch returns the channel of the store's hints that id may have changed, and a function
// that ends the watch. The channel is nil where there are none.
func (d *driver) watch(ctx context.Context, id store.ID) (changed <-chan struct{}, stop func()) {
	none := func() {}
	if d.waiter == nil {
		return nil, none
	}
	defer func() {
		if recover() != nil {
			changed, stop = nil, none
		}
	}()
	changed, end, err := d.waiter.Watch(ctx, id)
	if err != nil {
		return nil, none
	}
	return changed, func() {
		defer func() { _ = recover() }()
		end()
	}
}

// apart returns the error of call, which it runs in a separate goroutine, and errNoReturn
// if that goroutine has ended instead.
func apart(call func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errNoReturn
		defer func() { result <- err }()
		err = call()
	}()
	return <-result
}

// classified makes ErrUnknown of an error that wraps no sentinel, and of a panic. It is
// deferred.
func classified(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: the store panicked: %v", errReached, p)
		return
	}
	if *err == nil {
		return
	}
	if _, known := classify(*err); !known {
		*err = fmt.Errorf("%w: %w", store.ErrUnknown, *err)
	}
}

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
	if err == nil { // which is by far the most frequent
		return failure{}, false
	}
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f, true
		}
	}
	return failure{}, false
}
