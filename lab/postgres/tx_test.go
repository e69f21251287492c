package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgTxSetup is a transactional store with a table for effects.
func pgTxSetup(t *testing.T, options ...labtest.PoolOption) (*pgFixture, *reprisepg.TransactionalStore) {
	t.Helper()
	f := pgSetup(t, servers.SharedPostgres(t), options...)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer PRIMARY KEY)")
	store := f.Transactional(t)
	return f, store
}

// effects returns how many effects there are.
func (f *pgFixture) effects(t *testing.T) int {
	t.Helper()
	return pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.name("effects"))
}

// insertion is the statement of an effect.
func (f *pgFixture) insertion() string {
	return fmt.Sprintf("INSERT INTO %s VALUES ($1)", f.name("effects"))
}

// insert has an effect in a transaction.
func (f *pgFixture) insert(t *testing.T, tx pgx.Tx, n int) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), "INSERT INTO "+f.name("effects")+" VALUES ($1)", n); err != nil {
		t.Fatal(err)
	}
}

// TestPostgresTxIsEndedByTheStore: Commit and Rollback of the handler are refused without
// effect; savepoints are the handler's own; and after the attempt no statement reaches
// the connection.
func TestPostgresTxIsEndedByTheStore(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	ctx := t.Context()
	r := pgClaim()
	pgMustClaim(t, st, r, store.Claimed)
	tx := pgTx(t, st, r)
	f.insert(t, tx, 1)
	pgWant(t, "Commit", tx.Commit(ctx), reprisepg.ErrTxManaged)
	pgWant(t, "Rollback", tx.Rollback(ctx), reprisepg.ErrTxManaged)

	undone, err := tx.Begin(ctx)
	pgWant(t, "Begin", err, nil)
	f.insert(t, undone, 2)
	pgWant(t, "Rollback of a savepoint", undone.Rollback(ctx), nil)
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { f.insert(t, tx, 3); return nil })
	pgWant(t, "BeginFunc", err, nil)
	leaked, err := tx.Begin(ctx)
	pgWant(t, "Begin", err, nil)
	if n := f.effects(t); n != 0 {
		t.Errorf("%d effects are visible before the attempt ended", n)
	}
	pgWant(t, "complete", pgComplete(t, st, r, "answer"), nil)
	if n := f.effects(t); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}

	_, execErr := tx.Exec(ctx, "SELECT 1")
	_, queryErr := leaked.Query(ctx, "SELECT 1") //nolint:gocritic // it is refused: there are no rows to close
	_, beginErr := tx.Begin(ctx)
	_, prepareErr := tx.Prepare(ctx, "p", "SELECT 1")
	_, copyErr := tx.CopyFrom(ctx, pgx.Identifier{"x"}, nil, pgx.CopyFromRows(nil))
	for what, err := range map[string]error{
		"Exec": execErr, "Query": queryErr, "Begin": beginErr, "Prepare": prepareErr, "CopyFrom": copyErr,
		"QueryRow": leaked.QueryRow(ctx, "SELECT 1").Scan(), "SendBatch": tx.SendBatch(ctx, &pgx.Batch{}).Close(),
		"Commit of a savepoint": leaked.Commit(ctx), "Rollback of a savepoint": leaked.Rollback(ctx),
	} {
		if !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("%s after the end: %v, want ErrTxClosed", what, err)
		}
	}
	if _, ok := reprisepg.Tx(st.Bind(ctx, r.ID, r.Owner)); ok {
		t.Error("an attempt that ended still has a transaction")
	}
	if _, ok := reprisepg.Tx(ctx); ok {
		t.Error("a context without an attempt has a transaction")
	}
}

