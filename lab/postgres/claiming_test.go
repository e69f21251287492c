package postgres

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// prepared returns how many statements of the store the sessions of the pool keep, and
// how often they were executed.
func (f *pgFixture) prepared(t *testing.T) (statements, executed int) {
	t.Helper()
	for _, conn := range f.Pool.AcquireAllIdle(t.Context()) {
		var n, m int
		err := conn.QueryRow(t.Context(), "SELECT count(*), coalesce(sum(generic_plans + custom_plans), 0)::integer FROM pg_prepared_statements WHERE name LIKE 'reprise\\_%'",
			pgx.QueryExecModeSimpleProtocol).Scan(&n, &m)
		conn.Release()
		pgWant(t, "prepared statements", err, nil)
		statements, executed = statements+n, executed+m
	}
	return statements, executed
}

// TestPostgresTransactionalReplaysAreLooks: while replays are common the transactional
// store first reads the record: one statement without a transaction, sent in the pool's
// mode. It claims an ID that has no record.
func TestPostgresTransactionalReplaysAreLooks(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, mode := range pgModes {
		statements := &pgStatements{}
		f := pgSetup(t, server, statements.option, labtest.ExecMode(mode), labtest.MaxConns(4))
		f.Config.ExecMode, f.Config.Logger = mode, slog.New(slog.DiscardHandler)
		st := f.Transactional(t)
		done := pgClaim()
		pgMustClaim(t, st, done, store.Claimed)
		pgWant(t, "complete", pgComplete(t, st, done, "answer"), nil)
		for range 100 {
			pgMustClaim(t, st, pgRival(done), store.Completed)
		}
		other := pgRival(done)
		other.Fingerprint[0]++
		for outcome, r := range map[store.Outcome]store.ClaimRequest{store.Completed: pgRival(done), store.Mismatch: other} {
			before := statements.count()
			pgMustClaim(t, st, r, outcome)
			look := statements.last(t)
			if n := statements.count() - before; n != 1 || strings.Contains(look, "INSERT") {
				t.Errorf("%v: %v takes %d statements, the last of them %s", mode, outcome, n, look)
			}
			if !strings.Contains(look, "NOT pg_is_in_recovery()") {
				t.Errorf("%v: a look is %s", mode, look)
			}
		}
		if n, _ := f.prepared(t); (n > 0) != (mode == pgx.QueryExecModeCacheStatement) {
			t.Errorf("%v: the sessions keep %d statements", mode, n)
		}
		next := pgClaim()
		pgMustClaim(t, st, next, store.Claimed)
		pgWant(t, "release", st.Release(t.Context(), next.ID, next.Owner), nil)
		f.exec(t, "ALTER TABLE "+f.records()+" RENAME TO away")
		_, err := st.Claim(t.Context(), pgRival(done))
		pgWant(t, "a look that fails", err, store.ErrMisconfigured)
	}
}

// TestPostgresLooksFollowTheTraffic: replays and mismatches make the transactional store
// look before it claims, and new operations make it stop.
func TestPostgresLooksFollowTheTraffic(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), statements.option, labtest.MaxConns(4))
	done := pgClaim()
	fresh := func(st *reprisepg.TransactionalStore) int {
		t.Helper()
		r := pgClaim()
		before := statements.count()
		pgMustClaim(t, st, r, store.Claimed)
		n := statements.count() - before
		pgWant(t, "release", st.Release(t.Context(), r.ID, r.Owner), nil)
		return n
	}
	first := f.Transactional(t)
	pgMustClaim(t, first, done, store.Claimed)
	pgWant(t, "complete", pgComplete(t, first, done, "answer"), nil)
	bare := fresh(first)
	for _, outcome := range []store.Outcome{store.Completed, store.Mismatch} {
		st := f.Transactional(t)
		for range 100 {
			r := pgRival(done)
			if outcome == store.Mismatch {
				r.Fingerprint[0]++
			}
			pgMustClaim(t, st, r, outcome)
		}
		if n := fresh(st); n != bare+1 {
			t.Errorf("after a hundred times %v a claim is %d statements, want a look and %d", outcome, n, bare)
		}
		for range 100 {
			fresh(st)
		}
		if n := fresh(st); n != bare {
			t.Errorf("after a hundred new operations a claim is %d statements, want %d", n, bare)
		}
	}
}

