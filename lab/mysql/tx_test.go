package mysql

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

func TestEffectsCommitWithTheResponseOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end     func(*testing.T, *attempt) error
		effects int
		outcome store.Outcome // of the next claim
	}{
		"completed": {func(t *testing.T, a *attempt) error { t.Helper(); return a.complete(t) }, 1, store.Completed},
		"discarded": {func(t *testing.T, a *attempt) error {
			t.Helper()
			r := completion(a.ClaimRequest, []byte("answer"))
			r.DiscardEffects = true
			return a.store.Complete(t.Context(), r)
		}, 0, store.Completed},
		"released": {func(t *testing.T, a *attempt) error {
			t.Helper()
			return a.store.Release(t.Context(), a.ID, a.Owner)
		}, 0, store.Claimed},
		"unknown": {func(t *testing.T, a *attempt) error {
			t.Helper()
			return a.store.Unknown(t.Context(), store.UnknownRequest{ID: a.ID, Owner: a.Owner, Reason: "the bank timed out"})
		}, 0, store.Lapsed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := newDatabase(t)
			a := begin(t, transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{}), request())
			a.exec(t)
			if err := c.end(t, a); err != nil {
				t.Fatal(err)
			}
			if n := count(t, raw, "SELECT COUNT(*) FROM effects"); n != c.effects {
				t.Errorf("%d effects, want %d", n, c.effects)
			}
			next := duplicate(a.ClaimRequest)
			wantClaim(t, a.store, next, c.outcome)
			_ = a.store.Release(t.Context(), next.ID, next.Owner)
		})
	}
}

