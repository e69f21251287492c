// Package sqlstore is an example of a store: the contract of core/store over one table of
// SQLite, with one transaction for each change of a record.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/reprise-go/reprise/core/store"
)

// settings make a transaction take the write lock when it begins, for which it waits 10 s
// at most, and its commit survive a power failure. Deleted payloads are overwritten.
const settings = "?_txlock=immediate&_busy_timeout=10000&_journal_mode=DELETE&_synchronous=EXTRA&_secure_delete=on"

// Instants are nanoseconds of Unix time. AUTOINCREMENT makes each fence higher than all
// before it, those of deleted records too.
const schema = `CREATE TABLE IF NOT EXISTS record (
	fence INTEGER PRIMARY KEY AUTOINCREMENT, version INTEGER NOT NULL, id BLOB NOT NULL UNIQUE,
	state TEXT NOT NULL, owner BLOB NOT NULL, fingerprint BLOB NOT NULL, attempt INTEGER NOT NULL,
	label TEXT NOT NULL, at_most_once INTEGER NOT NULL, retention INTEGER NOT NULL, horizon INTEGER NOT NULL,
	description TEXT NOT NULL, reason TEXT NOT NULL, claimed INTEGER NOT NULL, completed INTEGER NOT NULL,
	leased INTEGER NOT NULL, valid INTEGER NOT NULL, payload BLOB) STRICT`

const columns = `fence, version, state, owner, fingerprint, attempt, label, at_most_once, retention, horizon,
	description, reason, claimed, completed, leased, valid, payload`

const version = 1 // of the layout

// The states of a record.
const (
	running   = "running"
	completed = "completed"
	unknown   = "unknown" // in progress, but without a lease
)

// Store keeps the records in a file of SQLite, which processes of one machine can share.
type Store struct{ db *sql.DB }

// Open opens the file, or makes it.
func Open(ctx context.Context, file string) (*Store, error) {
	db, err := sql.Open("sqlite3", "file:"+url.PathEscape(file)+settings)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer: the others wait here, where their contexts can end it
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(failure(err), db.Close())
	}
	return &Store{db}, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// record is a row of the table. The zero value stands for one that is not seen.
type record struct {
	fence       uint64
	state       string
	owner       store.Owner
	fingerprint store.Fingerprint
	attempt     int
	store.Policy
	description, reason               string
	claimed, completed, leased, valid int64 // the lease and the validity: their ends
	payload                           []byte
}

// change lets f change the record of id in one transaction, if the request is valid, and
// returns the record after it. The clock is read under the write lock: every other change
// is committed before that instant, or begins after this commit.
func (s *Store) change(ctx context.Context, invalid error, id store.ID, f func(r *record, now int64) (write bool)) (r record, err error) {
	if invalid != nil {
		return r, invalid
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return r, failure(err)
	}
	defer func() { _ = tx.Rollback() }() // without effect after the commit
	now := time.Now().UnixNano()
	r, err = find(ctx, tx, id, now)
	if err != nil || !f(&r, now) {
		return r, err
	}
	if err := tx.QueryRowContext(ctx, `REPLACE INTO record (id, `+columns+`)
		VALUES (?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING fence`,
		id[:], r.fence, version, r.state, r.owner[:], r.fingerprint[:], r.attempt, r.Label, r.AtMostOnce, r.Retention, r.Horizon,
		r.description, r.reason, r.claimed, r.completed, r.leased, r.valid, r.payload).Scan(&r.fence); err != nil {
		return r, failure(err)
	}
	if err := tx.Commit(); err != nil {
		return r, fmt.Errorf("%w: %w", store.ErrUnknown, err)
	}
	return r, nil
}

// find reads the record of id.
func find(ctx context.Context, tx *sql.Tx, id store.ID, now int64) (r record, err error) {
	var owner, fingerprint []byte
	var layout int
	err = tx.QueryRowContext(ctx, `SELECT `+columns+` FROM record WHERE id = ?`, id[:]).Scan(
		&r.fence, &layout, &r.state, &owner, &fingerprint, &r.attempt, &r.Label, &r.AtMostOnce, &r.Retention, &r.Horizon,
		&r.description, &r.reason, &r.claimed, &r.completed, &r.leased, &r.valid, &r.payload)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return record{}, nil
	case err != nil:
		return record{}, failure(err)
	case layout != version, r.state != running && r.state != completed && r.state != unknown,
		len(owner) != len(r.owner), len(fingerprint) != len(r.fingerprint):
		return record{}, store.ErrCorrupt
	case r.valid <= now && r.leased <= now:
		return record{}, nil
	}
	r.owner, r.fingerprint = store.Owner(owner), store.Fingerprint(fingerprint)
	return r, nil
}

