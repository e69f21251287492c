package reprise

import (
	"context"
	"fmt"
)

// driver calls the store and guarantees what the engine relies on: every error wraps a
// sentinel, and a store that panics has an unknown outcome instead of ending the process
// from a background goroutine.
type driver struct {
	store  Store
	binder ContextBinder // nil where the store has none
	waiter Waiter        // likewise
	meter  Meter         // likewise

	ignoresValues bool
}

// newDriver is the one place where the optional abilities that the engine itself uses are
// found.
func newDriver(s Store) driver {
	d := driver{store: s}
	d.binder, _ = As[ContextBinder](s)
	d.waiter, _ = As[Waiter](s)
	d.meter, _ = As[Meter](s)
	d.ignoresValues = ignoresValues(s)
	return d
}

func ignoresValues(s Store) (ignores bool) {
	defer func() { _ = recover() }() // a store of a type that cannot be compared
	v, ok := s.(ValueIgnorer)
	return ok && v.IgnoresValues() == s
}

func (d *driver) claim(ctx context.Context, r ClaimRequest) (res ClaimResult, err error) {
	defer classified(&err)
	res, err = d.store.Claim(ctx, r)
	if err == nil && (res.Outcome < Claimed || res.Outcome > Lapsed) {
		return ClaimResult{}, fmt.Errorf("%w: the store answered a claim with the outcome %v", ErrUnknown, res.Outcome)
	}
	if err == nil && r.Validity && res.Outcome == Completed && res.Validity <= 0 {
		return ClaimResult{}, fmt.Errorf("%w: the store does not know ClaimRequest.Validity, which a horizon needs", ErrMisconfigured)
	}
	return res, err
}

func (d *driver) renew(ctx context.Context, rs []RenewRequest) (statuses []RenewStatus, err error) {
	defer classified(&err)
	statuses, err = d.store.Renew(ctx, rs)
	if err == nil && len(statuses) != len(rs) {
		return nil, fmt.Errorf("%w: the store answered %d of %d renewals", ErrUnknown, len(statuses), len(rs))
	}
	return statuses, err
}

func (d *driver) complete(ctx context.Context, r CompleteRequest) (err error) {
	defer classified(&err)
	return d.store.Complete(ctx, r)
}

func (d *driver) release(ctx context.Context, id ID, owner Owner) (err error) {
	defer classified(&err)
	return d.store.Release(ctx, id, owner)
}

// bind returns the context for the handler of a claim.
func (d *driver) bind(ctx context.Context, id ID, owner Owner) (bound context.Context, err error) {
	if d.binder == nil {
		return ctx, nil
	}
	defer classified(&err)
	bound = d.binder.Bind(ctx, id, owner)
	if bound == nil {
		return nil, fmt.Errorf("%w: ContextBinder.Bind returned a nil context", ErrUnknown)
	}
	return bound, nil
}

// usage returns what the store uses of its resources, nil where it does not say.
func (d *driver) usage() (list []Usage) {
	if d.meter == nil {
		return nil
	}
	defer func() { _ = recover() }() // then it does not say
	return d.meter.Usage()
}

// watch returns the store's hint that id may have changed, and what ends it. Where there
// is none the channel is nil.
func (d *driver) watch(ctx context.Context, id ID) (changed <-chan struct{}, stop func()) {
	none := func() {}
	if d.waiter == nil {
		return nil, none
	}
	defer func() {
		if recover() != nil {
			changed, stop = nil, none
		}
	}()
	changed, stop, err := d.waiter.Watch(ctx, id)
	if err != nil {
		return nil, none
	}
	return changed, stop
}

// classified makes ErrUnknown of an error that wraps no sentinel, and of a panic. It is
// deferred.
func classified(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: the store panicked: %v", ErrUnknown, p)
		return
	}
	if *err == nil {
		return
	}
	if _, known := classify(*err); !known {
		*err = fmt.Errorf("%w: %w", ErrUnknown, *err)
	}
}