// TestPostgresTxThroughTheEngine: the engine puts the transaction into the handler's
// context and commits it with the result.
func TestPostgresTxThroughTheEngine(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	engine, err := reprise.New(st, reprise.Config{})
	pgWant(t, "engine", err, nil)
	op := reprise.Operation{Scope: "tenant", Key: "key"}
	begin := func(want reprise.Outcome) reprise.Result {
		t.Helper()
		got, err := engine.Begin(t.Context(), op)
		pgWant(t, "begin", err, nil)
		if got.Outcome != want {
			t.Fatalf("begin answered %v, want %v", got.Outcome, want)
		}
		return got
	}
	released := begin(reprise.Claimed).Attempt
	tx, ok := reprisepg.Tx(released.Context())
	if !ok || !released.Atomic() {
		t.Fatal("the attempt has no transaction")
	}
	f.insert(t, tx, 1)
	pgWant(t, "release", released.Release(), nil)
	kept := begin(reprise.Claimed).Attempt
	tx, _ = reprisepg.Tx(kept.Context())
	f.insert(t, tx, 2)
	result, err := kept.Complete(reprise.Completion{Payload: []byte("answer")})
	if err != nil || result.End != reprise.EndRecorded {
		t.Errorf("complete: %v, %v", result, err)
	}
	if got := begin(reprise.Replayed); string(got.Payload) != "answer" {
		t.Errorf("replayed %q", got.Payload)
	}
	if n := f.effects(t); n != 1 {
		t.Errorf("%d effects, want the one that was kept", n)
	}
	pgWant(t, "close", engine.Close(t.Context()), nil)
}

// TestPostgresTxEndedByTheHandler: SQL text that ends the transaction is misuse, and said
// to be.
func TestPostgresTxEndedByTheHandler(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	for _, text := range []string{"COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"} {
		for _, discard := range []bool{false, true} {
			r := pgClaim()
			pgMustClaim(t, st, r, store.Claimed)
			if _, err := pgTx(t, st, r).Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			completion := pgCompletion(r, "answer")
			completion.DiscardEffects = discard
			pgWant(t, text, st.Complete(t.Context(), completion), store.ErrMisconfigured)
			again := pgRival(r)
			pgMustClaim(t, st, again, store.Claimed)
			pgWant(t, "release", st.Release(t.Context(), again.ID, again.Owner), nil)
		}
	}
	if n := f.Pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are still out", n)
	}
}

// TestPostgresTxThatCannotCommit: an attempt whose effects cannot be kept is not applied,
// whole; its result can be kept without them.
func TestPostgresTxThatCannotCommit(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	f.exec(t, "CREATE TABLE "+f.name("late")+" (n integer REFERENCES "+f.name("effects")+" DEFERRABLE INITIALLY DEFERRED)")
	for name, spoil := range map[string]func(context.Context, pgx.Tx) error{
		"a failed statement": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1/0")
			if err == nil {
				return errors.New("one divided by zero is something")
			}
			return nil
		},
		"a constraint at COMMIT": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+f.name("late")+" VALUES (99)")
			return err
		},
		"a result left open": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, "SELECT generate_series(1, 100000)") //nolint:gocritic // left open: that is the point
			return err
		},
		"a killed session": func(ctx context.Context, tx pgx.Tx) error {
			pid := tx.Conn().PgConn().PID()
			_, err := f.Pool.Exec(ctx, "SELECT pg_terminate_backend($1)", pid)
			return err
		},
		"a closed connection": func(ctx context.Context, tx pgx.Tx) error { return tx.Conn().Close(ctx) },
	} {
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		tx := pgTx(t, st, r)
		f.insert(t, tx, 1)
		if err := spoil(t.Context(), tx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := pgComplete(t, st, r, "answer")
		if !errors.Is(err, store.ErrNotApplied) {
			t.Errorf("%s: complete answered %v, want ErrNotApplied", name, err)
		}
		if n := f.effects(t); n != 0 {
			t.Errorf("%s: %d effects are left", name, n)
		}
		again := pgRival(r)
		pgEventually(t, name+": the key can be claimed again", func() bool {
			return pgMustNotFail(t, st, again).Outcome == store.Claimed
		})
		pgWant(t, "release", st.Release(t.Context(), again.ID, again.Owner), nil)
	}

	r := pgClaim()
	pgMustClaim(t, st, r, store.Claimed)
	tx := pgTx(t, st, r)
	f.insert(t, tx, 1)
	if _, err := tx.Exec(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("one divided by zero is something")
	}
	completion := pgCompletion(r, "409")
	completion.DiscardEffects = true
	pgWant(t, "complete without effects", st.Complete(t.Context(), completion), nil)
	if n := f.effects(t); n != 0 {
		t.Errorf("%d effects are left of a kept failure", n)
	}
	pgMustClaim(t, st, pgRival(r), store.Completed)
}

