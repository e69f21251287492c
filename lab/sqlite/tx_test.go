package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// transactional opens the store over a file with a table of effects, as a transactional
// policy uses it.
func (d driver) transactional(tb testing.TB, file string) *labtest.TxStore {
	tb.Helper()
	return labtest.NewTxStore(d.store(tb, file))
}

// handlers are those of a new file over a pool of a size, 0 for any.
func (d driver) handlers(t *testing.T, conns int, c reprisesqlite.Config) *labtest.SQLHandlers {
	t.Helper()
	db := d.open(t, d.withEffects(t))
	db.SetMaxOpenConns(conns)
	st, err := reprisesqlite.New(db, c)
	labtest.Must(t, err)
	return &labtest.SQLHandlers{DB: db, Store: st, Tx: reprisesqlite.Tx}
}

// endless is a query without an end.
const endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT 'endless' FROM c"

// TestFailureThatEndedTheTransactionUndoesWhatFollows: SQLite rolls the transaction back
// after some failures, and a handler that goes on would commit each of its statements.
func TestFailureThatEndedTheTransactionUndoesWhatFollows(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.withEffects(t)
		st := d.transactional(t, file)
		for name, fail := range map[string]func(short context.Context, tx *sql.Tx) error{
			"a context that ended": func(short context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(short, "INSERT INTO effects "+endless)
				return err
			},
			"a query whose context ended": func(short context.Context, tx *sql.Tx) error {
				return tx.QueryRowContext(short, "INSERT INTO effects "+endless+" RETURNING name").Scan(new(string))
			},
			"a full disk": func(short context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(context.WithoutCancel(short), "PRAGMA max_page_count = 50; INSERT INTO effects VALUES (zeroblob(1000000))")
				return err
			},
		} {
			a := begin(t, st, labtest.NewClaim())
			a.Effect(t)
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			err := fail(short, a.Tx)
			if cancel(); err == nil {
				t.Fatalf("%s: nothing failed", name)
			}
			if _, err := a.Tx.ExecContext(t.Context(), "INSERT INTO effects VALUES ('second')"); err == nil { // a handler that ignores it
				t.Errorf("%s: a statement after it succeeded", name)
			}
			labtest.Claimed(t, st) // does not wait for the handler
			labtest.Want(t, name, a.End(t), store.ErrNotApplied)
			d.wantEffects(t, file, 0)
			again := begin(t, st, labtest.Rival(a.ClaimRequest))
			again.Effect(t, "PRAGMA max_page_count = 1000000")
			if err := again.End(t); err != nil {
				t.Errorf("%s: the attempt that followed: %v", name, err)
			}
			d.wantEffects(t, file, 1)
			d.exec(t, file, "DELETE FROM effects")
		}
	})
}

func TestHandlerThatEndsItsTransactionIsFoundOut(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		d.handlers(t, 0, reprisesqlite.Config{}).EndsAreFoundOut(t, []string{"COMMIT"}, []string{"ROLLBACK"}, []string{"COMMIT", "BEGIN", labtest.Second},
			[]string{"COMMIT", "ROLLBACK", labtest.Second}, []string{"COMMIT", "INSERT INTO effects (name) VALUES (NULL)", labtest.Second}) // which fail
	})
}

func TestTransactionThatOutlastsTxTimeoutIsRolledBack(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		d.handlers(t, 0, reprisesqlite.Config{TxTimeout: time.Second}).TimesOut(t, "SELECT count(*) FROM ("+endless+")", "DELETE FROM effects")
	})
}