// failure returns the error of a statement before the commit as one of the contract.
func failure(err error) error {
	sentinel := store.ErrUnknown
	var e sqlite3.Error
	if errors.As(err, &e) && e.Code == sqlite3.ErrBusy {
		sentinel = store.ErrBusy
	} else if e.Code == sqlite3.ErrFull {
		sentinel = store.ErrFull
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

// Claim implements [store.Store]. The cases are those of its comment, in their order.
func (s *Store) Claim(ctx context.Context, q store.ClaimRequest) (store.ClaimResult, error) {
	var result store.ClaimResult
	r, err := s.change(ctx, q.Validate(), q.ID, func(r *record, now int64) (write bool) {
		mine, lease := r.owner == q.Owner, time.Duration(r.leased-now)
		switch {
		case r.state == "":
		case r.fingerprint != q.Fingerprint:
			result.Outcome = store.Mismatch
		case r.state == completed && now < r.valid-int64(r.Horizon):
			result.Outcome, result.Payload = store.Completed, r.payload
		case r.state == completed:
			result.Outcome = store.Expired
		case mine && lease > 0:
		case lease > 0:
			result.Outcome, result.Remaining = store.InProgress, lease
		case r.state == unknown:
			result.Outcome = store.Lapsed
		case mine:
			result.Outcome, result.Remaining = store.Claimed, lease
		case r.AtMostOnce, !q.Takeover, q.MaxAttempts > 0 && r.attempt >= q.MaxAttempts:
			result.Outcome = store.Lapsed
		}
		if result.Outcome != 0 {
			return false
		}
		if !mine {
			*r = record{attempt: r.attempt + 1, claimed: now}
		}
		r.state, r.owner, r.fingerprint, r.Policy, r.description = running, q.Owner, q.Fingerprint, q.Policy, q.Description
		r.leased, r.valid = now+int64(q.Lease), now+int64(q.Remembered())
		result.Outcome, result.Remaining = store.Claimed, q.Lease
		return true
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	if result.Outcome == store.Claimed {
		result.Attempt, result.Fence = r.attempt, r.fence
	}
	return result, nil
}

// Renew implements [store.Store]. It stops at a failure, which is that of the whole file.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
	}
	statuses := make([]store.RenewStatus, len(rs))
	for i, q := range rs {
		statuses[i] = store.RenewLost // also if the record cannot be read
		_, err := s.change(ctx, nil, q.ID, func(r *record, now int64) (write bool) {
			if r.owner == q.Owner && r.state == completed {
				statuses[i] = store.RenewCompleted
			} else if r.owner == q.Owner && r.state == running {
				statuses[i], r.leased = store.Renewed, now+int64(q.Lease)
			}
			return statuses[i] == store.Renewed
		})
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return nil, err
		}
	}
	return statuses, nil
}

// Complete implements [store.Store].
func (s *Store) Complete(ctx context.Context, q store.CompleteRequest) error {
	return s.end(ctx, q.Validate(), q.ID, q.Owner, completed, func(r *record, now int64) {
		r.completed, r.payload, r.Retention, r.Horizon = now, q.Payload, q.Retention, q.Horizon
	})
}

// Unknown implements [store.Store].
func (s *Store) Unknown(ctx context.Context, q store.UnknownRequest) error {
	return s.end(ctx, q.Validate(), q.ID, q.Owner, unknown, func(r *record, _ int64) {
		r.reason, r.AtMostOnce = q.Reason, true
	})
}

// end ends the attempt of owner in a state, with the fields that f sets, or finds that it
// did so before.
func (s *Store) end(ctx context.Context, invalid error, id store.ID, owner store.Owner, state string, f func(r *record, now int64)) error {
	ended := false
	_, err := s.change(ctx, invalid, id, func(r *record, now int64) (write bool) {
		write = r.owner == owner && r.state == running
		ended = write || r.owner == owner && r.state == state
		f(r, now)
		r.state, r.leased, r.valid = state, 0, now+int64(r.Remembered())
		return write
	})
	if err != nil || ended {
		return err
	}
	return store.ErrLeaseLost
}

// Release implements [store.Store]. A record that is not seen any more waits for a purge.
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	_, err := s.change(ctx, nil, id, func(r *record, _ int64) (write bool) {
		write = r.owner == owner && r.state == running
		r.leased, r.valid = 0, 0
		return write
	})
	return err
}

// Purge implements [store.Purger].
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if limit < 1 || limit > 100_000 {
		return 0, fmt.Errorf("%w: limit is %d, want 1 to 100000", store.ErrInvalid, limit)
	}
	now, total := time.Now().UnixNano(), 0
	for _, statement := range [...]string{
		`DELETE FROM record WHERE fence IN (SELECT fence FROM record
			WHERE version = ? AND max(valid, leased) <= ? LIMIT ?)`,
		`UPDATE record SET payload = NULL WHERE fence IN (SELECT fence FROM record
			WHERE version = ? AND valid - horizon <= ? AND payload IS NOT NULL LIMIT ?)`,
	} {
		result, err := s.db.ExecContext(ctx, statement, version, now, limit-total)
		if err != nil {
			return total, failure(err)
		}
		purged, _ := result.RowsAffected()
		total += int(purged)
	}
	return total, nil
}

// Maintain implements [store.Maintainer]: it purges each minute.
func (s *Store) Maintain(ctx context.Context) {
	for ctx.Err() == nil {
		if purged, err := s.Purge(ctx, 1000); err == nil && purged == 1000 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
	}
}