// TestPostgresTxBound: attempts take all connections but two. The next claim waits within
// its budget and is then refused, and duplicates are answered at once.
func TestPostgresTxBound(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t, labtest.MaxConns(5))
	done := pgClaim()
	pgMustClaim(t, st, done, store.Claimed)
	pgWant(t, "complete", pgComplete(t, st, done, "answer"), nil)
	var running []store.ClaimRequest
	for range 3 {
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		running = append(running, r)
	}
	next := pgClaim()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := st.Claim(ctx, next)
	pgWant(t, "one attempt too many", err, store.ErrBusy)
	if ctx.Err() != nil {
		t.Error("the wait left no time for a claim")
	}
	if stats := st.Stats(); stats.Slots != 3 || stats.InUse != 3 || stats.Waiting != 0 || stats.LongestWait < time.Second {
		t.Errorf("statistics %+v, want 3 slots in use and a wait of 1.8s", stats)
	}
	pgMustClaim(t, st, pgRival(done), store.Completed)
	other := pgRival(done)
	other.Fingerprint[0]++
	pgMustClaim(t, st, other, store.Mismatch)
	pgMustClaim(t, st, running[0], store.Claimed) // a repetition
	pgWant(t, "complete", pgComplete(t, st, running[0], "answer"), nil)
	pgMustClaim(t, st, next, store.Claimed)
	for _, r := range append(running[1:], next) {
		pgWant(t, "release", st.Release(t.Context(), r.ID, r.Owner), nil)
	}
	if n := f.Pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are still out", n)
	}
}

// TestPostgresTxTimeout: an attempt that outlasts its time is rolled back, regardless of
// its handler, and the key is free.
func TestPostgresTxTimeout(t *testing.T) {
	t.Parallel()
	f, _ := pgTxSetup(t)
	f.Config.TxTimeout = 4 * time.Second
	st := f.Transactional(t)
	for name, linger := range map[string]string{"idle": "", "in a statement": "SELECT pg_sleep(60)"} {
		r := pgClaim()
		got := pgMustClaim(t, st, r, store.Claimed)
		if got.Remaining > f.Config.TxTimeout || got.Remaining < f.Config.TxTimeout/2 {
			t.Errorf("%s: %v remain of a transaction of %v", name, got.Remaining, f.Config.TxTimeout)
		}
		tx := pgTx(t, st, r)
		f.insert(t, tx, 1)
		if linger != "" {
			if _, err := tx.Exec(t.Context(), linger); err == nil {
				t.Errorf("%s: it was not stopped", name)
			}
		}
		second := pgRival(r)
		pgEventually(t, name+": the key is free", func() bool { return pgMustNotFail(t, st, second).Outcome == store.Claimed })
		pgWant(t, name, pgComplete(t, st, r, "answer"), store.ErrNotApplied)
		pgWant(t, "release", st.Release(t.Context(), second.ID, second.Owner), nil)
		if n := f.effects(t); n != 0 {
			t.Errorf("%s: %d effects are left", name, n)
		}
	}
}

