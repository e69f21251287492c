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

// slowClaim is how long a claim may take from the reading of the clock to its row. One
// that took longer waited for a lock, and claims once more, so that its lease is whole.
const slowClaim = 10 * time.Millisecond

// busyFor is the lease that is left, to the caller, of a lapsed record that another
// transaction is just writing.
const busyFor = time.Millisecond

// claimAlone claims r, and nothing else, in one statement or two.
func (s *Store) claimAlone(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	var (
		result store.ClaimResult
		seen   record.Decision // of the last try
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

// claimOn claims r once. One statement answers every claim but those that rewrite a row,
// which take one more; where replays are common one that reads comes first.
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

// written answers a claim from the row that it wrote, or has lost a race where it wrote
// none. The lease of a row that was written after a wait is made whole.
func (s *Store) written(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, wrote *table.Seen) (store.ClaimResult, error) {
	switch {
	case wrote.Fence == 0:
		return store.ClaimResult{}, table.ErrLostRace
	case waited(wrote, r.Lease):
		return s.claimWaited(ctx, conn, r, wrote)
	}
	return granted(wrote), nil
}

// claimWaited makes the lease of a record whole that was written after a wait: its clock
// is that of before. Where that lease has lapsed and the record is another's by now, the
// claim was granted all the same, and no lease remains of it: its renewal tells.
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
	if wire.HasCode(err, wire.CodeSerialization, wire.CodeDeadlock) { // a rival wrote the record, as above
		result.Remaining, err = 0, nil
	}
	return result, err
}

// claimValues are the parameters of claim_new.sql, and the first of rewrite.sql.
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

// claimArgs are claimValues for pgx.
func claimArgs(r *store.ClaimRequest) []any {
	return []any{
		r.ID[:], r.Owner[:], r.Fingerprint[:], int64(binary.BigEndian.Uint64(r.ID[:8])), r.Lease, //nolint:gosec // any 64 bits do
		table.Microseconds(r.Retention), table.Microseconds(r.Horizon), r.Label, r.AtMostOnce, r.Description,
	}
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
