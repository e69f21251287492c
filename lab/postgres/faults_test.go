package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
		DB:   labtest.NewDB(t, url, options...),
		Exec: func(ctx context.Context, statement string) error { return pgExecTx(ctx, statement) },
	}
	var err error
	if sql {
		h.Store, err = reprisepg.New(h.DB, f.Config)
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

// load starts clients of handlers in some processes. It returns them, and a function
// that stops and judges them.
func (f *pgFixture) load(t *testing.T, server *servers.PostgresServer, processes int, sql bool, options ...labtest.PoolOption) (l *labtest.Load, end func()) {
	t.Helper()
	var (
		h      *labtest.SQLHandlers
		stores []store.Store
	)
	for range processes {
		h = f.handlers(t, server.URL(), sql, append(options, labtest.MaxConns(6))...)
		stores = append(stores, h.Store)
	}
	l = labtest.NewLoad(t, h.Write, stores...)
	stop := l.Start()
	return l, func() {
		t.Helper()
		stop()
		l.Judge(labtest.NewDB(t, server.URL(), labtest.SessionParam("search_path", f.Config.Schema)))
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

// TestPostgresTransactionalKills (G4): sessions are terminated at random moments, and
// each operation has its effect once.
func TestPostgresTransactionalKills(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for kind, sql := range map[string]bool{"pgx": false, "sql": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := pgSetup(t, server)
			name := kind + "_kills_" + f.Config.Schema
			l, end := f.load(t, server, 3, sql, labtest.SessionParam("application_name", name))
			killed, enough := 0, labtest.Times(200, 60)
			for until := time.Now().Add(labtest.Soak(t)); (killed < enough || time.Now().Before(until)) && !t.Failed(); {
				if killed%20 == 0 {
					l.Await()
				}
				// Only busy ones: to end an idle one is no fault.
				killed += pgValue[int](t, f.Pool, `SELECT count(pg_terminate_backend(pid)) FROM
					(SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND state <> 'idle' ORDER BY random() LIMIT 1) AS a`, name)
				pgPass(rand.N(20 * time.Millisecond))
			}
			end()
			t.Logf("%d sessions were killed", killed)
		})
	}
}

// TestPostgresTransactionalCrash (G4): the server crashes in the middle of the work and
// recovers, and each operation has its effect once.
func TestPostgresTransactionalCrash(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	l, end := pgSetup(t, server).load(t, server, 2, false)
	for range 3 {
		l.Await()
		server.Crash(t)
		server.Restart(t)
	}
	end()
}