// TestWritesWaitForTheHandlerThatWrites: in this process and in another one, and replays
// and refusals do not, but for that of a lapsed record, whose renewal may not be written.
func TestWritesWaitForTheHandlerThatWrites(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.withEffects(t)
		st, other := d.transactional(t, file), d.transactional(t, file)
		r, unknown := labtest.NewClaim(), labtest.Claimed(t, st)
		labtest.Must(t, st.Unknown(t.Context(), store.UnknownRequest{ID: unknown.ID, Owner: unknown.Owner, Reason: "why"}))
		r.Lease, r.AtMostOnce = time.Millisecond, true
		done, runs, writer := labtest.Completed(t, st, "answer"), labtest.Claimed(t, st), begin(t, st, r)
		writer.Effect(t)
		labtest.WantClaim(t, other, labtest.Rival(runs), store.InProgress)
		labtest.WantClaim(t, other, labtest.Rival(done), store.Completed)
		labtest.WantClaim(t, other, labtest.Rival(unknown), store.Lapsed)
		claimed := make(chan error, 2)
		for _, st := range []store.Store{st, other} {
			for _, r := range []store.ClaimRequest{labtest.NewClaim(), labtest.Rival(r)} {
				short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				got, err := st.Claim(short, r)
				cancel()
				if !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("a claim while a handler writes: %v, %v", got.Outcome, err)
				}
			}
			go func() {
				_, err := st.Claim(context.WithoutCancel(t.Context()), labtest.NewClaim())
				claimed <- err
			}()
		}
		labtest.Must(t, writer.End(t))
		labtest.WantClaim(t, other, labtest.Rival(r), store.Completed)
		for range 2 {
			if err := <-claimed; err != nil {
				t.Errorf("a claim that waited: %v", err)
			}
		}
	})
}

// TestARenewalWaitsForOneHandler: the next one waits for it, however many there are.
func TestARenewalWaitsForOneHandler(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		st := labtest.NewTxStore(d.handlers(t, 0, reprisesqlite.Config{TxTimeout: time.Hour}).Store)
		running, next := labtest.Claimed(t, st), labtest.Claimed(t, st)
		writer := begin(t, st, labtest.NewClaim())
		waiting := func(n int64) {
			t.Helper()
			labtest.Eventually(t, fmt.Sprintf("%d wait", n), func() bool {
				return slices.ContainsFunc(st.Usage(), func(u store.Usage) bool { return u.Name == "slots" && u.Waiting == n })
			})
		}
		begun := make(chan error, 1)
		go func() {
			_, err := reprisesqlite.Tx(st.Bind(context.WithoutCancel(t.Context()), next.ID, next.Owner))
			begun <- err
		}()
		waiting(1)
		renewed := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := st.Renew(ctx, []store.RenewRequest{{ID: running.ID, Owner: running.Owner, Lease: time.Hour}})
			renewed <- err
		}()
		waiting(2)
		labtest.Must(t, writer.End(t))
		if err := <-renewed; err != nil {
			t.Errorf("a renewal behind a handler: %v", err)
		}
		labtest.Must(t, <-begun)
		labtest.Must(t, labtest.Complete(t, st, next, ""))
	})
}

// renewal renews an attempt by an hour, within a second.
func renewal(t *testing.T, st store.Store, rs ...store.ClaimRequest) []store.RenewStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	batch := make([]store.RenewRequest, len(rs))
	for i, r := range rs {
		batch[i] = store.RenewRequest{ID: r.ID, Owner: r.Owner, Lease: time.Hour}
	}
	statuses, err := st.Renew(ctx, batch)
	labtest.Must(t, err)
	return statuses
}

// TestRenewalDoesNotWaitForTheHandler: nobody can take its record over while it writes.
// Its lease is written where that ends without a commit; that of another attempt has to
// wait for it.
func TestRenewalDoesNotWaitForTheHandler(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		st := d.transactional(t, d.withEffects(t))
		waits := labtest.Claimed(t, st)
		r := labtest.NewClaim()
		r.Lease = time.Minute
		a := begin(t, st, r)
		a.Effect(t)
		if got := renewal(t, st, waits, r); got[0] != store.RenewBusy || got[1] != store.Renewed {
			t.Fatalf("%v; want busy and renewed", got)
		}
		record := func() time.Duration {
			t.Helper()
			record, err := st.Inspect(t.Context(), r.ID)
			labtest.Must(t, err)
			return record.Lease
		}
		if left := record(); left > time.Minute {
			t.Errorf("%v are left while the handler writes", left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := st.Discard(ctx, labtest.Completion(r, "")); err == nil { // rolls back, and does not complete
			t.Fatal("completed in a context that has ended")
		}
		if left := record(); left < 30*time.Minute {
			t.Errorf("%v are left of the lease that was renewed", left)
		}
	})
}

