package table

import (
	"bytes"
	"context"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Claim claims r alone or in a batch. The caller has validated the request.
func (t *Table) Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	if t.queue == nil {
		return t.claimAlone(ctx, r)
	}
	return t.claimCombined(ctx, r)
}

// claimAlone claims r in statements of its own. A record that is rewritten is claimed as
// in every database.
func (t *Table) claimAlone(ctx context.Context, r *store.ClaimRequest) (result store.ClaimResult, err error) {
	rewrites := false
	err = t.Use(ctx, "claim", func(ctx context.Context, c *connection) (err error) {
		result, rewrites, err = t.claimOn(ctx, c, r)
		return err
	})
	if err == nil && rewrites {
		result, err = t.Table.Claim(ctx, r)
	}
	if err != nil {
		return store.ClaimResult{}, err
	}
	t.recent.Count(result.Outcome == store.Completed)
	return result, nil
}

// claimOn inserts the record of r, or answers from the one that is there. It looks first
// while replays are common.
func (t *Table) claimOn(ctx context.Context, c *connection, r *store.ClaimRequest) (result store.ClaimResult, rewrites bool, err error) {
	look := t.recent.ReplaysCommon()
	for range 2 {
		if look {
			found, err := t.look(ctx, c, r.ID)
			if err != nil {
				return result, false, err
			}
			if d := found.Decide(r); found.Found {
				if rewrites = d.Rewrites(); !rewrites {
					result, err = d.Result(Name)
				}
				return result, rewrites, err
			}
		} else if done, err := t.insert(ctx, c, r, &result); done || err != nil {
			return result, false, err
		}
		look = !look
	}
	return result, false, sqlstore.ErrLostRace
}

// insert inserts the record of r if there is no row, and reports whether it did.
func (t *Table) insert(ctx context.Context, c *connection, r *store.ClaimRequest, result *store.ClaimResult) (done bool, err error) {
	read := func(row *wire.Row) {
		done = true
		*result = granted(1, row.Bigint(), row.Bigint())
	}
	err = c.send(ctx, func() []wire.Call { return []wire.Call{t.Statements.claimInsert.Call(read, claimValues(r)...)} })
	return done, executed(err)
}

// look reads the record of id as far as a claim needs it.
func (t *Table) look(ctx context.Context, c *connection, id store.ID) (found record.Seen, err error) {
	read := func(row *wire.Row) { readSeen(row, &found) }
	err = c.send(ctx, func() []wire.Call { return []wire.Call{t.Statements.claimLook.Call(read, id[:])} })
	return found, err
}

// readSeen reads a row of claim_look.sql.
func readSeen(row *wire.Row, found *record.Seen) {
	*found = record.Seen{Found: true, At: row.Bigint()}
	found.Clock = found.At
	found.Version, found.State = row.Smallint(), row.Smallint()
	found.Owner, found.Fingerprint = bytes.Clone(row.Bytes()), bytes.Clone(row.Bytes())
	found.Attempt, found.Fence = row.Integer(), row.Bigint()
	found.LeaseUntil, found.ValidUntil, found.AtMostOnce = row.Bigint(), row.Bigint(), row.Smallint() != 0
	found.Payload = bytes.Clone(row.Bytes())
}

// claimValues are the parameters of claim_insert.sql.
func claimValues(r *store.ClaimRequest) [][]byte {
	fixed := make([]byte, 0, 26)
	fixed = wire.AppendInt8(fixed, r.Lease.Microseconds())
	fixed = wire.AppendInt8(fixed, r.Retention.Microseconds())
	fixed = wire.AppendInt8(fixed, r.Horizon.Microseconds())
	fixed = wire.AppendInt2(fixed, flag(r.AtMostOnce))
	return [][]byte{
		r.ID[:], r.Owner[:], r.Fingerprint[:], fixed[:8], fixed[8:16], fixed[16:24], []byte(r.Label), fixed[24:], []byte(r.Description),
	}
}

// flag is a condition as the table has it.
func flag(v bool) int16 {
	if v {
		return 1
	}
	return 0
}

// granted is the answer to a claim that wrote a row, of whose lease so much is left.
func granted(attempt int, fence, left int64) store.ClaimResult {
	return store.ClaimResult{
		Outcome: store.Claimed, Attempt: attempt,
		Fence:     uint64(fence), //nolint:gosec // fences are positive
		Remaining: time.Duration(left) * time.Microsecond,
	}
}
