package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgRelease is a store of a release, and how its handlers have an effect.
type pgRelease struct {
	name   string
	store  reprise.Store
	effect func(context.Context, reprise.ClaimRequest, string, ...any) error
}

// pgDeploy is what several releases do to one table at once.
type pgDeploy struct {
	*pgFixture

	mu       sync.Mutex
	keys     []reprise.ClaimRequest
	running  map[reprise.ID]string // by which release
	answers  map[reprise.ID]string
	releases map[string]int // attempts by release
	replays  map[string]int // replays, by the releases that ran and replayed
}

// newPgDeploy returns a table of schema 2 with the stores of both releases.
func newPgDeploy(t *testing.T, transactional bool) (d *pgDeploy, former, next pgRelease) {
	t.Helper()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(12))
	pgFormer(t, f)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (id bytea PRIMARY KEY)")
	d = &pgDeploy{
		pgFixture: f, running: map[reprise.ID]string{}, answers: map[reprise.ID]string{},
		releases: map[string]int{}, replays: map[string]int{},
	}
	direct := func(ctx context.Context, _ reprise.ClaimRequest, sql string, args ...any) error {
		_, err := f.Pool.Exec(ctx, sql, args...)
		return err
	}
	if !transactional {
		return d, pgRelease{"former", &pgSchema2Leased{f.Pool, f.Config}, direct}, pgRelease{"next", f.Leased(t), direct}
	}
	old := &pgSchema2Tx{pool: labtest.NewPool(t, f.Pool.Config().ConnString(), labtest.MaxConns(12)), config: f.Config, attempts: map[reprise.Owner]*pgSchema2Attempt{}}
	now := f.Transactional(t)
	before := func(ctx context.Context, r reprise.ClaimRequest, sql string, args ...any) error {
		old.mu.Lock()
		a := old.attempts[r.Owner]
		old.mu.Unlock()
		_, err := a.conn.Exec(ctx, sql, args...)
		return err
	}
	after := func(ctx context.Context, r reprise.ClaimRequest, sql string, args ...any) error {
		_, err := pgTx(t, now, r).Exec(ctx, sql, args...) //nolint:contextcheck // pgTx binds the attempt and not a call
		return err
	}
	return d, pgRelease{"former", old, before}, pgRelease{"next", now, after}
}

// serve lets four workers of each release take keys together, until so many keys are
// done and until reports true.
func (d *pgDeploy) serve(t *testing.T, keys int, until func() bool, releases ...pgRelease) {
	t.Helper()
	for done := 0; done < keys || !until(); done++ {
		key := pgClaim()
		d.keys = append(d.keys, key)
		var wg sync.WaitGroup
		for _, release := range releases {
			for range 4 {
				wg.Go(func() { d.finish(t, release, key) })
			}
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
}

// finish claims a key until it is completed, by this worker or another.
func (d *pgDeploy) finish(t *testing.T, release pgRelease, key reprise.ClaimRequest) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		r := pgRival(key)
		got, err := release.store.Claim(ctx, r)
		switch {
		case err != nil:
			t.Errorf("claim of the %s release: %v", release.name, err)
			return
		case got.Outcome == reprise.InProgress:
			pgPass(time.Millisecond)
			continue
		case got.Outcome == reprise.Completed:
			d.replayed(t, release, r, got)
			return
		case got.Outcome != reprise.Claimed:
			t.Errorf("claim of the %s release answered %v", release.name, got.Outcome)
			return
		}
		if done, err := d.run(t, ctx, release, r, got); err != nil {
			t.Errorf("attempt of the %s release: %v", release.name, err)
			return
		} else if done {
			return
		}
	}
}

// run is one attempt. Some are released.
func (d *pgDeploy) run(t *testing.T, ctx context.Context, release pgRelease, r reprise.ClaimRequest, got reprise.ClaimResult) (done bool, err error) {
	d.mu.Lock()
	if other := d.running[r.ID]; other != "" {
		t.Errorf("the %s release runs an operation that the %s release is running", release.name, other)
	}
	d.running[r.ID] = release.name
	d.mu.Unlock()
	give := rand.N(4) == 0
	if !give {
		if err := release.effect(ctx, r, "INSERT INTO "+d.name("effects")+" VALUES ($1)", r.ID[:]); err != nil {
			return false, err
		}
	}
	answer := release.name + " " + strconv.FormatUint(got.Fence, 10)
	d.mu.Lock()
	d.running[r.ID] = ""
	if !give {
		d.answers[r.ID] = answer
		d.releases[release.name]++
	}
	d.mu.Unlock()
	if give {
		return false, release.store.Release(ctx, r.ID, r.Owner)
	}
	completion := pgCompletion(r, answer)
	completion.Attempt, completion.Fence, completion.Fingerprint = got.Attempt, got.Fence, r.Fingerprint
	return true, release.store.Complete(ctx, completion)
}

// replayed holds a replay to the answer of the one attempt that was completed.
func (d *pgDeploy) replayed(t *testing.T, release pgRelease, r reprise.ClaimRequest, got reprise.ClaimResult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	want := d.answers[r.ID]
	if string(got.Payload) != want {
		t.Errorf("the %s release replays %q, want %q", release.name, got.Payload, want)
	}
	ran, _, _ := strings.Cut(want, " ")
	d.replays[ran+" → "+release.name]++
}

