package sqlstore

import (
	"context"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

// Own is what a database has in its own way: operations on a table, with requests that
// are valid, and the statements of most requests.
type Own interface {
	Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error)
	Complete(ctx context.Context, r *store.CompleteRequest) error
	Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error)
	Purge(ctx context.Context, limit int) (purged int, err error)

	// Insert inserts the record of a claim where there is no row, and reports whether it
	// did.
	Insert(ctx context.Context, on Conn, r *store.ClaimRequest) (result store.ClaimResult, inserted bool, err error)

	// Look reads the record of a claim as far as its decision needs it.
	Look(ctx context.Context, on Conn, id store.ID) (Seen, error)

	// CompleteOwn completes a record of its owner that is in progress, and reports whether
	// it did.
	CompleteOwn(ctx context.Context, on Conn, r *store.CompleteRequest) (done bool, err error)
}

// Claim implements [store.Store]. Where a read waits for no writer, and while commits
// remain unconfirmed, it reads first: a claim that needs no write then waits for none of
// those that wait for a standby or a disk.
func (t *Table) Claim(ctx context.Context, r store.ClaimRequest) (result store.ClaimResult, err error) {
	if err := r.Validate(); err != nil {
		return result, err
	}
	if t.Dialect.Embedded || t.unconfirmed.Load() {
		found, err := t.lookAlone(ctx, "claim", r.ID)
		if err != nil {
			return result, err
		}
		if result, answered, err := found.Answer(t.Dialect.Name, &r); answered {
			return result, err
		}
	}
	if t.Own != nil {
		result, err = t.Own.Claim(ctx, &r)
	} else {
		result, err = t.ClaimAlone(ctx, &r)
	}
	if err == nil && result.Outcome == store.Claimed && t.unconfirmed.Load() {
		t.unconfirmed.Store(false)
	}
	return result, err
}

// ClaimAlone inserts the record of r, which is valid, or answers from the one that is
// there. While replays are common it looks first, unless Claim did.
func (t *Table) ClaimAlone(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	var result store.ClaimResult
	first := t.Dialect.Embedded || !t.Recent.Common()
	if err := t.Write(ctx, "claim", func(ctx context.Context, on Conn) (err error) {
		result, err = t.claimOn(ctx, on, r, first)
		first = false
		return err
	}); err != nil {
		return store.ClaimResult{}, err // not result: the writer may still write to it
	}
	t.Recent.Count(result.Outcome == store.Completed)
	return result, nil
}

// claimOn claims r once. If first is true, it inserts before it looks.
func (t *Table) claimOn(ctx context.Context, on Conn, r *store.ClaimRequest, first bool) (store.ClaimResult, error) {
	if first {
		if result, done, err := t.insert(ctx, on, r, t.statements.insertHastily); done || err != nil {
			return result, err
		}
	}
	found, result, writes, err := t.decide(ctx, on, r)
	switch {
	case err != nil || !writes:
		return result, err
	case found.Found:
		err := t.put(ctx, on, r, found, &result)
		return result, err
	}
	result, done, err := t.insert(ctx, on, r, t.statements.insert)
	if !done && err == nil {
		err = ErrLostRace
	}
	return result, err
}

// decide returns the answer to r, and the row that it was made by: see Seen.decide. It
// finds a record lapsed only after waiting for those who are writing it: see Seen.Answer.
// One of them may never end, so the end of ctx does not mean that the server is away.
func (t *Table) decide(ctx context.Context, on Conn, r *store.ClaimRequest) (found *row, result store.ClaimResult, writes bool, err error) {
	if t.Own != nil {
		found = &row{}
		if found.Seen, err = t.Own.Look(ctx, on, r.ID); err != nil {
			return nil, result, false, err
		}
		var answered bool
		if result, answered, err = found.Answer(t.Dialect.Name, r); answered || !found.Found {
			return found, result, !answered, err
		}
	}
	look := func(statement string) {
		if found, err = t.query(ctx, on, statement, r.ID, false); err == nil {
			result, writes, err = found.decide(t.Dialect.Name, r)
		}
	}
	if result.Outcome != store.Lapsed {
		look(t.statements.look)
	}
	if result.Outcome == store.Lapsed && !t.Dialect.Embedded && found.LeaseUntil > 0 {
		if look(t.statements.wait); IsContext(err) {
			err = fmt.Errorf("%w: %s: claim: another transaction holds the record: %s", store.ErrBusy, t.Dialect.Name, err.Error())
		}
	}
	return found, result, writes, err
}

// insert inserts the record of r if there is no row, and reports whether it did.
func (t *Table) insert(ctx context.Context, on Conn, r *store.ClaimRequest, statement string) (result store.ClaimResult, inserted bool, err error) {
	if t.Own != nil {
		return t.Own.Insert(ctx, on, r)
	}
	now := t.Dialect.now()
	valid := now + r.Remembered().Microseconds()
	fence, inserted, err := Underlying(on).(connection).Insert(ctx, statement, //nolint:forcetypeassert // another database has its own
		now, now, now+r.Lease.Microseconds(), valid, valid,
		r.ID[:], r.Owner[:], r.Fingerprint[:], integer(r.AtMostOnce), r.Label, r.Description, r.Retention.Microseconds(), r.Horizon.Microseconds())
	switch {
	case err != nil && t.Dialect.Taken != nil && t.Dialect.Taken(err):
		return store.ClaimResult{}, false, nil
	case err != nil || !inserted:
		return store.ClaimResult{}, false, t.Dialect.Executed(err)
	case t.Dialect.Clock == "":
		fence = now
	}
	return Granted(1, fence, r.Lease), true, nil
}

// put writes the granted claim over the record that was found.
func (t *Table) put(ctx context.Context, on Conn, r *store.ClaimRequest, found *row, granted *store.ClaimResult) error {
	now := found.At
	claimed, fence := now, int64(granted.Fence) //nolint:gosec // as the database has it
	if fence == found.Fence {
		claimed = found.claimedAt // the same attempt, again
	}
	valid := now + r.Remembered().Microseconds()
	return t.change(ctx, on, found, t.statements.claim,
		granted.Attempt, fence, r.Owner[:], r.Fingerprint[:], claimed, now+r.Lease.Microseconds(), valid, valid,
		integer(r.AtMostOnce), r.Label, r.Description, r.Retention.Microseconds(), r.Horizon.Microseconds())
}

// integer returns a condition as a number, which every database has.
func integer(v bool) int {
	if v {
		return 1
	}
	return 0
}
