package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresClaimMeetsRelease: a claim that read a lapsed record, and finds it locked
// by the transaction that deletes it, does not wait for that transaction, and takes
// neither attempt nor fence from the deleted row.
func TestPostgresClaimMeetsRelease(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	lapsed := pgClaim()
	lapsed.Lease = time.Millisecond
	first := pgMustClaim(t, st, lapsed, store.Claimed)
	pgPass(5 * time.Millisecond)

	release, err := f.Pool.Begin(t.Context())
	pgWant(t, "begin", err, nil)
	defer func() { _ = release.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := release.Exec(t.Context(), "DELETE FROM "+f.records()+" WHERE id = $1", lapsed.ID[:]); err != nil {
		t.Fatal(err)
	}
	answered := make(chan store.ClaimResult, 1)
	rival := pgRival(lapsed)
	go func() { answered <- pgMustNotFail(t, st, rival) }()
	select {
	case got := <-answered:
		if got.Outcome != store.InProgress || got.Remaining <= 0 {
			t.Errorf("a claim of a record that is just being deleted answered %+v", got)
		}
	case <-time.After(time.Minute):
		t.Error("a claim waits for the transaction of another owner")
	}
	pgWant(t, "commit", release.Commit(t.Context()), nil)
	if t.Failed() { // the claim that waited goes on
		<-answered
		return
	}
	got := pgMustClaim(t, st, pgRival(lapsed), store.Claimed)
	if got.Attempt != 1 || got.Fence <= first.Fence {
		t.Errorf("attempt %d with fence %d after a release and fence %d", got.Attempt, got.Fence, first.Fence)
	}
}

// TestPostgresLeaseIsWhole: a claim that waits for an insert which is then rolled back
// has its whole lease from the moment of its result, not the remainder after the wait; so
// have the validity and the purge's index column. This holds for each of the statements
// that create one record.
func TestPostgresLeaseIsWhole(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	unprepared := f.in(t, pgx.QueryExecModeExec)
	for name, st := range map[string]*reprisepg.Store{"prepared": f.Leased(t), "unprepared": unprepared.Leased(t)} {
		r := pgClaim()
		r.Lease = 200 * time.Millisecond
		insert, err := f.Pool.Begin(t.Context())
		pgWant(t, "begin", err, nil)
		t.Cleanup(func() { _ = insert.Rollback(context.WithoutCancel(t.Context())) })
		if _, err := insert.Exec(t.Context(), "INSERT INTO "+f.records()+` (id, version, state, attempt, fence, owner, fingerprint, payload, lease_until, valid_until, expires_at, created_at)
			VALUES ($1::bytea, 1, 2, 1, 1, substr($1::bytea, 1, 16), $1::bytea, '', now(), now() + interval '1 hour', now() + interval '1 hour', now())`, r.ID[:]); err != nil {
			t.Fatal(err)
		}
		bystander := pgClaim()
		pgMustClaim(t, st, bystander, store.Claimed)
		answered := make(chan store.ClaimResult, 1)
		go func() { answered <- pgMustNotFail(t, st, r) }()
		pgEventually(t, "the claim waits", func() bool {
			return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'", f.Config.Schema) == 1
		})
		pgPass(r.Lease + 50*time.Millisecond)
		from := pgValue[time.Time](t, f.Pool, "SELECT clock_timestamp()")
		pgWant(t, "rollback", insert.Rollback(t.Context()), nil)
		got := <-answered
		if got.Outcome != store.Claimed || got.Remaining < r.Lease/2 || got.Remaining > r.Lease {
			t.Errorf("%s: claim answered %v with %v of a lease of %v", name, got.Outcome, got.Remaining, r.Lease)
		}
		var lease, valid, expires, to time.Time
		if err := f.Pool.QueryRow(t.Context(), "SELECT lease_until, valid_until, expires_at, clock_timestamp() FROM "+f.records()+" WHERE id = $1", r.ID[:]).
			Scan(&lease, &valid, &expires, &to); err != nil {
			t.Fatal(err)
		}
		for what, i := range map[string]struct {
			at          time.Time
			least, most time.Duration
		}{
			"lease":              {lease, r.Lease, r.Lease},
			"validity":           {valid, r.Retention, r.Retention},
			"room for the purge": {expires, r.Retention + time.Hour, r.Retention + time.Hour},
		} {
			if i.at.Before(from.Add(i.least)) || i.at.After(to.Add(i.most)) {
				t.Errorf("%s: the %s ends at %v, want %v to %v", name, what, i.at, from.Add(i.least), to.Add(i.most))
			}
		}
		if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" WHERE id = $1 AND lease_until > now() + interval '30 seconds'", bystander.ID[:]); n != 1 {
			t.Errorf("%s: a claim that waited changed another record", name)
		}
	}
}

