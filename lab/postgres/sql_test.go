package postgres

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// transactionalSQL returns the transactional store of the fixture over a *sql.DB.
func (f *pgFixture) transactionalSQL(tb testing.TB, db *sql.DB) *labtest.TxStore {
	tb.Helper()
	store, err := reprisepg.New(db, f.Config)
	labtest.Must(tb, err)
	return labtest.NewTxStore(store)
}

// sqlTx returns the transaction of a claim as its handler finds it.
func sqlTx(t *testing.T, st *labtest.TxStore, r store.ClaimRequest) *sql.Tx {
	t.Helper()
	ctx := st.Bind(t.Context(), r.ID, r.Owner)
	tx, err := reprisepg.SQLTx(ctx)
	labtest.Must(t, err)
	_, err = reprisepg.Tx(ctx)
	labtest.Want(t, "a pgx.Tx over a *sql.DB", err, store.ErrInvalid)
	return tx
}

// TestPostgresSQLStatementLeftRunning: a statement that the handler left running, which
// database/sql makes every other call wait for, holds a completion up to the end of its
// context and no longer.
func TestPostgresSQLStatementLeftRunning(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f, db := pgSetup(t, server), labtest.NewDB(t, server.URL())
	st := f.transactionalSQL(t, db)
	for _, discard := range []bool{false, true} {
		r := labtest.Claimed(t, st)
		tx, left := sqlTx(t, st, r), make(chan error, 1)
		statement := "SELECT pg_sleep(600), '" + f.Config.Schema + "'" //nolint:gosec // tells it from those of other tests
		go func() { _, err := tx.ExecContext(context.WithoutCancel(t.Context()), statement); left <- err }()
		labtest.Eventually(t, "the statement runs", func() bool {
			return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = $1", statement) == 1
		})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		complete, want := st.Complete, store.ErrNotApplied
		if discard {
			complete, want = st.Discard, store.ErrUnavailable // rolled back, and no time is left for the record
		}
		err := complete(ctx, labtest.Completion(r, "answer"))
		cancel()
		labtest.Want(t, "complete", err, want)
		if err := <-left; err == nil {
			t.Error("the statement was not ended")
		}
		labtest.Eventually(t, "the connection is back", func() bool { return db.Stats().InUse == 0 })
	}
}

// TestPostgresSQLPools: a *sql.DB without a limit works, and one that shares the pool of
// the application.
func TestPostgresSQLPools(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	for _, db := range []*sql.DB{stdlib.OpenDB(*f.Pool.Config().ConnConfig), stdlib.OpenDBFromPool(f.Pool)} {
		pgTxOnce(t, f.transactionalSQL(t, db))
		labtest.Must(t, db.Close())
	}
}

// pgTxOnce claims and completes one operation over a *sql.DB.
func pgTxOnce(t *testing.T, st *labtest.TxStore) {
	t.Helper()
	r := labtest.Claimed(t, st)
	tx := sqlTx(t, st, r)
	_, err := tx.ExecContext(t.Context(), "SELECT 1")
	labtest.Must(t, err)
	labtest.Want(t, "Commit", tx.Commit(), reprisepg.ErrTxManaged)
	labtest.Must(t, labtest.Complete(t, st, r, "answer"))
	labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
}

// TestPostgresSQLSessionAfterAPanicMidReply: every call goes over the one connection of
// a *sql.DB. Where a hook of the application panics while a result is read, it is of no
// use to the next call, which gets another.
func TestPostgresSQLSessionAfterAPanicMidReply(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.exec(t, "CREATE FUNCTION "+f.name("say")+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'said'; RETURN NEW; END $$;"+
		" CREATE TRIGGER say BEFORE INSERT ON "+f.records()+" FOR EACH ROW EXECUTE FUNCTION "+f.name("say")+"()")
	var broken atomic.Bool
	db := labtest.NewDB(t, server.URL(), labtest.MaxConns(1), func(c *pgxpool.Config) {
		c.ConnConfig.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {
			if broken.Load() {
				panic("the hook is broken")
			}
		}
	})
	st, err := reprisepg.New(db, f.Config)
	labtest.Must(t, err)
	lives := func() (pid int) {
		labtest.Completed(t, st, "answer")
		labtest.Must(t, db.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
		return pid
	}
	first := lives()
	if second := lives(); second != first {
		t.Errorf("the calls began with the session %d and ended with %d", first, second)
	}
	broken.Store(true)
	if !pgPanics(func() { _, _ = st.Claim(t.Context(), labtest.NewClaim()) }) {
		t.Error("the hook did not panic")
	}
	broken.Store(false)
	if last := lives(); last == first {
		t.Error("a session goes on in the middle of a reply")
	}
}