// TestPostgresAttemptsArePrepared: the statements that almost every attempt needs, and
// the one that completes it, are prepared in its session before its transaction begins;
// none is when the pool prepares no statements. A server with transaction_timeout gets
// one more.
func TestPostgresAttemptsArePrepared(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		f := pgSetup(t, server, labtest.ExecMode(mode), labtest.MaxConns(4))
		st := f.Transactional(t)
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		var names, planned int
		const count = "SELECT count(*), coalesce(sum(generic_plans + custom_plans), 0)::integer FROM pg_prepared_statements WHERE name LIKE 'reprise\\_%'"
		err := pgTx(t, st, r).QueryRow(t.Context(), count, pgx.QueryExecModeSimpleProtocol).Scan(&names, &planned)
		pgWant(t, "count", err, nil)
		pgWant(t, "complete", pgComplete(t, st, r, "answer"), nil)
		after, executed := f.prepared(t)
		got, want := [4]int{names, planned, after, executed}, [4]int{5, 3, 5, 5} // BEGIN, the lock and the look, then the record and COMMIT
		switch {
		case mode == pgx.QueryExecModeExec:
			want = [4]int{}
		case pgLimitsTransactions(t, f):
			want = [4]int{6, 4, 6, 6}
		}
		if got != want {
			t.Errorf("%v: statements at the claim and executed, and so after the completion: %v, want %v", mode, got, want)
		}
	}
}

// TestPostgresUndecidedClaims: an owner whose claim had no result never gets InProgress
// while the lock may be its own, with or without a free transaction; and it runs when the
// lock is free.
func TestPostgresUndecidedClaims(t *testing.T) {
	t.Parallel()
	c := newPgCut(t, servers.SharedPostgres(t), labtest.MaxConns(3)) // one slot
	r, ready, busy := pgClaim(), pgClaim(), pgClaim()
	pgMustClaim(t, c.cut, ready, store.Claimed)
	pgWant(t, "release", c.cut.Release(t.Context(), ready.ID, ready.Owner), nil)
	holder := pgRival(r)
	pgMustClaim(t, c.store, holder, store.Claimed)
	pgMustClaim(t, c.cut, pgRival(r), store.InProgress)

	c.proxy.On("pg_try_advisory_xact_lock", servers.LoseReply)
	claim := func(want error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := c.cut.Claim(ctx, r)
		pgWant(t, "claim", err, want)
	}
	claim(store.ErrUnknown) // its result is lost
	claim(store.ErrUnknown)
	pgMustClaim(t, c.cut, pgRival(r), store.InProgress)
	pgMustClaim(t, c.cut, busy, store.Claimed)
	claim(store.ErrBusy)
	pgMustClaim(t, c.cut, pgRival(r), store.InProgress)
	pgWant(t, "release", c.cut.Release(t.Context(), busy.ID, busy.Owner), nil)
	claim(store.ErrUnknown)
	pgWant(t, "release", c.store.Release(t.Context(), holder.ID, holder.Owner), nil)
	pgMustClaim(t, c.cut, r, store.Claimed)
	pgWant(t, "complete", pgComplete(t, c.cut, r, "answer"), nil)
}

// TestPostgresRowsOfAnotherShape: where the type of a column was changed, a claim fails.
// It does not take an unreadable value for an expired lease.
func TestPostgresRowsOfAnotherShape(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(3)) // one slot
	running, busy := pgClaim(), pgClaim()
	pgMustClaim(t, f.Leased(t), running, store.Claimed)
	f.exec(t, "ALTER TABLE "+f.records()+" ALTER COLUMN lease_until TYPE text")
	st := f.Transactional(t)
	for _, what := range []string{"a claim in its transaction", "a claim without one"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := st.Claim(ctx, pgRival(running))
		cancel()
		pgWant(t, what, err, store.ErrUnknown)
		if what == "a claim in its transaction" {
			pgMustClaim(t, st, busy, store.Claimed)
		}
	}
	pgWant(t, "release", st.Release(t.Context(), busy.ID, busy.Owner), nil)
}

