package reprisepg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
)

// Inspect implements [reprise.Inspector].
func (t *records) Inspect(ctx context.Context, id reprise.ID) (reprise.Record, error) {
	found, err := t.look(ctx, "inspect", id)
	if err != nil {
		return reprise.Record{}, err
	}
	if found == nil {
		return reprise.Record{}, fmt.Errorf("%w: postgres: inspect", reprise.ErrNotFound)
	}
	return *found, nil
}

// List implements [reprise.Inspector].
func (t *records) List(ctx context.Context, q reprise.Query) (reprise.Page, error) {
	if err := q.Validate(); err != nil {
		return reprise.Page{}, err
	}
	if q.After != "" {
		return reprise.Page{}, invalid("Query.After is not a cursor of this store")
	}
	var page reprise.Page
	err := t.run(ctx, "list", t.sql.list, func(rows pgx.Rows) error {
		page = reprise.Page{}
		for rows.Next() {
			record, err := scanRecord(rows, "list")
			if err != nil {
				return err
			}
			page.Scanned++
			if q.Selects(&record, time.Now()) {
				page.Records = append(page.Records, record)
			}
		}
		return nil
	}, q.Limit)
	return page, err
}

// Resolve implements [reprise.Inspector]. An attempt that comes back afterwards finds
// that it lost the record.
func (t *records) Resolve(ctx context.Context, id reprise.ID, r reprise.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	sql, args := t.sql.forget, []any{id[:], int64(r.Fence)} //nolint:gosec // fences come from a bigint
	if !r.Forget {
		nobody := reprise.NewOwner()
		sql, args = t.sql.resolve, append(args, notNull(r.Payload), microseconds(r.Retention), nobody[:])
	}
	var done bool
	err := t.run(ctx, "resolve", sql, func(rows pgx.Rows) error {
		done = rows.Next()
		return nil
	}, args...)
	if err != nil || done {
		return err
	}
	if _, err := t.look(ctx, "resolve", id); err != nil {
		return err
	}
	return fmt.Errorf("%w: postgres: resolve", reprise.ErrRecordChanged)
}

// look reads the record of id; nil means that none is seen.
func (t *records) look(ctx context.Context, op string, id reprise.ID) (*reprise.Record, error) {
	var found *reprise.Record
	err := t.run(ctx, op, t.sql.inspect, func(rows pgx.Rows) error {
		found = nil
		if !rows.Next() {
			return nil
		}
		record, err := scanRecord(rows, op)
		found = &record
		return err
	}, id[:])
	if err != nil {
		return nil, err
	}
	return found, nil
}

// scanRecord reads a row of inspect.sql or list.sql.
func scanRecord(rows pgx.Rows, op string) (reprise.Record, error) {
	var (
		id              []byte
		readable        bool
		state           int
		fence           int64
		lease, validity int64
		record          reprise.Record
	)
	err := rows.Scan(&id, &readable, &state, &record.Attempt, &fence, &lease, &validity, &record.Payload)
	switch {
	case err != nil:
		return reprise.Record{}, err
	case !readable || len(id) != len(record.ID):
		return reprise.Record{}, corrupt(op)
	}
	copy(record.ID[:], id)
	record.Fence = uint64(fence) //nolint:gosec // fences are positive
	record.State, record.Size = reprise.StateCompleted, len(record.Payload)
	record.Validity = fromMicroseconds(validity)
	if state != 2 {
		record.State, record.Lease = reprise.StateLapsed, fromMicroseconds(lease)
		if record.Lease > 0 {
			record.State = reprise.StateRunning
		}
		record.Validity = max(record.Validity, record.Lease) // a live lease outlives the retention
	}
	return record, nil
}
