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
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgUse makes an engine that uses a store from now on, until the end of the test.
func pgUse(t *testing.T, st store.Store) *reprise.Engine {
	t.Helper()
	engine, err := reprise.New(st, reprise.Config{})
	pgWant(t, "engine", err, nil)
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	res, err := engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: "k"})
	pgWant(t, "begin", err, nil)
	pgWant(t, "release", res.Attempt.Release(), nil)
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
			f.Config.Purge.Every = -1
			f.pgExpired(t, 5)
			off, _ := store.As[store.Maintainer](open(f))
			off.Maintain(t.Context()) // returns
			f.Config.Purge.Every = time.Second
			st := open(f)
			if n := f.left(t); n != 5 {
				t.Errorf("%d of 5 records are left before there is an engine", n)
			}
			engine := pgUse(t, st)
			empty := func() bool { return f.left(t) == 0 }
			pgEventually(t, "the first purge", empty)
			f.pgExpired(t, 5)
			pgEventually(t, "a later purge", empty)
			f.exec(t, "ALTER TABLE "+f.records()+" RENAME TO away")
			pgEventually(t, "a failure is logged", func() bool { return log.contains("purge failed") })
			f.exec(t, "ALTER TABLE "+f.name("away")+" RENAME TO reprise_records")
			f.pgExpired(t, 5)
			pgEventually(t, "a purge after the failure", empty)
			if n := log.count("purge failed"); n != 1 {
				t.Errorf("%d failures are logged, want one a minute", n)
			}
			pgWant(t, "close", engine.Close(t.Context()), nil)
		})
	}
}

// TestPostgresPurgesInBatches: a round deletes all expired records in statements of a
// batch, with the pause between two of them; successes are not logged.
func TestPostgresPurgesInBatches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		records int
		pause   time.Duration
		want    string
	}{
		"no pause":     {5, 0, "{2,2,1}"},
		"a short one":  {4, time.Nanosecond, "{2,2}"},
		"a long pause": {5, time.Hour, "{2}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := pgSetup(t, servers.SharedPostgres(t))
			var log pgLog
			f.Config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			f.Config.Purge = reprisepg.Purging{Every: time.Second, Batch: 2, Pause: test.pause}
			f.exec(t, "CREATE TABLE "+f.name("purges")+" (n bigint, at timestamptz DEFAULT clock_timestamp())")
			f.exec(t, "CREATE FUNCTION "+f.name("note")+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "+f.name("purges")+
				" SELECT count(*) FROM gone HAVING count(*) > 0; RETURN NULL; END $$")
			f.pgExpired(t, test.records)
			st := f.Leased(t)
			f.exec(t, "CREATE TRIGGER note AFTER DELETE ON "+f.records()+" REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION "+f.name("note")+"()")
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); st.Maintain(ctx) }()
			purges := func() string {
				return pgValue[string](t, f.Pool, "SELECT coalesce(array_agg(n ORDER BY at), '{}')::text FROM "+f.name("purges"))
			}
			pgEventually(t, "the batches", func() bool { return len(purges()) >= len(test.want) })
			pgPass(20 * time.Millisecond) // to see that no further batch comes
			if got := purges(); got != test.want || log.contains("purge") {
				t.Errorf("%d records are purged in batches of %s, want %s", test.records, got, test.want)
			}
			stop()
			<-ended
		})
	}
}

// TestPostgresPurgeStatementIsBounded: a purge that takes longer than its bound ends, is
// logged, and is tried again in the next round. The end of the engine ends one at once.
func TestPostgresPurgeStatementIsBounded(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"bound": 100 * time.Millisecond, "close": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := pgSetup(t, servers.SharedPostgres(t))
			var log pgLog
			f.Config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			f.Config.Purge = reprisepg.Purging{Every: time.Second, Timeout: timeout}
			used := pgOn(labtest.NewPool(t, f.Pool.Config().ConnString()), f.Config)
			engine := pgUse(t, used.Leased(t))
			f.pgExpired(t, 1)
			lock, err := f.Pool.Begin(t.Context())
			pgWant(t, "begin", err, nil)
			defer func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) }()
			if _, err := lock.Exec(t.Context(), "LOCK TABLE "+f.records()+" IN ACCESS EXCLUSIVE MODE"); err != nil {
				t.Fatal(err)
			}
			if name == "close" {
				pgEventually(t, "a purge waits", func() bool { return used.Pool.Stat().AcquiredConns() == 1 })
				ctx, cancel := pgCall(t)
				defer cancel()
				pgWant(t, "close", engine.Close(ctx), nil)
				labtest.ClosePool(t, used.Pool)
				if log.contains("purge") {
					t.Error("the end of the engine is logged as a failure")
				}
				return
			}
			pgEventually(t, "the bound is logged", func() bool { return log.contains("purge failed") })
			pgWant(t, "rollback", lock.Rollback(t.Context()), nil)
			pgEventually(t, "a later round purges", func() bool { return f.left(t) == 0 })
		})
	}
}

// TestPostgresPurgesBehindPgBouncer: several stores purge one table, over fewer sessions.
func TestPostgresPurgesBehindPgBouncer(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	bouncer := server.StartPgBouncer(t, "default_pool_size=2")
	f := pgSetup(t, server)
	f.Config.Purge = reprisepg.Purging{Every: time.Second, Batch: 2}
	for range 3 {
		pooled := pgOn(labtest.NewPool(t, bouncer.URL()), f.Config)
		pgUse(t, pooled.Leased(t))
	}
	for range 3 {
		f.pgExpired(t, 20)
		pgEventually(t, "a purge", func() bool { return f.left(t) == 0 })
	}
}

// TestPostgresPurgesAfterARestart: a crash of the server ends a purge that runs, and the
// store purges again once the server is back.
func TestPostgresPurgesAfterARestart(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	f := pgSetup(t, server)
	var log pgLog
	f.Config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	f.Config.Purge.Every = time.Second
	pgUse(t, pgOn(labtest.NewPool(t, server.URL()), f.Config).Leased(t))
	f.pgExpired(t, 5)
	pgEventually(t, "a purge", func() bool { return f.left(t) == 0 })
	f.Pool.Reset()
	server.Crash(t)
	pgEventually(t, "a failure is logged", func() bool { return log.contains("purge failed") })
	server.Restart(t)
	f.pgExpired(t, 5)
	pgEventually(t, "a purge after the restart", func() bool { return f.left(t) == 0 })
}
