package leased

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// slowClaim is how long a statement may take from reading the clock to writing the row. A
// claim that took longer waited for a lock, and extends its lease again, so that the
// caller gets a whole one.
const slowClaim = 10 * time.Millisecond

// busyFor is the remaining lease that a claim reports for a lapsed record that another
// transaction is writing at that moment. No record's own remaining lease is that: it is
// in microseconds.
const busyFor = time.Millisecond - time.Nanosecond

// claimAlone claims r, and nothing else, in one statement or two.
func (s *Store) claimAlone(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	var (
		result store.ClaimResult
		seen   record.Decision // of the last attempt at the statement
	)
	err := s.table.On(ctx, "claim", func(conn *pgx.Conn) (err error) {
		result, seen, err = s.claimOn(ctx, conn, r)
		return err
	})
	switch {
	case errors.Is(err, table.ErrLostRace) && seen.Word == record.WordTakeover:
		return store.ClaimResult{Outcome: store.InProgress, Remaining: busyFor}, nil
	case err != nil:
		return store.ClaimResult{}, err
	}
	s.recent.Count(result.Outcome == store.Completed)
	return result, nil
}

// claimOn claims r once, in one statement, or in two if a row has to be rewritten. While
// replays are common, it first executes a statement that only reads.
func (s *Store) claimOn(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest) (result store.ClaimResult, d record.Decision, err error) {
	var found table.Seen
	if s.recent.ReplaysCommon() {
		found, err = s.table.LookForClaim(ctx, conn, r.ID)
	}
	if err == nil && !found.Found {
		found, err = s.lookOrCreate(ctx, conn, r)
	}
	switch {
	case err != nil:
		return result, d, err
	case !found.Found:
		result, err = s.written(ctx, conn, r, &found)
		return result, d, err
	}
	if d = found.Decide(r); d.Rewrites() {
		result, err = s.rewrite(ctx, conn, r, &found, &d)
	} else {
		result, err = d.Result("postgres")
	}
	return result, d, err
}

// lookOrCreate reads the record of r, or creates it.
func (s *Store) lookOrCreate(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest) (table.Seen, error) {
	values, args := claimValues(r), func() []any { return claimArgs(r) }
	if s.table.Sender.On(conn) != wire.Prepared {
		found, err := s.table.AskForClaim(ctx, conn, s.statements.claimParsed, values, args)
		if err != nil && !wire.HasCode(err, wire.CodeLockTimeout) || found.Fence != 0 {
			return found, err
		}
	}
	return s.table.AskForClaim(ctx, conn, s.statements.claimNew, values, args)
}

// rewrite claims the record that a statement found, provided that it is still the same.
func (s *Store) rewrite(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, found *table.Seen, d *record.Decision) (store.ClaimResult, error) {
	values := append(claimValues(r),
		wire.AppendInt4(nil, d.Attempt), wire.BinaryBool(d.Claimable()),
		wire.AppendInt8(nil, found.Fence), wire.AppendInt2(nil, found.State), wire.AppendTimestamp(nil, found.LeaseUntil), found.Owner)
	wrote, err := s.table.AskForClaim(ctx, conn, s.statements.rewrite, values, func() []any {
		return append(claimArgs(r), d.Attempt, d.Claimable(), found.Fence, found.State, time.UnixMicro(found.LeaseUntil), found.Owner)
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	return s.written(ctx, conn, r, &wrote)
}

// written answers a claim from the row that it wrote. If it wrote none, it lost a race.
// If it waited for a lock before it wrote, the lease is extended again.
func (s *Store) written(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, wrote *table.Seen) (store.ClaimResult, error) {
	switch {
	case wrote.Fence == 0:
		return store.ClaimResult{}, table.ErrLostRace
	case waited(wrote, r.Lease):
		return s.claimWaited(ctx, conn, r, wrote)
	}
	return granted(wrote), nil
}

// claimWaited extends the lease of a record that was written after a wait, because that
// lease counts from before the wait. If the lease has lapsed and the record belongs to
// another attempt by now, the claim was granted with no lease remaining, and its renewal
// fails.
func (s *Store) claimWaited(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, wrote *table.Seen) (store.ClaimResult, error) {
	result := granted(wrote)
	err := table.Query(ctx, conn, s.statements.claimWaited, []any{
		s.table.Options.ExecMode, r.ID[:], r.Owner[:],
		table.Microseconds(r.Lease), table.Microseconds(r.Remembered()),
	}, func(rows pgx.Rows) error {
		var left int64
		if rows.Next() {
			if err := rows.Scan(&left); err != nil {
				return err
			}
		}
		result.Remaining = table.FromMicroseconds(left)
		return nil
	})
	if wire.HasCode(err, wire.CodeSerialization, wire.CodeDeadlock) { // another attempt wrote the record: no lease remains
		result.Remaining, err = 0, nil
	}
	return result, err
}

// claimValues are the parameters of claim_new.sql, and the first parameters of
// rewrite.sql.
func claimValues(r *store.ClaimRequest) [][]byte {
	const lease, retention, horizon = 8, 8 + wire.IntervalSize, 16 + wire.IntervalSize
	fixed := append(make([]byte, 0, horizon+8), r.ID[:8]...)
	fixed = wire.AppendInterval(fixed, r.Lease)
	fixed = wire.AppendInt8(fixed, table.Microseconds(r.Retention))
	fixed = wire.AppendInt8(fixed, table.Microseconds(r.Horizon))
	return [][]byte{
		r.ID[:], r.Owner[:], r.Fingerprint[:], fixed[:lease], fixed[lease:retention], fixed[retention:horizon], fixed[horizon:],
		[]byte(r.Label), wire.BinaryBool(r.AtMostOnce), []byte(r.Description),
	}
}

// claimArgs are the same parameters as Go values, for pgx to encode.
func claimArgs(r *store.ClaimRequest) []any {
	return []any{
		r.ID[:], r.Owner[:], r.Fingerprint[:], lockKey(r.ID), r.Lease,
		table.Microseconds(r.Retention), table.Microseconds(r.Horizon), r.Label, r.AtMostOnce, r.Description,
	}
}

// lockKey identifies the lock that a claim which begins an attempt on id holds.
func lockKey(id store.ID) int64 {
	return int64(binary.BigEndian.Uint64(id[:8])) //nolint:gosec // any 64 bits do
}

// waited reports whether the statement that wrote a row waited for a lock after it read
// the clock.
func waited(wrote *table.Seen, lease time.Duration) bool {
	return granted(wrote).Remaining < lease-slowClaim
}

// granted is the answer to a claim that wrote a row.
func granted(wrote *table.Seen) store.ClaimResult {
	return store.ClaimResult{
		Outcome: store.Claimed, Attempt: wrote.Attempt,
		Fence:     uint64(wrote.Fence), //nolint:gosec // fences are positive
		Remaining: table.FromMicroseconds(wrote.LeaseUntil - wrote.Clock),
	}
}
