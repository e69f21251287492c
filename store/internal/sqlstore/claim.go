package sqlstore

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
)

// Answer answers a claim that needs no write, while commits remain unconfirmed: a replay
// then waits for none of the claims that wait for a standby or a disk.
func (t *Table) Answer(ctx context.Context, r *store.ClaimRequest) (result store.ClaimResult, answered bool, err error) {
	if !t.unconfirmed.Load() {
		return result, false, nil
	}
	found, err := t.lookAlone(ctx, "claim", r.ID)
	if err != nil {
		return result, false, err
	}
	d := found.Decide(r)
	if answered = !d.Rewrites(); answered {
		result, err = d.Result(t.Dialect.Name)
	}
	return result, answered, err
}

// Confirmed says that a commit was confirmed: see [Table.Answer].
func (t *Table) Confirmed() {
	if t.unconfirmed.Load() {
		t.unconfirmed.Store(false)
	}
}

// Claim answers a claim from the record if that needs no write, and otherwise writes the
// record. The caller has validated the request.
func (t *Table) Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	if t.Dialect.Embedded {
		found, err := t.lookAlone(ctx, "claim", r.ID)
		if err != nil {
			return store.ClaimResult{}, err
		}
		if d := found.Decide(r); !d.Rewrites() {
			return d.Result(t.Dialect.Name)
		}
	}
	var (
		result  store.ClaimResult
		request = *r // the caller may return before it is executed
	)
	err := t.Write(ctx, "claim", func(ctx context.Context, on Conn) (err error) {
		result, err = t.claimOn(ctx, on, &request)
		return err
	})
	if err != nil {
		return store.ClaimResult{}, err // not result: the writer may still write to it
	}
	return result, nil
}

// claimOn claims r once.
func (t *Table) claimOn(ctx context.Context, on Conn, r *store.ClaimRequest) (store.ClaimResult, error) {
	found, err := t.look(ctx, on, r.ID)
	if err != nil {
		return store.ClaimResult{}, err
	}
	d := found.Decide(r)
	if !d.Rewrites() {
		return d.Result(t.Dialect.Name)
	}
	return t.put(ctx, on, r, found, &d)
}

// put writes the decision d about the record that was found.
func (t *Table) put(ctx context.Context, on Conn, r *store.ClaimRequest, found *row, d *record.Decision) (store.ClaimResult, error) {
	now := found.Clock
	claimed := now
	if !d.Claimable() {
		claimed = found.claimedAt // the same attempt, again
	}
	valid := now + r.Remembered().Microseconds()
	values := []any{
		d.Attempt, d.Fence, r.Owner[:], r.Fingerprint[:], claimed, now + r.Lease.Microseconds(), valid, valid,
		integer(r.AtMostOnce), r.Label, r.Description, r.Retention.Microseconds(), r.Horizon.Microseconds(),
	}
	if found.Found {
		if err := t.change(ctx, on, found, t.statements.claim, values...); err != nil {
			return store.ClaimResult{}, err
		}
	} else if n, err := on.Exec(ctx, t.statements.insert, append(values, r.ID[:])...); err != nil {
		return store.ClaimResult{}, err
	} else if n != 1 {
		return store.ClaimResult{}, ErrLostRace
	}
	return store.ClaimResult{
		Outcome: store.Claimed, Attempt: d.Attempt, Fence: uint64(d.Fence), //nolint:gosec // fences are positive
		Remaining: r.Lease.Truncate(time.Microsecond),
	}, nil
}

// integer returns a condition as a number, which every database has.
func integer(v bool) int {
	if v {
		return 1
	}
	return 0
}
