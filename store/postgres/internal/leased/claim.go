package leased

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// slowClaim is how long a claim may take from the reading of the clock to its row. One
// that took longer waited for a lock, and claims once more, so that its lease is whole.
const slowClaim = 10 * time.Millisecond

// claimAlone claims r in a separate statement.
func (s *Store) claimAlone(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	var result store.ClaimResult
	err := s.table.On(ctx, "claim", func(conn *pgx.Conn) (err error) {
		result, err = s.claimOn(ctx, conn, r)
		return err
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	s.recent.Count(result.Outcome == store.Completed)
	return result, nil
}

// claimOn claims r once. Where statements are prepared, one statement answers every claim
// but those that rewrite a row, and where replays are common one that reads comes first.
// Everything else is the function's: where statements are parsed anew each time, the
// server plans only the call of it.
func (s *Store) claimOn(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest) (store.ClaimResult, error) {
	if s.table.Sender.On(conn) != wire.Prepared {
		return s.claimByFunction(ctx, conn, r)
	}
	var found table.Seen
	if s.recent.ReplaysCommon() {
		err := wire.Send(ctx, conn, true, s.table.Statements.ClaimLook.Call(found.Read, r.ID[:]))
		if err == nil && found.Found {
			return s.claimSeen(ctx, conn, r, &found)
		}
		if err != nil {
			return s.claimUnprepared(ctx, conn, r, err)
		}
	}
	var created createdRecord
	err := wire.Send(ctx, conn, true, s.statements.claimNew.Call(func(row *wire.Row) {
		if row.Columns[1] == nil {
			created.read(row)
			return
		}
		found.Read(row)
	}, claimValues(r)...))
	switch {
	case err != nil:
		return s.claimUnprepared(ctx, conn, r, err)
	case found.Found:
		return s.claimSeen(ctx, conn, r, &found)
	case created.fence == 0:
		return store.ClaimResult{}, table.ErrLostRace
	case created.waited(r.Lease):
		return s.claimWaited(ctx, conn, r, &created)
	}
	return created.result(), nil
}

// claimWaited makes the lease of a record whole that was created after a wait: its clock
// is that of before.
func (s *Store) claimWaited(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, created *createdRecord) (store.ClaimResult, error) {
	result := created.result()
	err := table.Query(ctx, conn, s.statements.claimWaited, []any{
		s.table.Options.ExecMode, r.ID[:], r.Owner[:],
		table.Microseconds(r.Lease), table.Microseconds(r.Remembered()),
	}, func(rows pgx.Rows) error {
		if !rows.Next() {
			return table.ErrLostRace
		}
		var left int64
		err := rows.Scan(&left)
		result.Remaining = table.FromMicroseconds(left)
		return err
	})
	return result, err
}

// claimUnprepared claims r by the function where err says that the session has no
// prepared statements, and returns err otherwise.
func (s *Store) claimUnprepared(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, err error) (store.ClaimResult, error) {
	if !wire.NotPrepared(err) {
		return store.ClaimResult{}, err
	}
	s.table.Sender.Lost(ctx, conn, err)
	return s.claimByFunction(ctx, conn, r)
}

// claimSeen answers a claim from the record that a statement saw. The function decides
// where the row has to be rewritten.
func (s *Store) claimSeen(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, found *table.Seen) (store.ClaimResult, error) {
	d := found.Decide(r)
	if d.Rewrites() {
		return s.claimByFunction(ctx, conn, r)
	}
	return d.Result()
}

// claimByFunction claims r by the function of the schema, which settles every case.
func (s *Store) claimByFunction(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest) (store.ClaimResult, error) {
	var result store.ClaimResult
	err := table.Query(ctx, conn, s.statements.claim, []any{
		s.table.Options.ExecMode,
		r.ID[:], r.Owner[:], r.Fingerprint[:], r.Takeover, r.MaxAttempts, table.Microseconds(r.Lease),
		table.Microseconds(r.Retention), table.Microseconds(r.Horizon), r.Label, r.AtMostOnce,
	}, func(rows pgx.Rows) error {
		if !rows.Next() {
			return table.ErrLostRace
		}
		var d table.Decision
		err := d.Scan(rows)
		if err != nil {
			return err
		}
		result, err = d.Result()
		return err
	})
	return result, err
}

// claimValues are the parameters of claim_new.sql.
func claimValues(r *store.ClaimRequest) [][]byte {
	const lease, retention, horizon = 8, 8 + wire.IntervalSize, 16 + wire.IntervalSize
	fixed := append(make([]byte, 0, horizon+8), r.ID[:8]...)
	fixed = wire.AppendInterval(fixed, r.Lease)
	fixed = wire.AppendInt8(fixed, table.Microseconds(r.Retention))
	fixed = wire.AppendInt8(fixed, table.Microseconds(r.Horizon))
	return [][]byte{
		r.ID[:], r.Owner[:], r.Fingerprint[:], fixed[:lease], fixed[lease:retention], fixed[retention:horizon], fixed[horizon:],
		[]byte(r.Label), wire.BinaryBool(r.AtMostOnce),
	}
}

// createdRecord is the row that a statement returns for the record that it created.
type createdRecord struct {
	clock      int64 // when the row was written, in µs
	fence      int64
	leaseUntil int64
}

// read reads a row of claim_new.sql.
func (c *createdRecord) read(row *wire.Row) {
	c.clock = row.Timestamp()
	row.Columns = row.Columns[min(5, len(row.Columns)):]
	c.fence, c.leaseUntil = row.Bigint(), row.Timestamp()
}

// waited reports whether the statement waited for a lock after it read the clock.
func (c *createdRecord) waited(lease time.Duration) bool {
	return c.remaining() < lease-slowClaim
}

func (c *createdRecord) result() store.ClaimResult {
	return store.ClaimResult{
		Outcome: store.Claimed, Attempt: 1,
		Fence:     uint64(c.fence), //nolint:gosec // fences are positive
		Remaining: c.remaining(),
	}
}

func (c *createdRecord) remaining() time.Duration {
	return table.FromMicroseconds(c.leaseUntil - c.clock)
}
