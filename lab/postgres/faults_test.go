package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// handlers are those of the fixture, over a *sql.DB or a pool of pgx, on one table of
// effects.
func (f *pgFixture) handlers(t *testing.T, url string, sql bool, options ...labtest.PoolOption) *labtest.SQLHandlers {
	t.Helper()
	f.exec(t, "CREATE TABLE IF NOT EXISTS "+f.name("effects")+" (name text NOT NULL)")
	options = append(options, labtest.SessionParam("search_path", f.Config.Schema))
	h := &labtest.SQLHandlers{
		DB: labtest.NewDB(t, url, options...), Tx: reprisepg.SQLTx,
		Exec: func(ctx context.Context, statement string) error { return pgExecTx(ctx, statement) },
	}
	var err error
	if sql {
		h.Store, err = reprisepg.NewSQL(h.DB, f.Config)
	} else {
		h.Store, err = reprisepg.New(labtest.NewPool(t, url, options...), f.Config)
	}
	labtest.Must(t, err)
	return h
}

// onBoth runs a test of handlers over both kinds of pool, each of a size.
func onBoth(t *testing.T, conns int32, timeout time.Duration, test func(t *testing.T, h *labtest.SQLHandlers)) {
	t.Helper()
	for kind, sql := range map[string]bool{"pgx": false, "sql": true} {
		t.Run(fmt.Sprintf("%s, %d connections", kind, conns), func(t *testing.T) {
			t.Parallel()
			server := servers.SharedPostgres(t)
			f := pgSetup(t, server)
			f.Config.TxTimeout = timeout
			test(t, f.handlers(t, server.URL(), sql, labtest.MaxConns(conns)))
		})
	}
}

// pgExecTx executes a statement in the transaction of the attempt that ctx belongs to,
// of whichever kind it is.
func pgExecTx(ctx context.Context, statement string, args ...any) error {
	tx, err := reprisepg.Tx(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, statement, args...)
		return err
	}
	sqlTx, sqlErr := reprisepg.SQLTx(ctx)
	if errors.Is(sqlErr, store.ErrInvalid) {
		return err
	}
	if sqlErr == nil {
		_, sqlErr = sqlTx.ExecContext(ctx, statement, args...)
	}
	return sqlErr
}

// TestPostgresTransactionalCrash (G4): the server crashes in the middle of the work and
// recovers, and each operation has its effect once.
func TestPostgresTransactionalCrash(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	f := pgSetup(t, server)
	var (
		h      *labtest.SQLHandlers
		stores []store.Store
	)
	for range 2 {
		h = f.handlers(t, server.URL(), false, labtest.MaxConns(6))
		stores = append(stores, h.Store)
	}
	l := labtest.NewLoad(t, h.Write, stores...)
	stop := l.Start()
	for range 3 {
		l.Await()
		server.Crash(t)
		server.Restart(t)
	}
	stop()
	l.Judge(labtest.NewDB(t, server.URL(), labtest.SessionParam("search_path", f.Config.Schema)))
}
