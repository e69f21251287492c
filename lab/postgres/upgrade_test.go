package postgres

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgNext is a migration of a next release, and pgBack undoes it: another column, and
// another function beside those of this release.
func pgNext(f *pgFixture) (next, back string) {
	name := func(text string) string {
		return strings.NewReplacer("{records}", f.records(), "{claims}", f.name("reprise_records_claims_v2"),
			"{migrations}", f.name("reprise_records_migrations")).Replace(text)
	}
	return name(`SET LOCAL lock_timeout = '3s';
			ALTER TABLE {records} ADD COLUMN note text NOT NULL DEFAULT '';
			CREATE FUNCTION {claims}(bytea, text) RETURNS text LANGUAGE sql AS 'SELECT note FROM {records} WHERE id = $1';
			INSERT INTO {migrations} (version) SELECT max(version) + 1 FROM {migrations}`),
		name(`SET LOCAL lock_timeout = '3s';
			DROP FUNCTION {claims};
			ALTER TABLE {records} DROP COLUMN note;
			DELETE FROM {migrations} WHERE version = (SELECT max(version) FROM {migrations})`)
}

// pgDeploy is a store in use while its schema changes.
type pgDeploy struct {
	*pgFixture

	store  store.Store
	effect func(ctx context.Context, r store.ClaimRequest, sql string, args ...any) error
	keys   int

	mu      sync.Mutex
	running map[store.ID]bool
	answers map[store.ID]string
}

// serve lets eight workers take keys together, sixty at least and until done reports
// true.
func (d *pgDeploy) serve(t *testing.T, done func() bool) {
	t.Helper()
	for served := 0; served < 60 || !done(); served++ {
		key := pgClaim()
		d.keys++
		pgTogether(8, func(int) { d.finish(t, key) })
		if t.Failed() {
			t.FailNow()
		}
	}
}

// finish claims a key until it is completed, by this worker or another.
func (d *pgDeploy) finish(t *testing.T, key store.ClaimRequest) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for completed := false; !completed; {
		r := pgRival(key)
		got, err := d.store.Claim(ctx, r)
		switch {
		case err != nil:
			t.Errorf("claim: %v", err)
			return
		case got.Outcome == store.InProgress:
			pgPass(time.Millisecond)
		case got.Outcome == store.Completed:
			d.mu.Lock()
			want := d.answers[r.ID]
			d.mu.Unlock()
			if string(got.Payload) != want {
				t.Errorf("replayed %q, want %q", got.Payload, want)
			}
			return
		case got.Outcome == store.Claimed:
			if completed, err = d.run(t, ctx, r, got); err != nil {
				t.Errorf("attempt: %v", err)
				return
			}
		default:
			t.Errorf("claim answered %v", got.Outcome)
			return
		}
	}
}

// run is one attempt. A quarter of them are released.
func (d *pgDeploy) run(t *testing.T, ctx context.Context, r store.ClaimRequest, got store.ClaimResult) (completed bool, err error) {
	d.mu.Lock()
	if d.running[r.ID] {
		t.Error("two attempts of one operation run")
	}
	d.running[r.ID] = true
	d.mu.Unlock()
	release := rand.N(4) == 0
	if !release {
		if err := d.effect(ctx, r, "INSERT INTO "+d.name("effects")+" VALUES ($1)", r.ID[:]); err != nil {
			return false, err
		}
	}
	answer := strconv.FormatUint(got.Fence, 10)
	d.mu.Lock()
	d.running[r.ID] = false
	if !release {
		d.answers[r.ID] = answer
	}
	d.mu.Unlock()
	if release {
		return false, d.store.Release(ctx, r.ID, r.Owner)
	}
	return true, d.store.Complete(ctx, pgCompletion(r, answer))
}

// during runs statements, again where they gave up because the table was busy. done
// reports whether they have ended.
func (d *pgDeploy) during(t *testing.T, statements string) (done func() bool) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for try := 1; ; try++ {
			_, err := d.Pool.Exec(t.Context(), statements)
			var busy *pgconn.PgError
			if errors.As(err, &busy) && busy.Code == "55P03" && try < 20 {
				continue
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
	}()
	return func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
}

