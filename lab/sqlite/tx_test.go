package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// attempt is a granted claim of the transactional store, with its transaction.
type attempt struct {
	store *reprisesqlite.TransactionalStore
	store.ClaimRequest

	tx *sql.Tx
}

// patient returns the context of a claim that waits for longer than the attempt before it
// lasts, however busy this machine is.
func patient(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), 20*time.Second)
}

// begin claims an operation in a file with a table of effects.
func begin(t *testing.T, st *reprisesqlite.TransactionalStore, r store.ClaimRequest) *attempt {
	t.Helper()
	ctx, cancel := patient(t)
	defer cancel()
	got, err := st.Claim(ctx, r)
	if err != nil || got.Outcome != store.Claimed || !got.Atomic {
		t.Fatalf("%+v, %v", got, err)
	}
	tx, ok := reprisesqlite.Tx(st.Bind(t.Context(), r.ID, r.Owner))
	if !ok {
		t.Fatal("no transaction")
	}
	return &attempt{st, r, tx}
}

// insert writes an effect, by another way than the transaction's methods where sql has
// one.
func (a *attempt) insert(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range append([]string{"INSERT INTO effects (key) VALUES ('x')"}, statements...) {
		if _, err := a.tx.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func (a *attempt) complete(t *testing.T, discard bool) error {
	t.Helper()
	r := completion(a.ClaimRequest, []byte("answer"))
	r.DiscardEffects = discard
	return a.store.Complete(t.Context(), r)
}

// withEffects returns a file with a table of effects.
func (d driver) withEffects(t *testing.T) string {
	t.Helper()
	file := d.newFile(t)
	d.exec(t, file, "CREATE TABLE effects (key TEXT NOT NULL)")
	return file
}

func (d driver) wantCount(t *testing.T, file string, want int) {
	t.Helper()
	var got int
	if err := d.open(t, file).QueryRowContext(t.Context(), "SELECT count(*) FROM effects").Scan(&got); err != nil || got != want {
		t.Errorf("%d effects, %v; want %d", got, err, want)
	}
}

func TestEffectsCommitWithTheResponseOrNotAtAll(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		for name, c := range map[string]struct {
			end     func(*testing.T, *attempt) error
			effects int
			outcome store.Outcome // of the next claim
		}{
			"completed": {func(t *testing.T, a *attempt) error { t.Helper(); return a.complete(t, false) }, 1, store.Completed},
			"discarded": {func(t *testing.T, a *attempt) error { t.Helper(); return a.complete(t, true) }, 0, store.Completed},
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
				file := d.withEffects(t)
				a := begin(t, d.transactional(t, file), request())
				a.insert(t)
				if err := c.end(t, a); err != nil {
					t.Fatal(err)
				}
				d.wantCount(t, file, c.effects)
				next := a.ClaimRequest
				next.Owner = store.NewOwner()
				if got, err := a.store.Claim(t.Context(), next); err != nil || got.Outcome != c.outcome {
					t.Errorf("the next claim is answered %v, %v; want %v", got.Outcome, err, c.outcome)
				}
				_ = a.store.Release(t.Context(), next.ID, next.Owner)
			})
		}
	})
}

