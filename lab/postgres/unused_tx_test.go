package postgres

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresHandlerOnTheWrongHandleIsReported: a handler that writes through a pool
// instead of its transaction leaves a row in each of three retries, and the log says why
// once the operation completes; at most once a minute. It says so over pgx and over
// database/sql, and of no handler that asked for its transaction or failed.
func TestPostgresHandlerOnTheWrongHandleIsReported(t *testing.T) {
	t.Parallel()
	errFailed := errors.New("failed")
	for name, open := range map[string]func(*pgFixture) store.Store{
		"reprisepg.Tx(": func(f *pgFixture) store.Store { return f.Transactional(t) },
		"reprisepg.SQLTx(": func(f *pgFixture) store.Store {
			return f.transactionalSQL(t, labtest.NewDB(t, servers.SharedPostgres(t).URL(), labtest.MaxConns(4)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := pgSetup(t, servers.SharedPostgres(t))
			f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer)")
			var log pgLog
			f.Config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			engine, err := reprise.New(open(f), reprise.Config{})
			pgWant(t, "engine", err, nil)
			t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
			attempt := func(key int, handler func(context.Context) error, keep bool) {
				t.Helper()
				op := reprise.Operation{Scope: "tenant", Key: strconv.Itoa(key)}
				got, err := engine.Begin(t.Context(), op)
				pgWant(t, "begin", err, nil)
				if got.Outcome != reprise.Claimed {
					t.Fatalf("begin answered %v", got.Outcome)
				}
				failed := handler(got.Attempt.Context())
				if failed != nil && !keep {
					pgWant(t, "release", got.Attempt.Release(), nil)
					return
				}
				_, err = got.Attempt.Complete(reprise.Completion{Payload: []byte("answer"), DiscardEffects: failed != nil})
				pgWant(t, "complete", err, nil)
			}
			silent := func(what string) {
				t.Helper()
				if log.contains("level=WARN") {
					t.Errorf("the log has a warning of %s", what)
				}
			}
			asks := func(ctx context.Context) error {
				_, pgx := reprisepg.Tx(ctx)
				_, sql := reprisepg.SQLTx(ctx)
				if pgx == sql {
					t.Errorf("a pgx.Tx: %t; a *sql.Tx: %t", pgx, sql)
				}
				return nil
			}
			wrong := func(result error) func(context.Context) error {
				return func(ctx context.Context) error {
					_, err := f.Pool.Exec(ctx, f.insertion(), 1)
					pgWant(t, "insert", err, nil)
					return result
				}
			}
			attempt(1, asks, false)
			silent("a handler that asked for its transaction")
			attempt(2, wrong(errFailed), true)
			silent("a handler whose effects were discarded")
			for range 2 {
				attempt(3, wrong(errFailed), false)
			}
			silent("attempts that were released")
			attempt(3, wrong(nil), false)
			if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.name("effects")); n != 4 {
				t.Errorf("%d effects, want those of all four attempts", n)
			}
			if !log.contains("level=WARN") || !log.contains(name) || !log.contains("attempts=1") {
				t.Error("the log does not say that a handler did not use its transaction")
			}
			attempt(4, wrong(nil), false)
			if log.count("level=WARN") != 1 {
				t.Error("the second report came within a minute")
			}
		})
	}
}
