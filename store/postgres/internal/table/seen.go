package table

import (
	"bytes"
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

// wordCorrupt is the word of verdict.sql for a row that this release cannot read.
const wordCorrupt = "corrupt"

// Seen is the row that a statement found in the table, or none.
type Seen struct {
	Found       bool
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

// Scan reads the columns of seen.sql.
func (r *Seen) Scan(row pgx.Row, more ...any) error {
	var (
		at, clock, leaseUntil, validUntil instant
		version, state                    *int16
		attempt                           *int32
		fence                             *int64
		atMostOnce                        *bool
	)
	err := row.Scan(append([]any{
		&at, &clock, &r.Standby,
		&version, &state, &r.Owner, &r.Fingerprint, &attempt, &fence, &leaseUntil, &validUntil, &atMostOnce, &r.Payload,
	}, more...)...)
	r.At, r.Clock, r.LeaseUntil, r.ValidUntil = int64(at), int64(clock), int64(leaseUntil), int64(validUntil)
	if err != nil || version == nil {
		return err
	}
	r.Found = true
	r.Version, r.State, r.Attempt, r.Fence = *version, *state, int(*attempt), *fence
	r.AtMostOnce = *atMostOnce
	return nil
}

// Read reads a row of claim_look.sql, or of claim_new.sql where it saw a record.
func (r *Seen) Read(row *wire.Row) {
	*r = Seen{Found: true, At: row.Timestamp()}
	r.Version, r.State = row.Smallint(), row.Smallint()
	r.Owner, r.Fingerprint = bytes.Clone(row.Bytes()), bytes.Clone(row.Bytes())
	r.Attempt, r.Fence = row.Integer(), row.Bigint()
	r.LeaseUntil, r.ValidUntil, r.AtMostOnce = row.Timestamp(), row.Timestamp(), row.Boolean()
	r.Payload = bytes.Clone(row.Bytes())
	r.Clock = r.At
}

// ReadAttempt reads the row of seen.sql.
func (r *Seen) ReadAttempt(row *wire.Row) {
	*r = Seen{At: row.Timestamp(), Clock: row.Timestamp(), Standby: row.Boolean()}
	r.Found = len(row.Columns) > 0 && row.Columns[0] != nil
	r.Version, r.State = row.Smallint(), row.Smallint()
	r.Owner, r.Fingerprint = bytes.Clone(row.Bytes()), bytes.Clone(row.Bytes())
	r.Attempt, r.Fence = row.Integer(), row.Bigint()
	r.LeaseUntil, r.ValidUntil, r.AtMostOnce = row.Timestamp(), row.Timestamp(), row.Boolean()
	r.Payload = bytes.Clone(row.Bytes())
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
