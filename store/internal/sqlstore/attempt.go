package sqlstore

import (
	"bytes"
	"context"
	"slices"

	"github.com/reprise-go/reprise/core/store"
)

// Renew implements [store.Store]. An invalid entry refuses the whole batch.
func (t *Table) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
	}
	switch {
	case len(rs) == 0:
		return nil, nil
	case t.Own != nil:
		return t.Own.Renew(ctx, rs)
	case t.Dialect.Embedded:
		return t.renewTogether(ctx, slices.Clone(rs)) // the caller may return before they are executed
	}
	return t.renewEach(ctx, rs)
}

// renewTogether renews a batch in one transaction. While that of a handler excludes all
// others, the lease of its attempt needs no write: see session.renew.
func (t *Table) renewTogether(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	writer, rest, others := t.writer.Load(), slices.Repeat([]store.RenewStatus{store.RenewBusy}, len(rs)), make([]int, 0, len(rs))
	for i := range rs {
		if !writer.renew(&rs[i], &rest[i]) {
			others = append(others, i)
		}
	}
	if len(others) == 0 {
		return rest, nil
	}
	statuses := slices.Clone(rest)
	err := t.Write(ctx, "renew", func(ctx context.Context, on Conn) (err error) {
		for _, i := range others {
			if statuses[i], err = t.renew(ctx, on, &rs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil:
		return statuses, nil
	case len(others) < len(rs): // not statuses: the writer may still write to it
		return rest, nil
	}
	return nil, err
}

func (t *Table) renew(ctx context.Context, on Conn, r *store.RenewRequest) (store.RenewStatus, error) {
	found, locked, err := t.lookFree(ctx, on, r.ID)
	switch {
	case err != nil:
		return 0, err
	case locked && found.State == Running && bytes.Equal(found.Owner, r.Owner[:]):
		return store.RenewBusy, nil
	}
	status := found.renewal(r)
	if status == store.Renewed {
		err = t.change(ctx, on, found, t.statements.renew, found.At+r.Lease.Microseconds())
	}
	return status, err
}

// renewal is the answer to a renewal that finds the row.
func (r *row) renewal(by *store.RenewRequest) store.RenewStatus {
	switch {
	case !r.seen() || !r.Readable() || !bytes.Equal(r.Owner, by.Owner[:]):
		return store.RenewLost
	case r.State == Completed:
		return store.RenewCompleted
	}
	return store.Renewed
}

// Complete implements [store.Store].
func (t *Table) Complete(ctx context.Context, r store.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if t.Own != nil {
		return t.Own.Complete(ctx, &r)
	}
	return t.CompleteAlone(ctx, &r)
}

// CompleteAlone ends an attempt whose record is in the table. The request is valid.
func (t *Table) CompleteAlone(ctx context.Context, r *store.CompleteRequest) error {
	request, tried := *r, false // copies: the caller may return before they are written, and reuse its memory
	if t.Dialect.Embedded {
		request.Payload = bytes.Clone(r.Payload)
	}
	return t.Write(ctx, "complete", func(ctx context.Context, on Conn) error {
		if !tried {
			tried = true
			if done, err := t.completeOwn(ctx, on, &request, t.statements.completeOwn); done || err != nil {
				return err
			}
		}
		found, err := t.lookFor(ctx, on, "complete", request.ID)
		switch {
		case err != nil:
			return err
		case found == nil || !bytes.Equal(found.Owner, request.Owner[:]):
			return Lost(t.Dialect.Name, "complete")
		case found.State == Completed: // by an earlier call, whose payload stays
			return t.change(ctx, on, found, t.statements.touch)
		}
		return t.complete(ctx, on, found, endingOf(&request))
	})
}

// completeOwn completes a record of its owner that is in progress, by the clock of the
// moment in which the statement holds it, and reports whether it did.
func (t *Table) completeOwn(ctx context.Context, on Conn, r *store.CompleteRequest, statement string) (done bool, err error) {
	if t.Own != nil {
		return t.Own.CompleteOwn(ctx, on, r)
	}
	e := endingOf(r)
	if err := t.fits(ctx, on, e.payload); err != nil {
		return false, err
	}
	now := t.Dialect.now()
	replayed := now + e.replay
	n, err := on.Exec(ctx, statement, e.payload, now, replayed, replayed+e.horizon, replayed, e.retention, e.horizon, r.ID[:], r.Owner[:], now, now)
	return n == 1, err
}

func (t *Table) fits(ctx context.Context, on Conn, payload []byte) error {
	if t.Dialect.Fits == nil {
		return nil
	}
	return t.Dialect.Fits(ctx, on, payload)
}

// ending is the completion of a record.
type ending struct {
	owner              store.Owner
	payload            []byte
	replay             int64 // how long the payload is replayed
	retention, horizon int64 // of the policy that the record has from then on
	valid              int64 // the record is valid at least until then
}

// endingOf returns the completion of r. The empty payload is a value, because NULL is how
// a row says that it has none.
func endingOf(r *store.CompleteRequest) *ending {
	e := &ending{owner: r.Owner, payload: r.Payload, retention: r.Retention.Microseconds(), horizon: r.Horizon.Microseconds()}
	if e.replay = e.retention; e.payload == nil {
		e.payload = []byte{}
	}
	return e
}

func (t *Table) complete(ctx context.Context, on Conn, found *row, e *ending) error {
	if err := t.fits(ctx, on, e.payload); err != nil {
		return err
	}
	now := found.At
	replayed := now + e.replay
	return t.change(ctx, on, found, t.statements.complete,
		e.owner[:], e.payload, now, replayed, max(e.valid, replayed+e.horizon), replayed, e.retention, e.horizon)
}

// Release implements [store.Store].
func (t *Table) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return t.Write(ctx, "release", func(ctx context.Context, on Conn) error {
		found, err := t.lookBehind(ctx, on, id, owner)
		if found, err = t.judge("release", found, err); err != nil || found == nil || found.State != Running || !bytes.Equal(found.Owner, owner[:]) {
			return err
		}
		return t.forget(ctx, on, found)
	})
}

// Unknown implements [store.Store].
func (t *Table) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return t.Write(ctx, "unknown", func(ctx context.Context, on Conn) error {
		found, err := t.lookFor(ctx, on, "unknown", r.ID)
		switch {
		case err != nil:
			return err
		case found == nil || found.State != Running:
			return Lost(t.Dialect.Name, "unknown")
		case bytes.Equal(found.Owner, endedOwner(r.Owner)): // by an earlier call, whose reason stays
			return t.change(ctx, on, found, t.statements.touch)
		case !bytes.Equal(found.Owner, r.Owner[:]):
			return Lost(t.Dialect.Name, "unknown")
		}
		return t.unknown(ctx, on, found, &r)
	})
}

// unknown marks the record that was found. Its lease ends before every clock: a claim may
// have read its own before this attempt began, and the record after its end.
func (t *Table) unknown(ctx context.Context, on Conn, found *row, r *store.UnknownRequest) error {
	return t.change(ctx, on, found, t.statements.unknown, endedOwner(r.Owner), r.Reason, 0, found.At, found.At)
}