// TestHandlerThatEndsItsTransactionIsFoundOut: an effect that was committed is not
// reported as undone, and one that was undone not as done.
func TestHandlerThatEndsItsTransactionIsFoundOut(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		for name, c := range map[string]struct {
			end  func(*testing.T, *attempt)
			want error
		}{
			"Commit":            {func(_ *testing.T, a *attempt) { _ = a.tx.Commit() }, store.ErrMisconfigured},
			"Rollback":          {func(_ *testing.T, a *attempt) { _ = a.tx.Rollback() }, store.ErrNotApplied},
			"COMMIT":            {func(t *testing.T, a *attempt) { t.Helper(); a.insert(t, "COMMIT") }, store.ErrMisconfigured},
			"ROLLBACK":          {func(t *testing.T, a *attempt) { t.Helper(); a.insert(t, "ROLLBACK") }, store.ErrNotApplied},
			"COMMIT and BEGIN":  {func(t *testing.T, a *attempt) { t.Helper(); a.insert(t, "COMMIT", "BEGIN") }, store.ErrMisconfigured},
			"ROLLBACK, BEGIN":   {func(t *testing.T, a *attempt) { t.Helper(); a.insert(t, "ROLLBACK", "BEGIN") }, store.ErrNotApplied},
			"a savepoint below": {func(t *testing.T, a *attempt) { t.Helper(); a.insert(t, "SAVEPOINT own", "ROLLBACK TO own") }, nil},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				st := d.transactional(t, d.withEffects(t))
				a := begin(t, st, request())
				c.end(t, a)
				if err := a.complete(t, false); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				next := begin(t, st, request()) // nothing of it is left on the connection
				next.insert(t)
				if err := next.complete(t, false); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestHandlerThatDoesNotReturnHoldsUpNobody: others run once its attempt was rolled
// back.
func TestHandlerThatDoesNotReturnHoldsUpNobody(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.withEffects(t)
		st, err := reprisesqlite.NewTransactional(d.open(t, file), reprisesqlite.Config{TxTimeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		stuck := begin(t, st, request())
		stuck.insert(t)
		next := begin(t, st, request())
		next.insert(t)
		if err := stuck.store.Release(t.Context(), stuck.ID, stuck.Owner); err != nil {
			t.Fatal(err)
		}
		if used := slotsUsed(st); used != 1 {
			t.Errorf("%d slots in use by one attempt", used)
		}
		if err := next.complete(t, false); err != nil {
			t.Error(err)
		}
		if used := slotsUsed(st); used != 0 {
			t.Errorf("%d slots in use by no attempt", used)
		}
		d.wantCount(t, file, 1)
	})
}

func slotsUsed(st *reprisesqlite.TransactionalStore) (n int64) {
	for _, u := range st.Usage() {
		if u.Name == "slots" {
			n = u.Used
		}
	}
	return n
}

// TestAttemptThatOutlastsTxTimeoutIsRolledBack: and the next one does not wait for it.
func TestAttemptThatOutlastsTxTimeoutIsRolledBack(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.withEffects(t)
		st, err := reprisesqlite.NewTransactional(d.open(t, file), reprisesqlite.Config{TxTimeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		late := begin(t, st, request())
		late.insert(t)
		other := d.transactional(t, file) // another process, which waits for the file
		next := begin(t, other, request())
		if err := next.complete(t, false); err != nil {
			t.Error(err)
		}
		if err := late.complete(t, false); !errors.Is(err, store.ErrNotApplied) {
			t.Errorf("%v, want ErrNotApplied", err)
		}
		d.wantCount(t, file, 0)
	})
}

// TestClaimWaitsForAnAttemptOfAnotherProcess: then it is granted, or replayed if it is
// the same operation; and it is busy when it has waited for as long as it may.
func TestClaimWaitsForAnAttemptOfAnotherProcess(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.withEffects(t)
		one, other := d.transactional(t, file), d.transactional(t, file)
		first := begin(t, one, request())
		duplicate := first.ClaimRequest
		duplicate.Owner = store.NewOwner()
		if got, err := one.Claim(t.Context(), duplicate); err != nil || got.Outcome != store.InProgress {
			t.Errorf("in the process of the attempt: %v, %v", got.Outcome, err)
		}
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if got, err := other.Claim(short, duplicate); !errors.Is(err, store.ErrBusy) {
			t.Errorf("in another process: %v, %v; want ErrBusy", got.Outcome, err)
		}
		type answer struct {
			got store.ClaimResult
			err error
		}
		answers := make(chan answer)
		go func() {
			ctx, cancel := patient(t)
			defer cancel()
			got, err := other.Claim(ctx, duplicate)
			answers <- answer{got, err}
		}()
		waiting := func() bool { return other.Usage()[len(other.Usage())-1].Used == 1 }
		for deadline := time.Now().Add(time.Second); !waiting() && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) //nolint:forbidigo // polls
		}
		if err := first.complete(t, false); err != nil {
			t.Fatal(err)
		}
		if a := <-answers; a.err != nil || string(a.got.Payload) != "answer" {
			t.Errorf("after the attempt: %+v, %v", a.got, a.err)
		}
	})
}

// TestReplaysDoNotWaitForAnAttempt: nor does a look at records.
func TestReplaysDoNotWaitForAnAttempt(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		st := d.transactional(t, d.withEffects(t))
		done := begin(t, st, request())
		if err := done.complete(t, false); err != nil {
			t.Fatal(err)
		}
		running := begin(t, st, request())
		running.insert(t)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		again := done.ClaimRequest
		again.Owner = store.NewOwner()
		if got, err := st.Claim(ctx, again); err != nil || got.Outcome != store.Completed {
			t.Errorf("%v, %v; want a replay", got.Outcome, err)
		}
		if _, err := st.Inspect(ctx, done.ID); err != nil {
			t.Error(err)
		}
		if err := running.complete(t, false); err != nil {
			t.Error(err)
		}
	})
}
