package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// TestPostgresTxIsAWholePgxTx: all rows that a handler writes through the transaction of
// its attempt, in any way, exist exactly when the response does.
func TestPostgresTxIsAWholePgxTx(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	ctx := t.Context()
	var object uint32
	for _, kept := range []bool{false, true} {
		r := labtest.Claimed(t, st)
		tx := pgTx(t, st, r)

		var batch pgx.Batch
		batch.Queue(f.insertion(), 1)
		batch.Queue(f.insertion(), 2)
		labtest.Must(t, tx.SendBatch(ctx, &batch).Close())
		n, err := tx.CopyFrom(ctx, pgx.Identifier{f.Config.Schema, "effects"}, []string{"n"}, pgx.CopyFromRows([][]any{{3}, {4}}))
		if err != nil || n != 2 {
			t.Fatalf("CopyFrom: %d, %v", n, err)
		}
		_, err = tx.Prepare(ctx, "insert_effect", f.insertion())
		labtest.Must(t, err)
		pgExec(t, tx, "insert_effect", 5)
		objects := tx.LargeObjects()
		object, err = objects.Create(ctx, 0)
		labtest.Must(t, err)
		rows, err := tx.Query(ctx, "SELECT n FROM "+f.name("effects")+" ORDER BY n")
		labtest.Must(t, err)
		seen, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil || len(seen) != 5 {
			t.Errorf("the transaction sees %v, %v", seen, err)
		}
		want, objectsWant := 0, 0
		if kept {
			labtest.Must(t, labtest.Complete(t, st, r, "answer"))
			want, objectsWant = 5, 1
		} else {
			labtest.Must(t, st.Release(ctx, r.ID, r.Owner))
		}
		left := pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_largeobject_metadata WHERE oid = $1", object)
		if n := f.effects(t); n != want || left != objectsWant {
			t.Errorf("kept %t: %d effects and %d large objects", kept, n, left)
		}
	}
	pgExec(t, f.Pool, "SELECT lo_unlink($1)", object)
}