// TestHandlerThatEndsItsTransactionIsFoundOut: an effect that was committed is not
// reported as undone, one that was undone not as done, and none that follows is
// committed.
func TestHandlerThatEndsItsTransactionIsFoundOut(t *testing.T) {
	t.Parallel()
	const second = "INSERT INTO effects (name) VALUES ('second')"
	for name, c := range map[string]struct {
		end  func(*testing.T, *attempt)
		want error
	}{
		"Commit":          {func(_ *testing.T, a *attempt) { _ = a.tx.Commit() }, store.ErrMisconfigured},
		"Rollback":        {func(_ *testing.T, a *attempt) { _ = a.tx.Rollback() }, store.ErrNotApplied},
		"COMMIT":          {func(t *testing.T, a *attempt) { t.Helper(); a.exec(t, "COMMIT", second) }, store.ErrMisconfigured},
		"ROLLBACK":        {func(t *testing.T, a *attempt) { t.Helper(); a.exec(t, "ROLLBACK", second) }, store.ErrNotApplied},
		"implicit commit": {func(t *testing.T, a *attempt) { t.Helper(); a.exec(t, "CREATE TABLE other (n INT)", second) }, store.ErrMisconfigured},
		"own savepoint":   {func(t *testing.T, a *attempt) { t.Helper(); a.exec(t, "SAVEPOINT own", second, "ROLLBACK TO own") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := newDatabase(t)
			st := transactional(t, mysqlserver.Pool(t, raw, 3), reprisemysql.Config{})
			a := begin(t, st, request())
			c.end(t, a)
			if err := a.complete(t); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if n := count(t, raw, "SELECT COUNT(*) FROM effects WHERE name = 'second'"); n != 0 {
				t.Errorf("%d effects were committed that followed the end", n)
			}
			next := begin(t, st, request()) // nothing of it is left on the connection
			next.exec(t)
			if err := next.complete(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnknownAfterACommitOfTheHandlerIsKept: its effects are there, and a retry would
// write them again.
func TestUnknownAfterACommitOfTheHandlerIsKept(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]func(*testing.T, *attempt){
		"Commit": func(_ *testing.T, a *attempt) { _ = a.tx.Commit() },
		"COMMIT": func(t *testing.T, a *attempt) { t.Helper(); a.exec(t, "COMMIT") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := newDatabase(t)
			st := transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{})
			a := begin(t, st, request())
			a.exec(t)
			left := st.Bind(t.Context(), a.ID, a.Owner) // of a goroutine that the handler left behind
			commit(t, a)
			if err := st.Unknown(t.Context(), store.UnknownRequest{ID: a.ID, Owner: a.Owner, Reason: "the bank timed out"}); err != nil {
				t.Error(err)
			}
			if tx, ok := reprisemysql.Tx(left); !ok || tx != a.tx {
				t.Errorf("%p, %t: not the transaction of the handler", tx, ok)
			}
			wantClaim(t, st, duplicate(a.ClaimRequest), store.Lapsed)
		})
	}
}

// TestDeadlockInAHandlerUndoesWhatFollows: the server has rolled back the whole
// transaction, and a handler that goes on has no effect.
func TestDeadlockInAHandlerUndoesWhatFollows(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	db := mysqlserver.Pool(t, raw, 0)
	mysqlserver.Exec(t, raw, "CREATE TABLE accounts (id INT PRIMARY KEY, n INT NOT NULL)")
	mysqlserver.Exec(t, raw, "INSERT INTO accounts VALUES (1, 0), (2, 0)")
	mysqlserver.Exec(t, raw, "INSERT INTO accounts SELECT seq, 0 FROM seq_100_to_200")
	const add = "UPDATE accounts SET n = n + 1 WHERE id = ?"
	a := begin(t, transactional(t, db, reprisemysql.Config{}), request())
	if _, err := a.tx.ExecContext(t.Context(), add, 1); err != nil {
		t.Fatal(err)
	}
	other, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The server ends the transaction that wrote less.
	for _, statement := range []string{"UPDATE accounts SET n = n + 1 WHERE id >= 100", "UPDATE accounts SET n = n + 1 WHERE id = 2"} {
		if _, err := other.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		_, err := other.ExecContext(t.Context(), add, 1)
		done <- err
	}()
	_, lost := a.tx.ExecContext(t.Context(), add, 2)
	if err := <-done; err != nil || lost == nil {
		t.Fatalf("the attempt: %v, the other one: %v; want a deadlock of the attempt", lost, err)
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	a.exec(t) // a handler that ignores it
	if err := a.complete(t); !errors.Is(err, store.ErrNotApplied) {
		t.Errorf("%v, want ErrNotApplied", err)
	}
	if n := count(t, raw, "SELECT COUNT(*) FROM effects"); n != 0 {
		t.Errorf("%d effects after ErrNotApplied", n)
	}
}

// TestAttemptThatOutlastsTxTimeoutIsRolledBack: and the next one does not wait for it.
func TestAttemptThatOutlastsTxTimeoutIsRolledBack(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	late := begin(t, transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{TxTimeout: 3 * time.Second}), request())
	late.exec(t)
	if err := eventually(func() bool {
		_, err := late.tx.ExecContext(t.Context(), "DO 1")
		return err != nil
	}); err != nil {
		t.Error("the handler's statements still work:", err)
	}
	if err := late.complete(t); !errors.Is(err, store.ErrNotApplied) {
		t.Errorf("%v, want ErrNotApplied", err)
	}
	if n := count(t, raw, "SELECT COUNT(*) FROM effects"); n != 0 {
		t.Errorf("%d effects", n)
	}
	begin(t, transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{}), duplicate(late.ClaimRequest))
}

// TestReleaseIsNotFasterThanTheRollbackOfTxTimeout: the rollback waits for a statement of
// the handler, which releases the attempt as soon as that statement ends. The statement
// that resets the session would commit a transaction that is open still.
func TestReleaseIsNotFasterThanTheRollbackOfTxTimeout(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	st := transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{TxTimeout: 3 * time.Second})
	var attempts sync.WaitGroup
	for range 10 {
		a := begin(t, st, request())
		attempts.Go(func() {
			a.exec(t, "DO SLEEP(3.2)")
			if err := st.Release(context.WithoutCancel(t.Context()), a.ID, a.Owner); err != nil {
				t.Error(err)
			}
		})
	}
	attempts.Wait()
	if records, effects := count(t, raw, "SELECT COUNT(*) FROM reprise_records"), count(t, raw, "SELECT COUNT(*) FROM effects"); records+effects != 0 {
		t.Errorf("%d records and %d effects of released attempts", records, effects)
	}
}

