package reprisepg

import (
	"bytes"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/reprise-go/reprise/core/store"
)

// The values of the columns version and state of a row that this release can read.
const (
	rowVersion   = 1
	rowRunning   = 1
	rowCompleted = 2
)

// wordCorrupt is the word of verdict.sql for a row that this release cannot read.
const wordCorrupt = "corrupt"

// seen is what a statement found in the table: a row, or none.
type seen struct {
	found       bool
	version     int16
	state       int16
	owner       []byte
	fingerprint []byte
	attempt     int
	fence       int64
	leaseUntil  int64 // instants are in microseconds since 1970
	validUntil  int64
	payload     []byte

	// at is the start of the transaction, before the snapshot of the statement was
	// taken. A clock that is read later could call a record lapsed that was renewed in
	// between; this one cannot: what the snapshot shows was so, or came to be so, after
	// it. (In the extended protocol statement_timestamp() is such a later clock.)
	at int64

	clock   int64 // when the row was read
	standby bool  // the server is one, and may be behind
}

// scan reads the columns of seen.sql.
func (r *seen) scan(row pgx.Row, more ...any) error {
	var (
		at, clock, leaseUntil, validUntil instant
		version, state                    *int16
		attempt                           *int32
		fence                             *int64
	)
	err := row.Scan(append([]any{
		&at, &clock, &r.standby,
		&version, &state, &r.owner, &r.fingerprint, &attempt, &fence, &leaseUntil, &validUntil, &r.payload,
	}, more...)...)
	r.at, r.clock, r.leaseUntil, r.validUntil = int64(at), int64(clock), int64(leaseUntil), int64(validUntil)
	if err != nil || version == nil {
		return err
	}
	r.found = true
	r.version, r.state, r.attempt, r.fence = *version, *state, int(*attempt), *fence
	return nil
}

// readAttempt reads the row of seen.sql.
func (r *seen) readAttempt(row *row) {
	*r = seen{at: row.timestamp(), clock: row.timestamp(), standby: row.boolean()}
	r.found = len(row.columns) > 0 && row.columns[0] != nil
	r.version, r.state = row.smallint(), row.smallint()
	r.owner, r.fingerprint = bytes.Clone(row.bytes()), bytes.Clone(row.bytes())
	r.attempt, r.fence = row.integer(), row.bigint()
	r.leaseUntil, r.validUntil = row.timestamp(), row.timestamp()
	r.payload = bytes.Clone(row.bytes())
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

// readable is what readable.sql says of the row.
func (r *seen) readable() bool {
	return r.version == rowVersion && (r.state == rowRunning || r.state == rowCompleted) &&
		len(r.owner) == len(store.Owner{}) && len(r.fingerprint) == len(store.Fingerprint{}) &&
		(r.state == rowCompleted) == (r.payload != nil)
}

// decide says what a claim makes of the row, in the order of the Store contract.
func (r *seen) decide(c *store.ClaimRequest) decision {
	d := decision{word: r.word(c), attempt: r.attempt, fence: r.fence, leaseLeft: r.leaseUntil - r.at}
	switch d.word {
	case wordCompleted:
		d.payload = r.payload
		if c.Validity {
			d.validLeft, d.age = r.validUntil-r.at, max(r.at-r.leaseUntil, 0)
		}
	case wordNew, wordTakeover:
		d.attempt = 1
		if d.word == wordTakeover {
			d.attempt = r.attempt + 1
		}
		d.fence = max(r.fence+1, r.clock)
	}
	return d
}

func (r *seen) word(c *store.ClaimRequest) string {
	live := r.found && r.state == rowRunning && r.leaseUntil > r.at
	own := bytes.Equal(r.owner, c.Owner[:])
	switch {
	case !r.found:
		return wordNew
	case !r.readable():
		return wordCorrupt
	case !live && r.validUntil <= r.at:
		return wordNew
	case !bytes.Equal(r.fingerprint, c.Fingerprint[:]):
		return wordMismatch
	case r.state == rowCompleted:
		return wordCompleted
	case live && own:
		return wordAgain
	case live:
		return wordInProgress
	case own:
		return wordOwnLapsed
	case !c.Takeover || (c.MaxAttempts > 0 && r.attempt >= c.MaxAttempts):
		return wordLapsed
	}
	return wordTakeover
}
