package table

import (
	"bytes"
	"context"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// The values of the columns version and state of a row that this release can read.
const (
	rowVersion   = 1
	rowRunning   = 1
	rowCompleted = 2
)

// Seen is the row that a statement found in the table, or the one that a claim wrote, or
// none.
type Seen struct {
	Found       bool // there is a row, and the statement did not write it
	Version     int16
	State       int16
	Owner       []byte
	Fingerprint []byte
	Attempt     int
	Fence       int64
	LeaseUntil  int64 // instants are in microseconds since 1970
	ValidUntil  int64
	AtMostOnce  bool
	Payload     []byte // nil of a completed row whose replay has ended

	// at is the start of the transaction, before the snapshot of the statement was
	// taken. A clock that is read later could call a record lapsed that was renewed in
	// between; this one cannot: the state in the snapshot was reached before or after
	// it. (In the extended protocol statement_timestamp() is such a later clock.)
	At int64

	Clock   int64 // when the row was read
	Standby bool  // the server is one, and may be behind
}

// Scan is Read for a row of pgx.
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

// Read reads a row of claim_look.sql, claim_new.sql or rewrite.sql.
func (r *Seen) Read(row *wire.Row) {
	*r = Seen{At: row.Timestamp()}
	r.Clock = r.At
	r.readRecord(row)
}

// ReadAttempt reads the row of seen.sql.
func (r *Seen) ReadAttempt(row *wire.Row) {
	*r = Seen{At: row.Timestamp(), Clock: row.Timestamp(), Standby: row.Boolean()}
	r.readRecord(row)
}

// readRecord reads the columns of a record, whose version is NULL where there is none or
// where the statement wrote it.
func (r *Seen) readRecord(row *wire.Row) {
	r.Found = len(row.Columns) > 0 && row.Columns[0] != nil
	r.Version, r.State = row.Smallint(), row.Smallint()
	r.Owner, r.Fingerprint = bytes.Clone(row.Bytes()), bytes.Clone(row.Bytes())
	r.Attempt, r.Fence = row.Integer(), row.Bigint()
	r.LeaseUntil, r.ValidUntil, r.AtMostOnce = row.Timestamp(), row.Timestamp(), row.Boolean()
	r.Payload = bytes.Clone(row.Bytes())
}

// LookForClaim reads the record of id without a write. On a standby, which may be behind,
// it finds none, so that the claim goes on to a statement that the standby refuses.
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

// readable reports whether this release can read the row, as readable.sql does.
func (r *Seen) readable() bool {
	return r.Version == rowVersion && (r.State == rowRunning || r.State == rowCompleted) &&
		len(r.Owner) == len(store.Owner{}) && len(r.Fingerprint) == len(store.Fingerprint{}) &&
		(r.State == rowCompleted || r.Payload == nil)
}

// Decide returns the decision of a claim that finds the row, in the order of the Store
// contract.
func (r *Seen) Decide(c *store.ClaimRequest) Decision {
	d := Decision{Word: r.word(c), Attempt: r.Attempt, Fence: r.Fence, leaseLeft: r.LeaseUntil - r.At}
	switch d.Word {
	case wordCompleted:
		d.Payload = r.Payload
	case wordNew, WordTakeover:
		d.Attempt = 1
		if d.Word == WordTakeover {
			d.Attempt = r.Attempt + 1
		}
		d.Fence = max(r.Fence+1, r.Clock)
	}
	return d
}

func (r *Seen) word(c *store.ClaimRequest) string {
	live := r.Found && r.State == rowRunning && r.LeaseUntil > r.At
	own := bytes.Equal(r.Owner, c.Owner[:])
	switch {
	case !r.Found:
		return wordNew
	case !r.readable():
		return wordCorrupt
	case !live && r.ValidUntil <= r.At:
		return wordNew
	case !bytes.Equal(r.Fingerprint, c.Fingerprint[:]):
		return wordMismatch
	case r.State == rowCompleted && r.Payload == nil:
		return wordExpired
	case r.State == rowCompleted:
		return wordCompleted
	case live && own:
		return wordAgain
	case live:
		return wordInProgress
	case own:
		return wordOwnLapsed
	case r.AtMostOnce || !c.Takeover || (c.MaxAttempts > 0 && r.Attempt >= c.MaxAttempts):
		return wordLapsed
	}
	return WordTakeover
}