// TestTransactionOfALostRecordRenewsNothing: neither of one that another owner has, nor
// of one that has expired since.
func TestTransactionOfALostRecordRenewsNothing(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		st := d.transactional(t, d.withEffects(t))
		lost := labtest.Claimed(t, st)
		labtest.Must(t, st.Release(t.Context(), lost.ID, lost.Owner))
		labtest.WantClaim(t, st, labtest.Rival(lost), store.Claimed)
		_, err := reprisesqlite.Tx(st.Bind(t.Context(), lost.ID, lost.Owner))
		labtest.Must(t, err)
		if got := renewal(t, st, lost); got[0] != store.RenewLost {
			t.Errorf("of another owner's record: %v", got)
		}
		labtest.Want(t, "completed", labtest.Complete(t, st, lost, ""), store.ErrLeaseLost)

		short := labtest.NewClaim()
		short.Lease, short.Retention = time.Millisecond, time.Millisecond
		begin(t, st, short)
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // its record expires, by the clock of this machine
		if got := renewal(t, st, short); got[0] != store.RenewLost {
			t.Errorf("of a record that expired: %v", got)
		}
		labtest.Want(t, "completed after its end", st.Discard(t.Context(), labtest.Completion(short, "")), store.ErrLeaseLost)
	})
}

// TestRenewalOfATransactionCounts: at its commit, although the row still has the lease
// and the validity of the claim, which have ended. It is written once SQLite has rolled
// the transaction back by itself: others can write then.
func TestRenewalOfATransactionCounts(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		st := d.transactional(t, d.withEffects(t))
		a := begin(t, st, labtest.NewClaim())
		if got := renewal(t, st, a.ClaimRequest); got[0] != store.Renewed {
			t.Fatalf("%v while the handler writes", got)
		}
		labtest.Exec(t, a.Tx, "UPDATE reprise_records SET lease_until = 1, valid_until = 1, due_at = 1") // time passes
		labtest.Must(t, a.End(t))

		a = begin(t, st, labtest.NewClaim())
		if _, err := a.Tx.ExecContext(t.Context(), "PRAGMA max_page_count = 50; INSERT INTO effects VALUES (zeroblob(1000000))"); err == nil {
			t.Fatal("the disk is not full")
		}
		renewed := renewal(t, st, a.ClaimRequest)[0]
		record, err := st.Inspect(t.Context(), a.ID)
		labtest.Must(t, err)
		if renewed == store.Renewed && record.Lease < 30*time.Minute {
			t.Error("renewed without a write, while others can take over")
		}
		labtest.Want(t, "completed", a.End(t), store.ErrNotApplied)
	})
}

// TestPoolsOfAnySize: fifty handlers at once commit over pools of any size but one, which
// is refused.
func TestPoolsOfAnySize(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		labtest.Want(t, "a pool of one", d.handlers(t, 1, reprisesqlite.Config{}).Store.Transacts(), store.ErrInvalid)
		for _, conns := range []int{0, 2, 4} {
			d.handlers(t, conns, reprisesqlite.Config{}).FiftyAtOnce(t)
		}
	})
}

// TestDriverPanicsLeaveNothing: of an attempt with effects, at every statement.
func TestDriverPanicsLeaveNothing(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.withEffects(t)
		underlying := d.open(t, file).Driver()
		panicking := &labtest.Panicking{Open: func(context.Context) (sqldriver.Conn, error) { return underlying.Open("file:" + file + d.settings) }}
		db := sql.OpenDB(panicking)
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(4)
		st, err := reprisesqlite.New(db, reprisesqlite.Config{})
		labtest.Must(t, err)
		h := labtest.SQLHandlers{DB: db, Store: st, Tx: reprisesqlite.Tx}
		h.PanicsLeaveNothing(t, panicking.At)
	})
}

// TestHabitsDoNoHarm: a handler that ends its *sql.Tx, or rolls it back when it returns,
// ends nothing. The stores over database/sql lend it in one way.
func TestHabitsDoNoHarm(t *testing.T) {
	t.Parallel()
	d := drivers[0]
	file := d.withEffects(t)
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
		a := begin(t, d.transactional(t, file), labtest.NewClaim())
		a.Effect(t)
		labtest.Want(t, "the end of the handler", end(a.Tx), reprisesqlite.ErrTxManaged)
		d.wantEffects(t, file, 0)
		labtest.Must(t, a.End(t))
		d.wantEffects(t, file, 1)
		d.exec(t, file, "DELETE FROM effects")
	}
}
