package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// transactionalSQL returns the transactional store of the fixture over a *sql.DB.
func (f *pgFixture) transactionalSQL(tb testing.TB, db *sql.DB) *labtest.TxStore {
	tb.Helper()
	store, err := reprisepg.NewSQL(db, f.Config)
	labtest.Must(tb, err)
	return labtest.NewTxStore(store)
}

// leasedSQL returns the leased store of the fixture over a *sql.DB, whose sessions write
// values as text in other ways than the defaults.
func (f *pgFixture) leasedSQL(tb testing.TB, server *servers.PostgresServer) *reprisepg.Store {
	tb.Helper()
	store, err := reprisepg.NewSQL(labtest.NewDB(tb, server.URL(), labtest.MaxConns(4),
		labtest.SessionParam("bytea_output", "escape"), labtest.SessionParam("DateStyle", "German"), labtest.SessionParam("client_encoding", "LATIN1")), f.Config)
	labtest.Must(tb, err)
	return store
}

// pgSQLSetup is a transactional store over a *sql.DB, with a table for effects.
func pgSQLSetup(t *testing.T, options ...labtest.PoolOption) (*pgFixture, *labtest.TxStore, *sql.DB) {
	t.Helper()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer PRIMARY KEY)")
	db := labtest.NewDB(t, server.URL(), options...)
	store := f.transactionalSQL(t, db)
	return f, store, db
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

// TestPostgresSQLSessionThatEnded: an attempt whose session has ended before its
// completion is not applied. That is no mistake of the handler.
func TestPostgresSQLSessionThatEnded(t *testing.T) {
	t.Parallel()
	f, st, _ := pgSQLSetup(t)
	r := labtest.Claimed(t, st)
	var pid int
	labtest.Must(t, sqlTx(t, st, r).QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	pgExec(t, f.Pool, "SELECT pg_terminate_backend($1, 10000)", pid)
	labtest.Want(t, "complete", labtest.Complete(t, st, r, "answer"), store.ErrNotApplied)
	again := labtest.Rival(r)
	labtest.WantClaim(t, st, again, store.Claimed)
	labtest.Must(t, st.Release(t.Context(), again.ID, again.Owner))
}

// TestPostgresSQLRowsLeftOpen: a result that the handler left open keeps the attempt from
// committing, and no connection stays out for it.
func TestPostgresSQLRowsLeftOpen(t *testing.T) {
	t.Parallel()
	_, st, db := pgSQLSetup(t)
	r := labtest.Claimed(t, st)
	rows, err := sqlTx(t, st, r).QueryContext(t.Context(), "SELECT generate_series(1, 1000000)") //nolint:rowserrcheck,sqlclosecheck // left open on purpose
	if err != nil || !rows.Next() {
		t.Fatal("no rows", err)
	}
	labtest.Want(t, "complete", labtest.Complete(t, st, r, "answer"), store.ErrNotApplied)
	labtest.Eventually(t, "the connection is back", func() bool { return db.Stats().InUse == 0 })
	again := labtest.Rival(r)
	labtest.WantClaim(t, st, again, store.Claimed)
	labtest.Must(t, labtest.Complete(t, st, again, "answer"))
}

// TestPostgresSQLStatementLeftRunning: a statement that the handler left running, which
// database/sql makes every other call wait for, holds a completion up to the end of its
// context and no longer.
func TestPostgresSQLStatementLeftRunning(t *testing.T) {
	t.Parallel()
	f, st, db := pgSQLSetup(t)
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

// TestPostgresSQLDrivers: a *sql.DB without a limit works, as does one over a driver that
// wraps pgx's, and one over another driver says so.
func TestPostgresSQLDrivers(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	config, err := pgx.ParseConfig(server.URL())
	labtest.Must(t, err)

	unlimited := stdlib.OpenDB(*config)
	defer func() { _ = unlimited.Close() }()
	pgTxOnce(t, f.transactionalSQL(t, unlimited))

	wrapped := sql.OpenDB(wrappingConnector{Connector: stdlib.GetConnector(*config), unwrap: true})
	wrapped.SetMaxOpenConns(4)
	defer func() { _ = wrapped.Close() }()
	pgTxOnce(t, f.transactionalSQL(t, wrapped))

	other := sql.OpenDB(wrappingConnector{Connector: stdlib.GetConnector(*config)})
	other.SetMaxOpenConns(4)
	defer func() { _ = other.Close() }()
	_, err = f.transactionalSQL(t, other).Claim(t.Context(), labtest.NewClaim())
	labtest.Want(t, "claim over another driver", err, store.ErrMisconfigured)

	shared := stdlib.OpenDBFromPool(f.Pool)
	shared.SetMaxOpenConns(4)
	defer func() { _ = shared.Close() }()
	pgTxOnce(t, f.transactionalSQL(t, shared))
}

// pgTxOnce claims and completes one operation over a *sql.DB.
func pgTxOnce(t *testing.T, st *labtest.TxStore) {
	t.Helper()
	r := labtest.Claimed(t, st)
	if _, err := sqlTx(t, st, r).ExecContext(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	labtest.Must(t, labtest.Complete(t, st, r, "answer"))
	labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
}

// wrappingConnector makes connections in a wrapper, as tracing drivers do.
type wrappingConnector struct {
	driver.Connector

	unwrap bool // they unwrap
}

// Connect implements driver.Connector.
func (c wrappingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if c.unwrap {
		return rawConn{opaqueConn{conn}}, nil
	}
	return opaqueConn{conn}, nil
}

type opaqueConn struct{ driver.Conn }

// BeginTx implements driver.ConnBeginTx.
func (c opaqueConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o) //nolint:forcetypeassert // pgx has it
}

// rawConn returns the connection that it wraps.
type rawConn struct{ opaqueConn }

// Raw returns the wrapped connection.
func (c rawConn) Raw() driver.Conn { return c.Conn }