// TestPostgresClaimAgainMeetsCompletion: a claim that its owner repeats, and that finds
// the row locked by the completion of the same attempt, returns the completed record.
func TestPostgresClaimAgainMeetsCompletion(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	r := pgClaim()
	pgMustClaim(t, st, r, store.Claimed)
	completion := f.pgHold(t, r.ID, "state = 2, payload = 'answer', lease_until = clock_timestamp()")
	answered := make(chan store.ClaimResult, 1)
	go func() { answered <- pgMustNotFail(t, st, r) }()
	pgEventually(t, "the claim waits", func() bool {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'", f.Config.Schema) == 1
	})
	pgWant(t, "commit", completion.Commit(t.Context()), nil)
	if got := <-answered; got.Outcome != store.Completed || string(got.Payload) != "answer" {
		t.Errorf("a claim again was answered %v with %q", got.Outcome, got.Payload)
	}
}

// TestPostgresLeaseOfAClaimAgainIsWhole: a claim that its owner repeats, and that waits
// for a transaction which is then undone, has its whole lease from the moment of its
// result.
func TestPostgresLeaseOfAClaimAgainIsWhole(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	r := pgClaim()
	first := pgMustClaim(t, st, r, store.Claimed)
	again := r
	again.Lease = 200 * time.Millisecond
	completion := f.pgHold(t, r.ID, "state = 2, payload = 'answer'")
	answered := make(chan store.ClaimResult, 1)
	go func() { answered <- pgMustNotFail(t, st, again) }()
	pgEventually(t, "the claim waits", func() bool {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'", f.Config.Schema) == 1
	})
	pgPass(again.Lease + 50*time.Millisecond)
	from := pgValue[time.Time](t, f.Pool, "SELECT clock_timestamp()")
	pgWant(t, "rollback", completion.Rollback(t.Context()), nil)
	if got := <-answered; got.Outcome != store.Claimed || got.Fence != first.Fence || got.Remaining < again.Lease/2 || got.Remaining > again.Lease {
		t.Errorf("a claim again was answered %+v for a lease of %v", got, again.Lease)
	}
	if until := pgValue[time.Time](t, f.Pool, "SELECT lease_until FROM "+f.records()); until.Before(from.Add(again.Lease)) {
		t.Errorf("the lease ends at %v, %v after the end of the wait", until, until.Sub(from))
	}
}

