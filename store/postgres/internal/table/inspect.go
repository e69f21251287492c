package table

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
)

// Inspect returns the record of id, or ErrNotFound.
func (t *Table) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	found, err := t.inspect(ctx, "inspect", id)
	if err != nil {
		return store.Record{}, err
	}
	if found == nil {
		return store.Record{}, fmt.Errorf("%w: postgres: inspect", store.ErrNotFound)
	}
	return *found, nil
}

// Resolve ends a record on behalf of an operator. An attempt that comes back afterwards
// finds that it lost the record.
func (t *Table) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	lapsed := r.State == store.StateLapsed
	sql, args := t.Statements.resolve, []any{id[:], int64(r.Fence), NotNull(r.Payload), Microseconds(r.Retention), lapsed} //nolint:gosec // fences come from a bigint
	if r.Forget {
		var completed *bool // nil: the record could not be read
		if r.State != store.StateUnreadable {
			was := r.State.WasCompleted()
			completed = &was
		}
		sql, args = t.Statements.forget, append(args[:2], completed, lapsed)
	}
	var done bool
	err := t.Run(ctx, "resolve", sql, func(rows pgx.Rows) error {
		done = rows.Next()
		return nil
	}, args...)
	if err == nil && !done {
		err = fmt.Errorf("%w: postgres: resolve", store.ErrRecordChanged)
	}
	return err
}

// Look is inspect, with ErrCorrupt for a record that cannot be read.
func (t *Table) Look(ctx context.Context, op string, id store.ID) (*store.Record, error) {
	found, err := t.inspect(ctx, op, id)
	if err == nil && found != nil && found.State == store.StateUnreadable {
		return nil, record.Corrupt("postgres", op)
	}
	return found, err
}

// inspect reads the record of id; nil means that there is none, or only an expired one.
func (t *Table) inspect(ctx context.Context, op string, id store.ID) (*store.Record, error) {
	var found *store.Record
	err := t.Run(ctx, op, t.Statements.inspect, func(rows pgx.Rows) error {
		found = nil
		if !rows.Next() {
			return nil
		}
		var (
			row     shown
			payload []byte
		)
		if err := row.scan(rows, &payload); err != nil {
			return err
		}
		if row.visible == nil || !*row.visible {
			return nil
		}
		record := row.record()
		if record.State == store.StateCompleted {
			record.Payload = payload
		}
		found = &record
		return nil
	}, id[:])
	if err != nil {
		return nil, err
	}
	return found, nil
}

// shown has the columns of shown.sql. They are NULL where a listing has no more records.
type shown struct {
	now                           instant
	id                            []byte
	readable, completed, expired  *bool
	resolved, visible, atMostOnce *bool
	label, reason, description    *string
	fingerprint                   []byte
	attempt, size                 *int32
	fence, retention, horizon     *int64
	createdAt                     instant
	leaseUntil, validUntil        instant
}

func (s *shown) scan(row pgx.Row, more ...any) error {
	return row.Scan(append([]any{
		&s.now, &s.id, &s.readable, &s.completed, &s.expired, &s.label, &s.atMostOnce, &s.retention, &s.horizon, &s.fingerprint, &s.description,
		&s.attempt, &s.fence, &s.createdAt, &s.leaseUntil, &s.validUntil, &s.resolved, &s.size, &s.reason, &s.visible,
	}, more...)...)
}

// record is the row as operators see it, without its payload.
func (s *shown) record() store.Record {
	r := store.Record{State: store.StateUnreadable, Fence: uint64(*s.fence), Size: int(*s.size), Validity: s.validUntil.since(s.now)} //nolint:gosec // fences are positive
	copy(r.ID[:], s.id)
	if !*s.readable {
		return r
	}
	r.Policy = store.Policy{
		Label: *s.label, AtMostOnce: *s.atMostOnce,
		Retention: FromMicroseconds(*s.retention), Horizon: FromMicroseconds(*s.horizon),
	}
	copy(r.Fingerprint[:], s.fingerprint)
	if s.description != nil {
		r.Description = *s.description
	}
	r.Attempt, r.ClaimedAt = int(*s.attempt), s.createdAt.time()
	switch {
	case *s.completed:
		r.State, r.Resolved = store.StateCompleted, *s.resolved
		if *s.expired {
			r.State = store.StateExpired
		}
		r.CompletedAt = min(s.leaseUntil, s.now).time()
		return r
	case s.leaseUntil > s.now:
		r.State = store.StateRunning
	case s.reason != nil:
		r.State, r.Reason = store.StateUnknown, *s.reason
	default:
		r.State = store.StateLapsed
	}
	r.Lease = s.leaseUntil.since(s.now)
	r.Validity = max(r.Validity, r.Lease) // a live lease outlives the retention
	return r
}

// time is the instant on the server's clock.
func (i instant) time() time.Time { return time.UnixMicro(int64(i)) }

// since is the time from other to i.
func (i instant) since(other instant) time.Duration { return FromMicroseconds(int64(i - other)) }
