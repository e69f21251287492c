package reprisepg

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// slowClaim is how long a claim may take from the reading of the clock to its row. One
// that took longer waited for somebody, and claims once more, so that its lease is whole.
const slowClaim = 10 * time.Millisecond

// purgeSpare is how long the purge lets a record be beyond its retention, so that the
// completion of it need not change the indexed column: an hour, or the retention where
// that is shorter.
func purgeSpare(retention time.Duration) time.Duration { return min(retention, time.Hour) }

// claimAlone claims r in a statement of its own.
func (s *Store) claimAlone(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	var result store.ClaimResult
	err := s.on(ctx, "claim", func(conn *pgx.Conn) (err error) {
		result, err = s.claimOn(ctx, conn, r)
		return err
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	s.recent.count(result.Outcome == store.Completed)
	return result, nil
}

// claimOn claims r once. Where statements are prepared, one statement answers every claim
// but those that rewrite a row, and where replays are common one that reads comes first.
// Everything else is the function's: where statements are parsed anew each time, the
// server plans only the call of it.
func (s *Store) claimOn(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest) (store.ClaimResult, error) {
	if s.sendingOn(conn) != sendPrepared {
		return s.claimByFunction(ctx, conn, r)
	}
	var found seen
	if s.recent.replaysCommon() {
		err := s.send(ctx, conn, true, call{s.sql.claimLook, [][]byte{r.ID[:]}, found.read})
		if err == nil && found.found {
			return s.claimSeen(ctx, conn, r, &found)
		}
		if err != nil {
			return s.claimUnprepared(ctx, conn, r, err)
		}
	}
	var created createdRecord
	err := s.send(ctx, conn, true, call{s.sql.claimNew, claimValues(r), func(row *row) {
		if row.columns[1] == nil {
			created.read(row)
			return
		}
		found.read(row)
	}})
	switch {
	case err != nil:
		return s.claimUnprepared(ctx, conn, r, err)
	case found.found:
		return s.claimSeen(ctx, conn, r, &found)
	case created.fence == 0:
		return store.ClaimResult{}, errLostRace
	case created.waited(r.Lease):
		return s.claimWaited(ctx, conn, r, &created)
	}
	return created.result(), nil
}

// claimWaited makes the lease of a record whole that was created after a wait: its clock
// is that of before.
func (s *Store) claimWaited(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, created *createdRecord) (store.ClaimResult, error) {
	result := created.result()
	err := query(ctx, conn, s.sql.claimWaited, []any{
		s.config.ExecMode, r.ID[:], r.Owner[:],
		microseconds(r.Lease), microseconds(r.Retention), microseconds(purgeSpare(r.Retention)),
	}, func(rows pgx.Rows) error {
		if !rows.Next() {
			return errLostRace
		}
		var left int64
		err := rows.Scan(&left)
		result.Remaining = fromMicroseconds(left)
		return err
	})
	return result, err
}

// claimUnprepared claims r by the function where err says that the session has no
// prepared statements, and returns err otherwise.
func (s *Store) claimUnprepared(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, err error) (store.ClaimResult, error) {
	if !notPrepared(err) {
		return store.ClaimResult{}, err
	}
	s.giveUpPreparing(ctx, err)
	return s.claimByFunction(ctx, conn, r)
}

// claimSeen answers a claim from the record that a statement saw. The function settles
// what has to rewrite the row.
func (s *Store) claimSeen(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest, found *seen) (store.ClaimResult, error) {
	d := found.decide(r)
	if d.rewrites() {
		return s.claimByFunction(ctx, conn, r)
	}
	return d.result()
}

// claimByFunction claims r by the function of the schema, which settles every case.
func (s *Store) claimByFunction(ctx context.Context, conn *pgx.Conn, r *store.ClaimRequest) (store.ClaimResult, error) {
	var result store.ClaimResult
	sql := s.sql.claim
	if r.Validity {
		sql = s.sql.claimValid
	}
	err := query(ctx, conn, sql, []any{
		s.config.ExecMode,
		r.ID[:], r.Owner[:], r.Fingerprint[:], r.Takeover, r.MaxAttempts, microseconds(r.Lease), microseconds(r.Retention), r.Label,
	}, func(rows pgx.Rows) error {
		if !rows.Next() {
			return errLostRace
		}
		var (
			d    decision
			more []any

			validLeft, age *int64
		)
		if r.Validity {
			more = append(more, &validLeft, &age)
		}
		err := d.scan(rows, more...)
		switch {
		case err != nil:
			return err
		case validLeft != nil && age != nil:
			d.validLeft, d.age = *validLeft, max(*age, 0)
		case r.Validity && d.word == wordCompleted:
			return errLostRace // completed after the statement began
		}
		result, err = d.result()
		return err
	})
	return result, err
}

// claimValues are the parameters of claim_new.sql.
func claimValues(r *store.ClaimRequest) [][]byte {
	fixed := make([]byte, 0, 8+3*intervalSize)
	fixed = append(fixed, r.ID[:8]...)
	fixed = appendInterval(fixed, r.Lease)
	fixed = appendInterval(fixed, r.Retention)
	fixed = appendInterval(fixed, r.Retention+purgeSpare(r.Retention))
	interval := func(n int) []byte { return fixed[8+n*intervalSize : 8+(n+1)*intervalSize] }
	return [][]byte{r.ID[:], r.Owner[:], r.Fingerprint[:], fixed[:8], interval(0), interval(1), interval(2), []byte(r.Label)}
}

// read reads a row of claim_look.sql, or of claim_new.sql where it saw a record.
func (r *seen) read(row *row) {
	*r = seen{found: true, at: row.timestamp()}
	r.version, r.state = row.smallint(), row.smallint()
	r.owner, r.fingerprint = bytes.Clone(row.bytes()), bytes.Clone(row.bytes())
	r.attempt, r.fence = row.integer(), row.bigint()
	r.leaseUntil, r.validUntil = row.timestamp(), row.timestamp()
	r.payload = bytes.Clone(row.bytes())
	r.clock = r.at
}

// createdRecord is what a statement says of the record that it created.
type createdRecord struct {
	clock      int64 // when the row was written, in µs
	fence      int64
	leaseUntil int64
}

// read reads a row of claim_new.sql.
func (c *createdRecord) read(row *row) {
	c.clock = row.timestamp()
	row.columns = row.columns[min(5, len(row.columns)):]
	c.fence, c.leaseUntil = row.bigint(), row.timestamp()
}

// waited reports whether the statement waited for somebody after it read the clock.
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

func (c *createdRecord) remaining() time.Duration { return fromMicroseconds(c.leaseUntil - c.clock) }