// TestPostgresTakenOverAfterAWait: a claim that creates its record after a wait commits
// with a lease that has lapsed. Where a rival takes the record over before the lease is
// whole, the claim is granted with its fence and without a lease, and not answered as if
// it had never been.
func TestPostgresTakenOverAfterAWait(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4))
	before := &pgBefore{part: "RETURNING (extract(epoch FROM lease_until - clock_timestamp())"}
	st := pgOn(labtest.NewPool(t, servers.SharedPostgres(t).URL(), before.option, labtest.MaxConns(1)), f.Config).Leased(t)
	r := pgClaim()
	r.Lease = 50 * time.Millisecond
	insert, err := f.Pool.Begin(t.Context())
	pgWant(t, "begin", err, nil)
	t.Cleanup(func() { _ = insert.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := insert.Exec(t.Context(), "INSERT INTO "+f.records()+` (id, version, state, attempt, fence, owner, fingerprint, payload, lease_until, valid_until, expires_at, created_at)
		VALUES ($1::bytea, 1, 2, 1, 1, substr($1::bytea, 1, 16), $1::bytea, '', now(), now(), now(), now())`, r.ID[:]); err != nil {
		t.Fatal(err)
	}
	var rival store.ClaimResult
	before.do = func() { rival = pgMustNotFail(t, f.Leased(t), pgRival(r)) }
	answered := make(chan store.ClaimResult, 1)
	go func() { answered <- pgMustNotFail(t, st, r) }()
	pgEventually(t, "the claim waits", func() bool {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'", f.Config.Schema) == 1
	})
	pgPass(2 * r.Lease)
	pgWant(t, "rollback", insert.Rollback(t.Context()), nil)
	if got := <-answered; got.Outcome != store.Claimed || got.Attempt != 1 || got.Remaining > 0 || rival.Attempt != 2 || rival.Fence <= got.Fence {
		t.Errorf("the claim was answered %+v, and the takeover %+v", got, rival)
	}
}

// TestPostgresFenceOfACreation: a creation waits for another creation of the same ID and
// reads the clock after it, so that its fence is not below one that was granted and
// released in between. Others in the same batch do not wait. This holds for each of the
// statements that create. The lock is exclusive.
func TestPostgresFenceOfACreation(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(8))
	unprepared := f.in(t, pgx.QueryExecModeExec)
	for _, test := range []struct {
		store   *reprisepg.Store
		callers int
	}{{f.Leased(t), 1}, {f.Leased(t), manyCallers}, {unprepared.Leased(t), 1}} {
		st, callers := test.store, test.callers
		r := pgClaim()
		rival, err := f.Pool.Begin(t.Context())
		pgWant(t, "begin", err, nil)
		t.Cleanup(func() { _ = rival.Rollback(context.WithoutCancel(t.Context())) })
		if _, err := rival.Exec(t.Context(), `SELECT pg_advisory_xact_lock_shared(('x' || encode(substr($1::bytea, 1, 8), 'hex'))::bit(64)::bigint # $2::regclass::oid::bigint)`,
			r.ID[:], f.records()); err != nil {
			t.Fatal(err)
		}
		answered := make(chan store.ClaimResult, 1)
		var others sync.WaitGroup
		others.Add(callers - 1)
		go pgTogether(callers, func(i int) {
			if i == callers-1 {
				answered <- pgMustNotFail(t, st, r)
				return
			}
			defer others.Done()
			pgMustNotFail(t, st, pgClaim())
		})
		others.Wait()
		pgEventually(t, "the claim waits", func() bool {
			return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE '%' || $1 || '%'", f.Config.Schema) == 1
		})
		var fence int64
		if err := rival.QueryRow(t.Context(), "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&fence); err != nil {
			t.Fatal(err)
		}
		pgWant(t, "commit", rival.Commit(t.Context()), nil)
		if got := <-answered; got.Outcome != store.Claimed || got.Fence < uint64(fence) {
			t.Errorf("%d callers: %v with fence %d, after one of %d", callers, got.Outcome, got.Fence, fence)
		}
	}
}