// TestDuplicateOfAnotherProcessIsInProgressAtOnce: it waits neither for the transaction
// nor for a lock; and after the session of the attempt died it is granted.
func TestDuplicateOfAnotherProcessIsInProgressAtOnce(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	for name, prepare := range map[string]func(){
		"new record": func() {},
		"lapsed record": func() {
			r := request()
			r.ID[0], r.Lease = 1, time.Millisecond
			wantClaim(t, mysqlserver.Leased(t, raw), r, store.Claimed)
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the lease ends
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			r.ID = store.ID{1}
			mysqlserver.Exec(t, raw, "DELETE FROM reprise_records")
			prepare()
			one, other := mysqlserver.Pool(t, raw, 0), mysqlserver.Transactional(t, raw)
			a := begin(t, transactional(t, one, reprisemysql.Config{}), r)
			a.exec(t)
			wantClaim(t, other, duplicate(r), store.InProgress)
			var session int64
			if err := a.tx.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&session); err != nil {
				t.Fatal(err)
			}
			mysqlserver.Exec(t, raw, "KILL ?", session)
			again := duplicate(r)
			if err := eventually(func() bool {
				got, err := other.Claim(t.Context(), again)
				return err == nil && got.Outcome == store.Claimed
			}); err != nil {
				t.Error("not granted after the session died:", err)
			}
			if err := a.complete(t); !errors.Is(err, store.ErrNotApplied) {
				t.Errorf("the attempt of the dead session: %v, want ErrNotApplied", err)
			}
			if err := other.Release(t.Context(), again.ID, again.Owner); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFirstArrivalsDoNotWaitForTheWinner: there is no row whose lock could be refused.
func TestFirstArrivalsDoNotWaitForTheWinner(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	stores := []*reprisemysql.TransactionalStore{
		transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{}), transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{}),
	}
	for round := range byte(20) {
		const claims = 16
		var (
			arrivals sync.WaitGroup
			granted  atomic.Int64
			ready    = make(chan struct{})
		)
		for n := range claims {
			arrivals.Go(func() {
				r, st := request(), stores[n%2]
				r.ID = store.ID{round}
				t.Cleanup(func() { _ = st.Release(context.WithoutCancel(t.Context()), r.ID, r.Owner) })
				<-ready
				switch got, err := st.Claim(t.Context(), r); {
				case err != nil:
					t.Errorf("claim: %v", err)
				case got.Outcome == store.Claimed:
					granted.Add(1)
				case got.Outcome != store.InProgress:
					t.Errorf("claim: %v", got.Outcome)
				}
			})
		}
		close(ready)
		arrivals.Wait()
		if n := granted.Load(); n != 1 {
			t.Errorf("%d of %d claims were granted", n, claims)
		}
	}
}

// TestClaimDoesNotWaitForARow: of a record that another transaction has locked.
func TestClaimDoesNotWaitForARow(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	r := request()
	r.Lease = time.Millisecond
	wantClaim(t, mysqlserver.Leased(t, raw), r, store.Claimed)
	tx, err := mysqlserver.Pool(t, raw, 1).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT id FROM reprise_records WHERE id = ? FOR UPDATE", r.ID[:]); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the lease ends
	st := transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{})
	wantClaim(t, st, duplicate(r), store.InProgress)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	begin(t, st, duplicate(r))
}

// eventually polls a condition for up to a minute.
func eventually(condition func() bool) error {
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			return errors.New("not within a minute")
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls
	}
	return nil
}
