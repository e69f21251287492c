package sqlstore

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// columns are the columns that decisions need, and details those that only operators
// need, in the order in which scan reads them. Between them is the payload, or NULL.
const (
	columns = "r.version, r.state, r.attempt, r.fence, r.revision, r.owner, r.fingerprint, " +
		"r.claimed_at, r.lease_until, r.replay_until, r.valid_until, r.at_most_once, r.payload IS NULL"
	details = "r.id, r.label, r.description, r.reason, r.retention, r.horizon, length(r.payload)"
)

// The numbers of columns in an answer: those before the payload, the first of which is
// the clock, and those after it.
const (
	columnCount = 14
	detailCount = 7
)

// row is a row of the table as a statement found it, or as it is to be written. Instants
// and durations are in microseconds.
type row struct {
	Seen

	id                         store.ID
	claimedAt, replayUntil     int64
	retention, horizon         int64
	label, description, reason string
	size                       int    // of a payload that is replayed
	fence, revision            any    // as they were found, to compare them in a write
	until                      int64  // until then, decisions about the row stay the same unless it is written
	digest                     uint64 // of the columns; never 0
}

// scan reads the clock, the columns, the payload and, if detailed is true, the details.
// at is a reading of the clock of this host, for a database without one. A value of the
// wrong type makes the record unreadable; it is not an error, because it concerns no
// other record.
func (r *row) scan(from interface{ Scan(...any) error }, detailed bool, at int64) error {
	n := columnCount + 1
	if detailed {
		n += detailCount
	}
	values, to := make([]any, n), make([]any, n)
	for i := range to {
		to[i] = &values[i]
	}
	if err := from.Scan(to...); err != nil {
		return err
	}
	c := cells{values: values}
	*r = row{}
	if values[0] == nil {
		return errSession
	}
	if r.At = c.integer(); r.At == 0 {
		r.At = at
	}
	if r.At < 0 {
		return errStale
	}
	if r.Found = values[1] != nil; !r.Found {
		return nil
	}
	r.Version, r.State, r.Attempt = int16(c.integer()), int16(c.integer()), int(c.integer()) //nolint:gosec // others are unreadable
	r.fence, r.revision = values[4], values[5]
	r.Fence, _ = c.integer(), c.integer()
	r.Owner, r.Fingerprint = c.blob(), c.blob()
	r.claimedAt, r.LeaseUntil, r.replayUntil, r.ValidUntil = c.integer(), c.integer(), c.integer(), c.integer()
	r.AtMostOnce = c.integer() != 0
	if gone := c.integer() != 0; gone || r.State == Completed && r.replayUntil <= r.At {
		c.next()
	} else {
		r.Payload = c.payload()
	}
	if detailed {
		r.scanDetails(&c)
		r.digest = digest(slices.Concat(values[1:columnCount], values[columnCount+1:]))
	}
	if c.damaged {
		r.Version = 0
	}
	r.until = r.nextInstant()
	return nil
}

// scanDetails reads the details, which follow the payload.
func (r *row) scanDetails(c *cells) {
	copy(r.id[:], c.blob())
	r.label, r.description, r.reason = c.text(), c.text(), c.text()
	r.retention, r.horizon = c.integer(), c.integer()
	if r.Payload != nil {
		r.size = int(c.integer())
	}
}

// nextInstant returns the first of the instants of the row that has not passed.
func (r *row) nextInstant() int64 {
	next := int64(math.MaxInt64)
	for _, at := range []int64{r.LeaseUntil, r.replayUntil, r.ValidUntil} {
		if at > r.At {
			next = min(next, at)
		}
	}
	return next
}

// seen reports whether the record counts: it has not expired, or its attempt is live.
func (r *row) seen() bool { return r.Found && (r.ValidUntil > r.At || r.live()) }

// view is the row as operators see it.
func (r *row) view() store.Record {
	v := store.Record{ID: r.id, State: store.StateUnreadable, Fence: r.digest, Size: r.size, Validity: span(r.ValidUntil - r.At)}
	if !r.Readable() {
		return v
	}
	v.Policy = store.Policy{Label: r.label, AtMostOnce: r.AtMostOnce, Retention: span(r.retention), Horizon: span(r.horizon)}
	v.Fingerprint, v.Description = store.Fingerprint(r.Fingerprint), r.description
	v.Attempt, v.Fence, v.ClaimedAt = r.Attempt, uint64(r.Fence), time.UnixMicro(r.claimedAt) //nolint:gosec // fences are positive
	if r.State == Completed {
		v.State, v.Resolved, v.Payload = store.StateCompleted, store.Owner(r.Owner).IsZero(), r.Payload
		if r.Payload == nil {
			v.State = store.StateExpired
		}
		v.CompletedAt = time.UnixMicro(min(r.LeaseUntil, r.At))
		return v
	}
	switch {
	case r.live():
		v.State = store.StateRunning
	case r.reason != "":
		v.State, v.Reason = store.StateUnknown, r.reason
	default:
		v.State = store.StateLapsed
	}
	v.Lease = span(max(r.LeaseUntil, r.claimedAt) - r.At) // that of an unknown outcome is 0
	v.Validity = max(v.Validity, v.Lease)                 // a live lease outlives the retention
	return v
}

// cells reads the values of a row, one after the other. Drivers return integers and texts
// in several types.
type cells struct {
	values  []any
	damaged bool // a value has a type that its column never has
}

func (c *cells) next() any {
	v := c.values[0]
	c.values = c.values[1:]
	return v
}

func (c *cells) integer() int64 {
	switch v := c.next().(type) {
	case int64:
		return v
	case int32:
		return int64(v)
	case int16:
		return int64(v)
	case bool:
		if v {
			return 1
		}
		return 0
	case []byte:
		n, err := strconv.ParseInt(string(v), 10, 64)
		c.damaged = c.damaged || err != nil
		return n
	default:
		c.damaged = true
		return 0
	}
}

func (c *cells) blob() []byte {
	v, ok := c.next().([]byte)
	c.damaged = c.damaged || !ok
	return v
}

// payload returns a payload that is not NULL. It is empty where it was not read. Some
// drivers return an empty one as nil.
func (c *cells) payload() []byte {
	if c.values[0] == nil {
		c.values[0] = []byte{}
	}
	if v := c.blob(); v != nil {
		return v
	}
	return []byte{}
}

func (c *cells) text() string {
	switch v := c.next().(type) {
	case string:
		return v
	case []byte:
		return string(v)
	default:
		c.damaged = true
		return ""
	}
}

// digest returns a number that changes with every write of a row, because the revision
// does.
func digest(values []any) uint64 {
	h := fnv.New64a()
	for _, v := range values {
		_, _ = fmt.Fprintf(h, "%T %v\n", v, v) // never fails
	}
	return h.Sum64() | 1
}

// span returns a duration of n microseconds.
func span(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
