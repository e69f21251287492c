package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgTxSetup is a transactional store with a table for effects.
func pgTxSetup(t *testing.T, options ...labtest.PoolOption) (*pgFixture, *labtest.TxStore) {
	t.Helper()
	f := pgSetup(t, servers.SharedPostgres(t), options...)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer PRIMARY KEY)")
	st := f.Transactional(t)
	return f, st
}

// effects returns how many effects there are.
func (f *pgFixture) effects(tb testing.TB) int {
	tb.Helper()
	return pgValue[int](tb, f.Pool, "SELECT count(*) FROM "+f.name("effects"))
}

// insertion is the statement of an effect.
func (f *pgFixture) insertion() string {
	return fmt.Sprintf("INSERT INTO %s VALUES ($1)", f.name("effects"))
}

// TestPostgresTxIsAWholePgxTx: all rows that a handler writes through the transaction of
// its attempt, in any way, exist exactly when the response does. Its Commit and Rollback
// are refused without effect, and savepoints are its own.
func TestPostgresTxIsAWholePgxTx(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	ctx := t.Context()
	var object uint32
	for _, kept := range []bool{false, true} {
		r := labtest.Claimed(t, st)
		bound := st.Bind(ctx, r.ID, r.Owner)
		tx := pgTx(t, st, r)
		labtest.Want(t, "Commit", tx.Commit(ctx), reprisepg.ErrTxManaged)
		labtest.Want(t, "Rollback", tx.Rollback(ctx), reprisepg.ErrTxManaged)

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
		labtest.Must(t, pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { pgExec(t, tx, "insert_effect", 5); return nil }))
		undone, err := tx.Begin(ctx)
		labtest.Must(t, err)
		pgExec(t, undone, f.insertion(), 6)
		labtest.Must(t, undone.Rollback(ctx))
		objects := tx.LargeObjects()
		object, err = objects.Create(ctx, 0)
		labtest.Must(t, err)
		rows, err := tx.Query(ctx, "SELECT n FROM "+f.name("effects")+" ORDER BY n")
		labtest.Must(t, err)
		seen, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if before := f.effects(t); err != nil || len(seen) != 5 || before != 0 {
			t.Errorf("the transaction sees %v, %v, and others %d", seen, err, before)
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
		if _, err := tx.Exec(ctx, "SELECT 1"); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("Exec after the end: %v, want ErrTxClosed", err)
		}
		_, err = reprisepg.Tx(bound)
		labtest.Want(t, "Tx of an attempt that ended", err, store.ErrInvalid)
	}
	pgExec(t, f.Pool, "SELECT lo_unlink($1)", object)
}

// TestPostgresTxThatCannotCommit: an attempt whose effects cannot be kept is not applied,
// whole; its result can be kept without them.
func TestPostgresTxThatCannotCommit(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	f.exec(t, "CREATE TABLE "+f.name("late")+" (n integer REFERENCES "+f.name("effects")+" DEFERRABLE INITIALLY DEFERRED)")
	for name, spoil := range map[string]func(context.Context, pgx.Tx) error{
		"a failed statement": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1/0")
			if nested, nestedErr := tx.Begin(ctx); err == nil || nestedErr == nil || nested != nil {
				return errors.New("one divided by zero is something")
			}
			return nil
		},
		"a constraint at COMMIT": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+f.name("late")+" VALUES (99)")
			return err
		},
		"a result left open": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, "SELECT generate_series(1, 100000)") //nolint:gocritic // left open: that is the point
			return err
		},
		"a killed session": func(ctx context.Context, tx pgx.Tx) error {
			pid := tx.Conn().PgConn().PID()
			_, err := f.Pool.Exec(ctx, "SELECT pg_terminate_backend($1)", pid)
			return err
		},
		"a closed connection": func(ctx context.Context, tx pgx.Tx) error { return tx.Conn().Close(ctx) },
	} {
		for _, kept := range []bool{false, true} {
			r := labtest.Claimed(t, st)
			tx := pgTx(t, st, r)
			pgExec(t, tx, f.insertion(), 1)
			if err := spoil(t.Context(), tx); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if kept {
				labtest.Must(t, st.Discard(t.Context(), labtest.Completion(r, "409")))
				labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
			} else {
				labtest.Want(t, name, labtest.Complete(t, st, r, "answer"), store.ErrNotApplied)
				again := labtest.Rival(r)
				labtest.Eventually(t, name+": the key can be claimed again", func() bool {
					return pgMustNotFail(t, st, again).Outcome == store.Claimed
				})
				labtest.Must(t, st.Release(t.Context(), again.ID, again.Owner))
			}
			if n := f.effects(t); n != 0 {
				t.Errorf("%s: %d effects are left", name, n)
			}
		}
	}
}

func TestPostgresEndedByTheHandler(t *testing.T) {
	t.Parallel()
	onBoth(t, 6, 0, func(t *testing.T, h *labtest.SQLHandlers) {
		h.EndsAreFoundOut(t, []string{"COMMIT"}, []string{"ROLLBACK"}, []string{"COMMIT", "BEGIN", labtest.Second}, []string{"ROLLBACK", "BEGIN", labtest.Second},
			[]string{"COMMIT AND CHAIN", labtest.Second}, []string{"ROLLBACK AND CHAIN", labtest.Second}, []string{"COMMIT AND CHAIN", "SELECT 1 / 0"})
	})
}

func TestPostgresTransactionTimesOut(t *testing.T) {
	t.Parallel()
	onBoth(t, 6, time.Second, func(t *testing.T, h *labtest.SQLHandlers) {
		h.TimesOut(t, "SELECT pg_sleep(60)", "TRUNCATE effects")
		st := labtest.NewTxStore(h.Store)
		r := labtest.Claimed(t, st)
		ctx := st.Bind(t.Context(), r.ID, r.Owner)
		labtest.Must(t, pgExecTx(ctx, "COMMIT"))
		labtest.Eventually(t, "the statements of the handler fail", func() bool { return pgExecTx(ctx, "SELECT 1") != nil })
		labtest.Want(t, "one that its handler had ended", labtest.Complete(t, st, r, "answer"), store.ErrMisconfigured)
	})
}

// TestPostgresPoolsOfAnySize: fifty handlers at once, over pools in which there is hardly
// room for one, all commit; claims and renewals find a connection meanwhile.
func TestPostgresPoolsOfAnySize(t *testing.T) {
	t.Parallel()
	for _, conns := range []int32{2, 4} {
		onBoth(t, conns, 4*time.Second, func(t *testing.T, h *labtest.SQLHandlers) { h.FiftyAtOnce(t) })
	}
	labtest.Want(t, "a pool of one", pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(1)).Leased(t).Transacts(), store.ErrInvalid)
}