// TestPostgresRollingUpgrade: a next release migrates the schema while this one runs, and
// takes it back. No call fails, and each key has its effect once.
func TestPostgresRollingUpgrade(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(12))
			f.exec(t, "CREATE TABLE "+f.name("effects")+" (id bytea PRIMARY KEY)")
			d := &pgDeploy{pgFixture: f, running: map[store.ID]bool{}, answers: map[store.ID]string{}}
			d.store, d.effect = f.Leased(t), func(ctx context.Context, _ store.ClaimRequest, sql string, args ...any) error {
				_, err := f.Pool.Exec(ctx, sql, args...)
				return err
			}
			if transactional {
				st := f.Transactional(t)
				d.store, d.effect = st, func(ctx context.Context, r store.ClaimRequest, sql string, args ...any) error {
					_, err := pgTx(t, st, r).Exec(ctx, sql, args...) //nolint:contextcheck // pgTx binds the attempt and not a call
					return err
				}
			}
			next, back := pgNext(f)
			for range labtest.Times(2, 1) {
				d.serve(t, d.during(t, next))
				d.serve(t, d.during(t, back))
			}
			if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.name("effects")); n != d.keys {
				t.Errorf("%d effects of %d keys", n, d.keys)
			}
			if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" WHERE state = 2"); n != d.keys {
				t.Errorf("%d completed records of %d keys", n, d.keys)
			}
		})
	}
}

// TestPostgresSessionsOutliveMigrations: statements that sessions prepared go on after
// the schema changed and changed back, alone, in batches and in transactions.
func TestPostgresSessionsOutliveMigrations(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(8))
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer)")
	leased, transactional := f.Leased(t), f.Transactional(t)
	next, back := pgNext(f)
	for _, change := range []string{"SELECT", next, back} {
		f.exec(t, change)
		pgTogether(manyCallers, func(int) {
			r := pgClaim()
			pgMustClaim(t, leased, r, store.Claimed)
			pgWant(t, "complete", pgComplete(t, leased, r, pgBody), nil)
			pgMustClaim(t, leased, pgRival(r), store.Completed)
		})
		f.exec(t, "TRUNCATE "+f.name("effects"))
		pgTransactionalLife(t, f, transactional)
		f.exec(t, "DELETE FROM "+f.records())
		pgLeasedLife(t, leased)
	}
}

// TestPostgresNewerSchema: a release leaves the schema of a next one alone and runs on it
// with a warning. Without a function that it calls, or with another one in its place, it
// refuses the schema with a remedy.
func TestPostgresNewerSchema(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	var log pgLog
	f.Config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	pgWant(t, "Migrate again", reprisepg.Migrate(t.Context(), f.Pool, f.Config), nil)
	if log.contains("newer than") {
		t.Error("the log says that the schema of this release is newer")
	}
	next, back := pgNext(f)
	f.exec(t, next)
	pgWant(t, "Migrate on a newer schema", reprisepg.Migrate(t.Context(), f.Pool, f.Config), nil)
	if !log.contains("newer than") {
		t.Error("nothing in the log says that the schema is newer")
	}
	if codes := pgFindings(t, f.Leased(t)); !slices.Equal(codes, []string{"schema-version"}) {
		t.Errorf("Check on a newer schema finds %v", codes)
	}
	pgLeasedLife(t, f.Leased(t))

	f.exec(t, "DROP FUNCTION "+f.name("reprise_records_claims_v1"))
	refused := func(what string) {
		t.Helper()
		err := reprisepg.Migrate(t.Context(), f.Pool, f.Config)
		pgWant(t, "Migrate "+what, err, store.ErrMisconfigured)
		_, opened := reprisepg.Open(t.Context(), f.Pool, f.Config)
		pgWant(t, "Open "+what, opened, store.ErrMisconfigured)
		for _, err := range []error{err, opened} {
			if !strings.Contains(err.Error(), "lacks a function that this release calls") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	refused("without a function")
	f.exec(t, "CREATE FUNCTION "+f.name("reprise_records_claims_v1")+"(bytea, bytea) RETURNS text LANGUAGE sql AS 'SELECT 1::text'")
	refused("with another function")
	f.exec(t, back)
	refused("on its own version of the schema")
}
