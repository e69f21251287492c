package reprisepg

import (
	"bytes"
	"context"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Claim claims r alone or in a batch. The caller has validated the request.
func (t *table) Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	if t.queue == nil {
		return t.Table.Claim(ctx, r)
	}
	return t.claimCombined(ctx, r)
}

// own has the statements of single claims and completions.
type own struct{ *table }

// Insert implements [sqlstore.Own].
func (t own) Insert(ctx context.Context, on sqlstore.Conn, r *store.ClaimRequest) (result store.ClaimResult, inserted bool, err error) {
	read := func(row *wire.Row) {
		inserted = true
		result = sqlstore.Granted(1, row.Bigint(), time.Duration(row.Bigint())*time.Microsecond)
	}
	err = connectionOf(on).send(ctx, func() []wire.Call { return []wire.Call{t.statements.claimInsert.Call(read, claimArgs(r)...)} })
	return result, inserted, t.Dialect.Executed(err)
}

// Look implements [sqlstore.Own].
func (t own) Look(ctx context.Context, on sqlstore.Conn, id store.ID) (found sqlstore.Seen, err error) {
	read := func(row *wire.Row) { readSeen(row, &found) }
	err = connectionOf(on).send(ctx, func() []wire.Call { return []wire.Call{t.statements.claimLook.Call(read, id[:])} })
	return found, err
}

// Complete implements [sqlstore.Own].
func (t own) Complete(ctx context.Context, on sqlstore.Conn, r *store.CompleteRequest) (done bool, err error) {
	err = connectionOf(on).send(ctx, func() []wire.Call {
		return []wire.Call{t.statements.completeOwn.Call(func(*wire.Row) { done = true }, completionArgs(r)...)}
	})
	return done, t.Dialect.Executed(err)
}

// readSeen reads a row of claim_look.sql.
func readSeen(row *wire.Row, found *sqlstore.Seen) {
	*found = sqlstore.Seen{Found: true, At: row.Bigint()}
	found.Clock = found.At
	found.Version, found.State = row.Smallint(), row.Smallint()
	found.Owner, found.Fingerprint = bytes.Clone(row.Bytes()), bytes.Clone(row.Bytes())
	found.Attempt, found.Fence = row.Integer(), row.Bigint()
	found.LeaseUntil, found.ValidUntil, found.AtMostOnce = row.Bigint(), row.Bigint(), row.Smallint() != 0
	found.Payload = bytes.Clone(row.Bytes())
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

// Complete completes r alone or in a batch. The caller has validated the request.
func (t *table) Complete(ctx context.Context, r *store.CompleteRequest) error {
	if t.queue == nil {
		return t.Table.Complete(ctx, r)
	}
	return t.completeCombined(ctx, r)
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
