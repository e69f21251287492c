package reprisepg

import (
	"bytes"
	"context"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Insert implements [sqlstore.Own].
func (t *table) Insert(ctx context.Context, on sqlstore.Conn, r *store.ClaimRequest) (result store.ClaimResult, inserted bool, err error) {
	read := func(row *binaryRow) {
		inserted = true
		result = sqlstore.Granted(1, row.bigint(), time.Duration(row.bigint())*time.Microsecond)
	}
	err = connectionOf(on).send(ctx, func() []statementCall { return []statementCall{t.statements.claimInsert.call(read, claimArgs(r)...)} })
	return result, inserted, t.Dialect.Executed(err)
}

// Look implements [sqlstore.Own].
func (t *table) Look(ctx context.Context, on sqlstore.Conn, id store.ID) (found sqlstore.Seen, err error) {
	read := func(row *binaryRow) { readSeen(row, &found) }
	err = connectionOf(on).send(ctx, func() []statementCall { return []statementCall{t.statements.claimLook.call(read, id[:])} })
	return found, err
}

// CompleteOwn implements [sqlstore.Own].
func (t *table) CompleteOwn(ctx context.Context, on sqlstore.Conn, r *store.CompleteRequest) (done bool, err error) {
	err = connectionOf(on).send(ctx, func() []statementCall {
		return []statementCall{t.statements.completeOwn.call(func(*binaryRow) { done = true }, completionArgs(r)...)}
	})
	return done, t.Dialect.Executed(err)
}

// readSeen reads a row of claim_look.sql, or what follows the size in one of claims.sql.
func readSeen(row *binaryRow, found *sqlstore.Seen) {
	*found = sqlstore.Seen{Found: true, At: row.bigint()}
	found.Clock = found.At
	found.Version, found.State = row.smallint(), row.smallint()
	found.Owner, found.Fingerprint = bytes.Clone(row.bytes()), bytes.Clone(row.bytes())
	found.Attempt, found.Fence = row.integer(), row.bigint()
	found.LeaseUntil, found.ValidUntil, found.AtMostOnce = row.bigint(), row.bigint(), row.smallint() != 0
	found.Payload = bytes.Clone(row.bytes())
}

// claimArgs are the parameters of claim_insert.sql.
func claimArgs(r *store.ClaimRequest) []any {
	return []any{
		r.ID[:], r.Owner[:], r.Fingerprint[:], r.Lease.Microseconds(), r.Retention.Microseconds(), r.Horizon.Microseconds(),
		r.Label, flag(r.AtMostOnce), r.Description,
	}
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