// TestPostgresLeasedRecordInTheSameTable: a record of the leased store counts by its
// lease, and a lapsed attempt is taken over with the next number; should its owner still
// come back, only one of the two is kept.
func TestPostgresLeasedRecordInTheSameTable(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	leased := f.Leased(t)
	live := pgClaim()
	pgMustClaim(t, leased, live, store.Claimed)
	if got := pgMustClaim(t, st, pgRival(live), store.InProgress); got.Remaining <= 0 {
		t.Errorf("%v remain of a lease", got.Remaining)
	}
	for _, late := range []bool{false, true} {
		first := pgClaim()
		first.Lease = time.Millisecond
		granted := pgMustClaim(t, leased, first, store.Claimed)
		pgPass(5 * time.Millisecond)
		careful := pgRival(first)
		careful.Takeover = false
		pgMustClaim(t, st, careful, store.Lapsed)
		careful.Takeover, careful.MaxAttempts = true, 1
		pgMustClaim(t, st, careful, store.Lapsed)
		second := pgRival(first)
		got := pgMustClaim(t, st, second, store.Claimed)
		if got.Attempt != 2 || got.Fence <= granted.Fence || !got.Atomic {
			t.Errorf("takeover answered %+v after fence %d", got, granted.Fence)
		}
		want := error(nil)
		if late {
			pgWant(t, "late completion", pgComplete(t, leased, first, "first"), nil)
			want = store.ErrNotApplied
		}
		n := 1
		if late {
			n = 2
		}
		f.insert(t, pgTx(t, st, second), n)
		pgWant(t, "completion of the takeover", pgComplete(t, st, second, "second"), want)
		if n := f.effects(t); n != 1 {
			t.Errorf("%d effects, want the one of the takeover that was kept", n)
		}
	}
}

// TestPostgresAnotherAttemptInBetween: an attempt keeps its record only where the row is
// still the one that its claim saw, gone, or past its retention.
func TestPostgresAnotherAttemptInBetween(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	leased := f.Leased(t)
	lapse := func(r store.ClaimRequest) {
		r.Lease = time.Millisecond
		pgMustClaim(t, leased, r, store.Claimed)
		pgPass(5 * time.Millisecond)
	}
	expire := func(r store.ClaimRequest) {
		pgWant(t, "complete", pgComplete(t, leased, r, "former"), nil)
		f.exec(t, f.pgDamage("valid_until = now(), expires_at = now()"), r.ID[:])
	}
	for name, test := range map[string]struct {
		before, between func(store.ClaimRequest)
		want            error
	}{
		"taken over and lapsed again": {lapse, func(r store.ClaimRequest) { lapse(pgRival(r)) }, store.ErrNotApplied},
		"taken over and expired":      {lapse, func(r store.ClaimRequest) { r = pgRival(r); lapse(r); expire(r) }, nil},
		"completed":                   {lapse, func(r store.ClaimRequest) { f.exec(t, f.pgDamage("state = 2, payload = 'other'"), r.ID[:]) }, store.ErrNotApplied},
		"live again": {lapse, func(r store.ClaimRequest) {
			f.exec(t, f.pgDamage("lease_until = now() + interval '1 hour'"), r.ID[:])
		}, store.ErrNotApplied},
		"unreadable":   {lapse, func(r store.ClaimRequest) { f.exec(t, f.pgDamage("version = 99"), r.ID[:]) }, store.ErrNotApplied},
		"still lapsed": {lapse, func(store.ClaimRequest) {}, nil},
		"expired and purged": {func(r store.ClaimRequest) { lapse(r); expire(r) }, func(r store.ClaimRequest) {
			f.exec(t, "DELETE FROM "+f.records()+" WHERE id = $1", r.ID[:])
		}, nil},
		"expired":     {func(r store.ClaimRequest) { lapse(r); expire(r) }, func(store.ClaimRequest) {}, nil},
		"new":         {func(store.ClaimRequest) {}, func(store.ClaimRequest) {}, nil},
		"claimed new": {func(store.ClaimRequest) {}, lapse, store.ErrNotApplied},
	} {
		for _, discard := range []bool{false, true} {
			key := pgClaim()
			test.before(key)
			r := pgRival(key)
			r.Label = "orders"
			if name == "expired" {
				r.Fingerprint[0]++
			}
			granted := pgMustClaim(t, st, r, store.Claimed)
			test.between(key)
			completion := pgCompletion(r, "answer")
			completion.DiscardEffects = discard
			before := pgValue[time.Time](t, f.Pool, "SELECT clock_timestamp()")
			err := st.Complete(t.Context(), completion)
			if test.want == nil && err != nil || !errors.Is(err, test.want) {
				t.Errorf("%s, discard %t: complete answered %v, want %v", name, discard, err, test.want)
			}
			if test.want != nil || err != nil {
				continue
			}
			record, err := st.Inspect(t.Context(), r.ID)
			pgWant(t, "inspect", err, nil)
			if record.Label != "orders" || record.Fence != granted.Fence || record.Attempt != granted.Attempt ||
				record.ClaimedAt.After(before) || record.CompletedAt.Before(before) {
				t.Errorf("%s, discard %t: the record of %+v is %+v", name, discard, granted, record)
			}
			whole := "SELECT count(*) FROM " + f.records() + " WHERE id = $1 AND owner = $2 AND fingerprint = $3 AND payload = 'answer'"
			if n := pgValue[int](t, f.Pool, whole, r.ID[:], r.Owner[:], r.Fingerprint[:]); n != 1 {
				t.Errorf("%s, discard %t: the record is not wholly the attempt's", name, discard)
			}
		}
	}
}

