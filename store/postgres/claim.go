package reprisepg

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Insert implements [sqlstore.Own].
func (t *table) Insert(ctx context.Context, on sqlstore.Conn, r *store.ClaimRequest) (result store.ClaimResult, inserted bool, err error) {
	read := func(row sqlstore.Row) error {
		var fence, left int64
		err := row.Scan(&fence, &left)
		inserted, result = true, sqlstore.Granted(1, fence, time.Duration(left)*time.Microsecond)
		return err
	}
	args := []any{
		r.ID[:], r.Owner[:], r.Fingerprint[:], r.Lease.Microseconds(), r.Retention.Microseconds(), r.Horizon.Microseconds(),
		r.Label, flag(r.AtMostOnce), r.Description,
	}
	err = connectionOf(on).send(ctx, func() []statementCall { return []statementCall{{t.statements.claimInsert, args, read}} })
	return result, inserted, t.Dialect.Executed(err)
}

// Look implements [sqlstore.Own].
func (t *table) Look(ctx context.Context, on sqlstore.Conn, id store.ID) (found sqlstore.Seen, err error) {
	read := func(row sqlstore.Row) error { return scanSeen(row, &found) }
	err = connectionOf(on).send(ctx, func() []statementCall { return []statementCall{{t.statements.claimLook, []any{id[:]}, read}} })
	return found, err
}

// CompleteOwn implements [sqlstore.Own].
func (t *table) CompleteOwn(ctx context.Context, on sqlstore.Conn, r *store.CompleteRequest) (done bool, err error) {
	err = connectionOf(on).send(ctx, func() []statementCall {
		return []statementCall{{t.statements.completeOwn, completionArgs(r), func(sqlstore.Row) error { done = true; return nil }}}
	})
	return done, t.Dialect.Executed(err)
}

// scanSeen reads a row of claim_look.sql, or of claims.sql, which has others in front.
func scanSeen(row sqlstore.Row, found *sqlstore.Seen, others ...any) error {
	err := row.Scan(append(others, &found.At, &found.Version, &found.State, &found.Owner, &found.Fingerprint, &found.Attempt, &found.Fence,
		&found.LeaseUntil, &found.ValidUntil, &found.AtMostOnce, &found.Payload)...)
	found.Found = true
	return err
}

// flag is a condition as the table has it.
func flag(v bool) int16 {
	if v {
		return 1
	}
	return 0
}

// completionArgs are the parameters of the statements that complete a record.
func completionArgs(r *store.CompleteRequest) []any {
	return []any{r.ID[:], r.Owner[:], payloadOf(r), r.Retention.Microseconds(), r.Horizon.Microseconds()}
}

// payloadOf returns the payload of a completion. The empty one is a value, because NULL
// is how a row says that it has none.
func payloadOf(r *store.CompleteRequest) []byte {
	if r.Payload == nil {
		return []byte{}
	}
	return r.Payload
}