// TestPostgresUnappliedAttemptsFreeTheirLock: when an attempt is answered that it was not
// applied, its lock is free, its connection is kept for the next one, and its owner is
// told like any other that the operation is in progress elsewhere.
func TestPostgresUnappliedAttemptsFreeTheirLock(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	other := f.Transactional(t)
	connections := func() int64 { return f.Pool.Stat().NewConnsCount() }
	var before int64
	for n := range 6 {
		if n == 1 { // each of the two that are needed is there
			before = connections()
		}
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		if _, err := pgTx(t, st, r).Exec(t.Context(), "SELECT 1/0"); err == nil {
			t.Fatal("one divided by zero is something")
		}
		pgWant(t, "complete", pgComplete(t, st, r, "answer"), store.ErrNotApplied)
		rival := pgRival(r)
		pgMustClaim(t, other, rival, store.Claimed)
		pgMustClaim(t, st, r, store.InProgress)
		pgWant(t, "release", other.Release(t.Context(), rival.ID, rival.Owner), nil)
	}
	if n := connections() - before; n != 0 {
		t.Errorf("five attempts that failed cost %d connections", n)
	}
}

// TestPostgresLooksWithoutASlotArePrepared: and are not when the pool prepares no
// statements.
func TestPostgresLooksWithoutASlotArePrepared(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		f := pgSetup(t, server, labtest.ExecMode(mode), labtest.MaxConns(3)) // one slot
		st := f.Transactional(t)
		done, busy := pgClaim(), pgClaim()
		pgMustClaim(t, st, done, store.Claimed)
		pgWant(t, "complete", pgComplete(t, st, done, "answer"), nil)
		pgMustClaim(t, st, busy, store.Claimed)
		pgMustClaim(t, st, pgRival(done), store.Completed)
		looks := 0
		for _, conn := range f.Pool.AcquireAllIdle(t.Context()) {
			var n int
			err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'reprise\\_%' AND statement LIKE '%FROM pg_locks%'",
				pgx.QueryExecModeSimpleProtocol).Scan(&n)
			conn.Release()
			pgWant(t, "prepared statements", err, nil)
			looks += n
		}
		if (looks == 1) != (mode == pgx.QueryExecModeCacheStatement) {
			t.Errorf("%v: the sessions keep %d looks", mode, looks)
		}
		pgWant(t, "release", st.Release(t.Context(), busy.ID, busy.Owner), nil)
	}
}

// TestPostgresClaimsWithoutADeadlineGiveUp: they wait two seconds for a slot, and not for
// ever.
func TestPostgresClaimsWithoutADeadlineGiveUp(t *testing.T) {
	t.Parallel()
	_, st := pgTxSetup(t, labtest.MaxConns(3)) // one slot
	busy := pgClaim()
	pgMustClaim(t, st, busy, store.Claimed)
	answer := make(chan error, 1)
	go func() { _, err := st.Claim(context.WithoutCancel(t.Context()), pgClaim()); answer <- err }()
	pgEventually(t, "it has an answer", func() bool { return len(answer) > 0 })
	pgWant(t, "claim", <-answer, store.ErrBusy)
	if waited := st.Stats().LongestWait; waited < time.Second {
		t.Errorf("it waited %v", waited)
	}
	pgWant(t, "release", st.Release(t.Context(), busy.ID, busy.Owner), nil)
}

// TestPostgresReleaseOfALostConnection: an attempt whose connection the handler closed is
// released, and its slot and its key are free.
func TestPostgresReleaseOfALostConnection(t *testing.T) {
	t.Parallel()
	_, st := pgTxSetup(t)
	r := pgClaim()
	pgMustClaim(t, st, r, store.Claimed)
	pgWant(t, "close", pgTx(t, st, r).Conn().Close(t.Context()), nil)
	pgWant(t, "release", st.Release(t.Context(), r.ID, r.Owner), nil)
	if n := st.Stats().InUse; n != 0 {
		t.Errorf("%d slots are in use", n)
	}
	again := pgRival(r)
	pgEventually(t, "the key is free", func() bool { return pgMustNotFail(t, st, again).Outcome == store.Claimed })
	if _, err := pgTx(t, st, again).Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := st.Release(t.Context(), again.ID, again.Owner); errors.Is(err, store.ErrUnknown) {
		t.Errorf("release after a COMMIT of the handler: %v", err)
	}
}