// TestPostgresDiscardLosesItsLock: where another attempt has the lock as soon as the
// effects of an attempt are undone, the record is that attempt's to write.
func TestPostgresDiscardLosesItsLock(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	r := pgClaim()
	pgMustClaim(t, st, r, store.Claimed)
	key := pgLockOf(t, f.Pool, pgTx(t, st, r))
	waiter, err := f.Pool.Begin(t.Context())
	pgWant(t, "begin", err, nil)
	taken := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(t.Context(), "SELECT pg_advisory_xact_lock($1)", key)
		taken <- err
	}()
	pgAwaitLock(t, f.Pool, key)
	completion := pgCompletion(r, "refused")
	completion.DiscardEffects = true
	pgWant(t, "complete", st.Complete(t.Context(), completion), store.ErrNotApplied)
	pgWant(t, "lock", <-taken, nil)
	pgWant(t, "rollback", waiter.Rollback(t.Context()), nil)
	again := pgRival(r)
	pgMustClaim(t, st, again, store.Claimed)
	pgWant(t, "release", st.Release(t.Context(), again.ID, again.Owner), nil)
}

// TestPostgresRequestsTakeOneTransactionID (P8): the claim of a request takes no extra
// transaction ID, an attempt whose effects are undone takes a second one for its record,
// and a replay none.
func TestPostgresRequestsTakeOneTransactionID(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.StartPostgres(t, "autovacuum=off"))
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer PRIMARY KEY)")
	st := f.Transactional(t)
	next := func() int64 {
		return pgValue[int64](t, f.Pool, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
	}
	const requests = 20
	n := 0
	for name, test := range map[string]struct {
		effects, discard bool
		want             int64
	}{
		"no effects":      {want: requests},
		"effects":         {effects: true, want: requests},
		"effects undone":  {effects: true, discard: true, want: 2 * requests},
		"nothing to undo": {discard: true, want: requests},
	} {
		before := next()
		var r store.ClaimRequest
		for range requests {
			r = pgClaim()
			pgMustClaim(t, st, r, store.Claimed)
			if test.effects {
				n++
				f.insert(t, pgTx(t, st, r), n)
			}
			completion := pgCompletion(r, pgBody)
			completion.DiscardEffects = test.discard
			pgWant(t, "complete", st.Complete(t.Context(), completion), nil)
		}
		if got := next() - before; got != test.want {
			t.Errorf("%s: %d requests took %d transaction IDs, want %d", name, requests, got, test.want)
		}
		before = next()
		for range requests {
			pgMustClaim(t, st, pgRival(r), store.Completed)
		}
		if got := next() - before; got != 0 {
			t.Errorf("%d replays took %d transaction IDs", requests, got)
		}
	}
}
