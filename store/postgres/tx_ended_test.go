package reprisepg

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestEndedAttemptReachesNoConnection: whatever the handler still does with its
// transaction is ErrTxClosed, and no method panics.
func TestEndedAttemptReachesNoConnection(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	over := &session{}
	over.ended.Store(true)
	running := &session{}
	closed := &handlerTx{attempt: running, savepoint: "s"}
	closed.closed.Store(true)
	for name, tx := range map[string]*handlerTx{
		"the transaction": {attempt: over}, "a savepoint in it": {attempt: over, savepoint: "s"}, "a savepoint that ended": closed,
	} {
		_, exec := tx.Exec(ctx, "SELECT 1")
		rows, query := tx.Query(ctx, "SELECT 1")
		_, begin := tx.Begin(ctx)
		_, prepare := tx.Prepare(ctx, "p", "SELECT 1")
		_, copied := tx.CopyFrom(ctx, pgx.Identifier{"x"}, nil, pgx.CopyFromRows(nil))
		_, values := rows.Values()
		batch := tx.SendBatch(ctx, &pgx.Batch{})
		_, batchExec := batch.Exec()
		batchRows, batchQuery := batch.Query()
		for what, err := range map[string]error{
			"Exec": exec, "Query": query, "Begin": begin, "Prepare": prepare, "CopyFrom": copied,
			"QueryRow": tx.QueryRow(ctx, "SELECT 1").Scan(), "Rows.Err": rows.Err(), "Rows.Scan": rows.Scan(), "Rows.Values": values,
			"Batch.Exec": batchExec, "Batch.Query": batchQuery, "Batch.QueryRow": batch.QueryRow().Scan(), "Batch.Close": batch.Close(),
			"the rows of a batch": batchRows.Err(),
		} {
			if !errors.Is(err, pgx.ErrTxClosed) {
				t.Errorf("%s of %s: %v, want ErrTxClosed", what, name, err)
			}
		}
		if rows.Next() || rows.RawValues() != nil || rows.FieldDescriptions() != nil || rows.Conn() != nil || rows.CommandTag().String() != "" {
			t.Errorf("a query of %s has an answer", name)
		}
		rows.Close()
		batchRows.Close()
		if tx.Conn() != nil || tx.LargeObjects() != (pgx.LargeObjects{}) {
			t.Errorf("%s still has a connection", name)
		}
	}
}
