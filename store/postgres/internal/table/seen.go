package table

import (
	"bytes"
	"context"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Seen is the row that a statement found in the table, or that a claim wrote, or none.
// Its At is the start of the transaction, because in the extended protocol
// statement_timestamp() is later than the snapshot.
type Seen struct {
	record.Seen
}

// Scan is [Seen.Read] for a row of pgx.
func (r *Seen) Scan(row pgx.Row) error {
	var (
		at, leaseUntil, validUntil instant
		version, state             *int16
		atMostOnce                 *bool
	)
	err := row.Scan(&at, &version, &state, &r.Owner, &r.Fingerprint, &r.Attempt, &r.Fence, &leaseUntil, &validUntil, &atMostOnce, &r.Payload)
	r.At, r.Clock, r.LeaseUntil, r.ValidUntil = int64(at), int64(at), int64(leaseUntil), int64(validUntil)
	if err != nil || version == nil {
		return err
	}
	r.Found, r.Version, r.State, r.AtMostOnce = true, *version, *state, *atMostOnce
	return nil
}

// Read reads a row of claim_look.sql, claim_new.sql or rewrite.sql. The version of the
// record is NULL where there is none or where the statement wrote it.
func (r *Seen) Read(row *wire.Row) {
	*r = Seen{}
	r.At = row.Timestamp()
	r.Clock = r.At
	r.Found = len(row.Columns) > 0 && row.Columns[0] != nil
	r.Version, r.State = row.Smallint(), row.Smallint()
	r.Owner, r.Fingerprint = bytes.Clone(row.Bytes()), bytes.Clone(row.Bytes())
	r.Attempt, r.Fence = row.Integer(), row.Bigint()
	r.LeaseUntil, r.ValidUntil, r.AtMostOnce = row.Timestamp(), row.Timestamp(), row.Boolean()
	r.Payload = bytes.Clone(row.Bytes())
}

// LookForClaim reads the record of id, and does not write. On a standby, which may lag
// behind, it finds none, so that the claim continues with a statement that the standby
// refuses.
func (t *Table) LookForClaim(ctx context.Context, conn *pgx.Conn, id store.ID) (Seen, error) {
	return t.AskForClaim(ctx, conn, t.Statements.ClaimLook, [][]byte{id[:]}, func() []any { return []any{id[:]} })
}

// AskForClaim executes st, which answers one row as claim_look.sql does, or none.
func (t *Table) AskForClaim(ctx context.Context, conn *pgx.Conn, st *wire.Statement, values [][]byte, args func() []any) (Seen, error) {
	var found Seen
	err := t.Ask(ctx, conn, st.Call(found.Read, values...), args, func(rows pgx.Rows) error {
		if !rows.Next() {
			return nil
		}
		return found.Scan(rows)
	})
	return found, err
}

// instant scans a timestamptz into microseconds since 1970; NULL is 0.
type instant int64

// ScanTimestamptz implements the TimestamptzScanner of pgtype.
func (i *instant) ScanTimestamptz(v pgtype.Timestamptz) error {
	switch {
	case !v.Valid:
		*i = 0
	case v.InfinityModifier == pgtype.Infinity:
		*i = math.MaxInt64
	case v.InfinityModifier == pgtype.NegativeInfinity:
		*i = math.MinInt64
	default:
		*i = instant(v.Time.UnixMicro())
	}
	return nil
}