// TestPostgresTakeoverMeetsCreation: while a transaction holds the lock under which
// records of an ID are created, no claim writes a new fence into its row: that
// transaction may have read the clock before, and would create its record after a
// release. The owner's own repetition goes on.
func TestPostgresTakeoverMeetsCreation(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(8))
	unprepared := f.in(t, pgx.QueryExecModeExec)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, st := range map[string]*reprisepg.Store{"prepared": f.Leased(t), "unprepared": unprepared.Leased(t)} {
		lapsed, over, running := pgClaim(), pgClaim(), pgClaim()
		for _, r := range []store.ClaimRequest{lapsed, over, running} {
			pgMustClaim(t, st, r, store.Claimed)
		}
		f.exec(t, f.pgDamage("lease_until = now()"), lapsed.ID[:])
		f.exec(t, f.pgDamage("lease_until = now(), valid_until = now()"), over.ID[:])
		creation, err := f.Pool.Begin(t.Context())
		pgWant(t, "begin", err, nil)
		t.Cleanup(func() { _ = creation.Rollback(context.WithoutCancel(t.Context())) })
		for _, r := range []store.ClaimRequest{lapsed, over, running} {
			if _, err := creation.Exec(t.Context(), `SELECT pg_advisory_xact_lock(('x' || encode(substr($1::bytea, 1, 8), 'hex'))::bit(64)::bigint # $2::regclass::oid::bigint)`,
				r.ID[:], f.records()); err != nil {
				t.Fatal(err)
			}
		}
		if got := pgMustNotFail(t, st, pgRival(lapsed)); got.Outcome != store.InProgress || got.Remaining <= 0 {
			t.Errorf("%s: a takeover during a creation is answered %+v, want in progress", name, got)
		}
		if got, err := st.Claim(ctx, pgRival(over)); !errors.Is(err, store.ErrBusy) {
			t.Errorf("%s: the claim of an expired record during a creation is answered %+v, %v; want ErrBusy", name, got, err)
		}
		pgMustClaim(t, st, running, store.Claimed)
		pgWant(t, "commit", creation.Commit(t.Context()), nil)
		pgMustClaim(t, st, pgRival(lapsed), store.Claimed)
		pgMustClaim(t, st, pgRival(over), store.Claimed)
	}
}

// TestPostgresLookOfAStandby: where replays are common a claim begins with a SELECT,
// which a standby would serve with stale data. It returns no record there, and the claim
// is refused as every claim on a standby is.
func TestPostgresLookOfAStandby(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	statements := &pgStatements{}
	f := pgSetup(t, server, statements.option)
	st := f.Leased(t)
	r := pgClaim()
	pgMustClaim(t, st, r, store.Claimed)
	pgWant(t, "complete", pgComplete(t, st, r, pgBody), nil)
	for range 100 {
		pgMustClaim(t, st, pgRival(r), store.Completed)
	}
	look := statements.last(t)
	if strings.Contains(look, "INSERT") {
		t.Fatalf("after a hundred replays a claim begins with %s", look)
	}
	before := statements.count()
	pgMustClaim(t, st, pgRival(r), store.Completed)
	if got := statements.count() - before; got != 1 {
		t.Errorf("a replay takes %d statements", got)
	}
	count := "SELECT count(*) FROM (" + look + ") AS l"
	if n := pgValue[int](t, f.Pool, count, r.ID[:]); n != 1 {
		t.Errorf("the look finds %d records", n)
	}
	if !pgValue[bool](t, f.Pool, "SELECT l.now = now() FROM ("+look+") AS l", r.ID[:]) {
		t.Error("the look comes with a later clock than the start of its transaction")
	}
	standby := server.StartStandby(t)
	reader := labtest.NewPool(t, standby.URL())
	pgEventually(t, "the standby has the record", func() bool {
		var n int
		err := reader.QueryRow(t.Context(), "SELECT count(*) FROM "+f.records()+" WHERE state = 2").Scan(&n)
		return err == nil && n == 1
	})
	if n := pgValue[int](t, reader, count, r.ID[:]); n != 0 {
		t.Errorf("the look finds %d records on a standby", n)
	}
	unprepared := pgOn(reader, f.Config).in(t, pgx.QueryExecModeExec)
	for what, st := range map[string]store.Store{
		"prepared": pgOn(reader, f.Config).Leased(t), "unprepared": unprepared.Leased(t),
	} {
		_, err := st.Claim(t.Context(), pgRival(r))
		pgWant(t, "replay on a standby, "+what, err, store.ErrUnavailable)
	}
	batch := "SELECT count(*) FROM " + f.name("reprise_records_claims_v1") + "(array[$1::bytea], array[$1::bytea], array[$1::bytea], array[1], " +
		"array[interval '1 hour'], array[3600000000], array[0], array[''], array[false], array[''], true)"
	var n int
	if err := reader.QueryRow(t.Context(), batch, r.ID[:]).Scan(&n); err == nil || !strings.Contains(err.Error(), "may be behind") {
		t.Errorf("a batch on a standby answers %d records, %v", n, err)
	}
}