// replayAll lets a release replay everything that was done so far.
func (d *pgDeploy) replayAll(t *testing.T, release pgRelease) {
	t.Helper()
	for _, key := range d.keys {
		got, err := release.store.Claim(t.Context(), pgRival(key))
		if err != nil || got.Outcome != reprise.Completed {
			t.Fatalf("a replay by the %s release: %v, %v", release.name, got.Outcome, err)
		}
		d.replayed(t, release, key, got)
		other := pgRival(key)
		other.Fingerprint[0]++
		if got, err := release.store.Claim(t.Context(), other); err != nil || got.Outcome != reprise.Mismatch {
			t.Fatalf("another request to the %s release: %v, %v", release.name, got.Outcome, err)
		}
	}
}

// during runs change, which may have to give up while the table is busy, and returns
// whether it is done.
func during(t *testing.T, what string, change func() error) (done func() bool) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for try := 1; ; try++ {
			err := change()
			var busy *pgconn.PgError
			switch {
			case err == nil:
				t.Logf("%s: %d tries", what, try)
				return
			case try < 20 && (errors.As(err, &busy) && busy.Code == "55P03" || errors.Is(err, reprise.ErrUnavailable)):
			default:
				t.Errorf("%s: %v", what, err)
				return
			}
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

// TestPostgresRollingUpgrade: the last release for schema 2 runs while the schema is
// migrated to version 3, beside this release on one table, and after a way back. No call
// fails, each key has its effect once, and each release replays what the other did.
func TestPostgresRollingUpgrade(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const keys = 60
			d, former, next := newPgDeploy(t, transactional)
			always := func() bool { return true }
			migrate := func() error { return reprisepg.Migrate(t.Context(), d.Pool, d.Config) }
			back := func() error {
				list, err := reprisepg.Migrations(d.Config)
				if err != nil {
					return err
				}
				return pgx.BeginFunc(t.Context(), d.Pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), list[2].Down)
					return err
				})
			}

			d.serve(t, keys, always, former)
			d.serve(t, keys, during(t, "up", migrate), former)
			d.serve(t, 4*keys, always, former, next)
			d.replayAll(t, former)
			d.replayAll(t, next)
			d.serve(t, keys, during(t, "down", back), former)
			d.replayAll(t, former)
			d.serve(t, keys, during(t, "up again", migrate), former)
			d.serve(t, keys, always, next)
			d.replayAll(t, next)

			if n := pgValue[int](t, d.Pool, "SELECT count(*) FROM "+d.name("effects")); n != len(d.keys) {
				t.Errorf("%d effects of %d keys", n, len(d.keys))
			}
			if n := pgValue[int](t, d.Pool, "SELECT count(*) FROM "+d.records()+" WHERE state = 2"); n != len(d.keys) {
				t.Errorf("%d completed records of %d keys", n, len(d.keys))
			}
			for _, way := range []string{"former → next", "next → former"} {
				if d.replays[way] == 0 {
					t.Errorf("no replay %s", way)
				}
			}
			t.Logf("%d keys; attempts %v, replays %v", len(d.keys), d.releases, d.replays)
		})
	}
}

// TestPostgresTakeoverBetweenReleases: what one release left lapsed the other takes over,
// and the former owner has lost it, whichever is which.
func TestPostgresTakeoverBetweenReleases(t *testing.T) {
	t.Parallel()
	d, former, next := newPgDeploy(t, false)
	pgWant(t, "Migrate", reprisepg.Migrate(t.Context(), d.Pool, d.Config), nil)
	for _, order := range [][2]pgRelease{{former, next}, {next, former}} {
		first, second := order[0].store, order[1].store
		r := pgClaim()
		r.Lease, r.Label = 50*time.Millisecond, "orders"
		granted := pgMustClaim(t, first, r, reprise.Claimed)
		statuses, err := first.Renew(t.Context(), []reprise.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: 100 * time.Millisecond}})
		if err != nil || statuses[0] != reprise.Renewed {
			t.Errorf("renewal by the %s release: %v, %v", order[0].name, statuses, err)
		}
		pgMustClaim(t, second, pgRival(r), reprise.InProgress)
		taker := pgRival(r)
		taker.Lease = time.Minute
		var got reprise.ClaimResult
		pgEventually(t, "a takeover", func() bool {
			got = pgMustNotFail(t, second, taker)
			return got.Outcome == reprise.Claimed
		})
		if got.Attempt != 2 || got.Fence <= granted.Fence {
			t.Errorf("the %s release took over as %+v after fence %d", order[1].name, got, granted.Fence)
		}
		pgWant(t, "completion of the former owner", pgComplete(t, first, r, "late"), reprise.ErrLeaseLost)
		pgWant(t, "completion", pgComplete(t, second, taker, "answer"), nil)
		if got := pgMustClaim(t, first, pgRival(r), reprise.Completed); string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}
		record, err := d.Leased(t).Inspect(t.Context(), r.ID)
		if err != nil || record.State != reprise.StateCompleted || record.CompletedAt.IsZero() || record.Attempt != 2 {
			t.Errorf("inspected %+v, %v", record, err)
		}
	}
}
