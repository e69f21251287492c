package postgres

import (
	"context"
	"log/slog"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgUse makes an engine that uses a store from now on, until the end of the test.
func pgUse(t *testing.T, st store.Store) *reprise.Engine {
	t.Helper()
	engine, err := reprise.New(st, reprise.Config{})
	labtest.Must(t, err)
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	res, err := engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: "k"})
	labtest.Must(t, err)
	labtest.Must(t, res.Attempt.Release())
	return engine
}

// pgExpired puts n records into the table that are due for a purge.
func (f *pgFixture) pgExpired(t *testing.T, n int) {
	t.Helper()
	f.exec(t, f.pgInsert("(SELECT sha256(n::text::bytea) AS id FROM generate_series(1, $1::integer) AS n) AS s",
		map[string]string{"valid_until": pgNow, "due_at": pgNow}), n)
}

// left returns how many records there are, without the emptied rows of released ones.
func (f *pgFixture) left(t *testing.T) int {
	t.Helper()
	return pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" WHERE valid_until > 0")
}

// TestPostgresPurgesWhileAnEngineUsesIt: both stores, over both kinds of pool, delete
// expired records while an engine uses them, again and again, and after a failure, which
// is logged. Without an engine they do not, and neither do they where the purge is off.
func TestPostgresPurgesWhileAnEngineUsesIt(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*pgFixture) store.Store{
		"pgx": func(f *pgFixture) store.Store { return f.Leased(t) },
		"sql": func(f *pgFixture) store.Store {
			return f.transactionalSQL(t, labtest.NewDB(t, f.Pool.Config().ConnString()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := pgSetup(t, servers.SharedPostgres(t))
			var log pgLog
			f.Config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			f.Config.PurgeEvery = -1
			f.pgExpired(t, 5)
			off, _ := store.As[store.Maintainer](open(f))
			off.Maintain(t.Context()) // returns
			f.Config.PurgeEvery = time.Second
			st := open(f)
			if n := f.left(t); n != 5 {
				t.Errorf("%d of 5 records are left before there is an engine", n)
			}
			engine := pgUse(t, st)
			empty := func() bool { return f.left(t) == 0 }
			labtest.Eventually(t, "the first purge", empty)
			f.pgExpired(t, 5)
			labtest.Eventually(t, "a later purge", empty)
			f.exec(t, "ALTER TABLE "+f.records()+" RENAME TO away")
			labtest.Eventually(t, "a failure is logged", func() bool { return log.contains("purge failed") })
			f.exec(t, "ALTER TABLE "+f.name("away")+" RENAME TO reprise_records")
			f.pgExpired(t, 5)
			labtest.Eventually(t, "a purge after the failure", empty)
			if n := log.count("purge failed"); n != 1 {
				t.Errorf("%d failures are logged, want one a minute", n)
			}
			labtest.Must(t, engine.Close(t.Context()))
		})
	}
}
