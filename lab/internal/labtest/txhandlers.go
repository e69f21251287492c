package labtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/store"
)

// SQLHandlers are handlers with effects in the table effects of a database, which has a
// column name.
type SQLHandlers struct {
	DB    *sql.DB
	Store TransactorStore
	Tx    func(context.Context) (*sql.Tx, error)

	// Exec executes a statement in the transaction of an attempt; nil: in that of Tx.
	Exec func(ctx context.Context, statement string) error
}

func (h *SQLHandlers) exec(ctx context.Context, statement string) error {
	if h.Exec != nil {
		return h.Exec(ctx, statement)
	}
	tx, err := h.Tx(ctx)
	if err == nil {
		_, err = tx.ExecContext(ctx, statement)
	}
	return err
}

// Write writes an effect in the transaction of an attempt.
func (h *SQLHandlers) Write(ctx context.Context, name string) error {
	return h.exec(ctx, "INSERT INTO effects (name) VALUES ('"+name+"')")
}

// begin claims an operation, writes an effect and executes statements. It returns the
// context of the handler.
func (h *SQLHandlers) begin(t *testing.T, st *TxStore, r store.ClaimRequest, statements ...string) context.Context {
	t.Helper()
	WantClaim(t, st, r, store.Claimed)
	ctx := st.Bind(t.Context(), r.ID, r.Owner)
	Must(t, h.Write(ctx, "first"))
	for _, s := range statements {
		Want(t, s, h.exec(ctx, s), nil)
	}
	return ctx
}

// count returns the number that a query of the database selects.
func (h *SQLHandlers) count(tb testing.TB, query string) (n int) {
	tb.Helper()
	if err := h.DB.QueryRowContext(tb.Context(), query).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}

// FiftyAtOnce has fifty keys handled at once, all of which commit, however small the pool
// is.
func (h *SQLHandlers) FiftyAtOnce(t *testing.T) {
	t.Helper()
	engine, err := reprise.New(h.Store, reprise.Config{ClaimTimeout: time.Minute, CompleteTimeout: time.Minute})
	Must(t, err)
	var handlers sync.WaitGroup
	for n := range 50 {
		handlers.Go(func() {
			op := reprise.Operation{Scope: "tenant", Key: strconv.Itoa(n), Transactional: true}
			done, err := job.Do(t.Context(), engine, op, nil, func(ctx context.Context) (string, error) {
				err := h.Write(ctx, op.Key)
				for errors.Is(err, store.ErrBusy) { // it waited for longer than TxTimeout
					err = h.Write(ctx, op.Key)
				}
				return "answer", err
			})
			if err != nil || done.Unrecorded != nil {
				t.Errorf("%d: %v, %v", n, err, done.Unrecorded)
			}
		})
	}
	handlers.Wait()
	if err := engine.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := h.count(t, "SELECT COUNT(DISTINCT name) FROM effects"); n != 50 {
		t.Errorf("%d effects of 50 keys", n)
	}
}

// PanicsLeaveNothing has the driver panic at every statement of an attempt in turn, from
// those of its claim on: at makes it panic in the n-th from now. Each time its effect is
// there exactly if its record says so, and nothing of it is left: no connection, no turn,
// and no lock that would hold up the next attempt.
func (h *SQLHandlers) PanicsLeaveNothing(t *testing.T, at func(n int64) (pending bool)) {
	t.Helper()
	st := NewTxStore(h.Store)
	inUse := func() (n int64) {
		for _, u := range st.Usage() {
			n += u.Used + u.Waiting
		}
		return n
	}
	commits := func(ctx context.Context, r store.ClaimRequest) error {
		return st.Complete(ctx, Completion(r, "answer"))
	}
	rollsBack := func(ctx context.Context, r store.ClaimRequest) error { return st.Release(ctx, r.ID, r.Owner) }
	for want, end := range map[int]func(context.Context, store.ClaimRequest) error{2: commits, 1: rollsBack} { // effects, with that of the next attempt
		for n, pending := int64(1), false; !pending; n++ {
			r := NewClaim()
			at(n)
			err := h.attempt(t, st, r, end)
			if pending = at(0); err != nil {
				_ = st.Release(t.Context(), r.ID, r.Owner)
			}
			if err := h.attempt(t, st, NewClaim(), commits); err != nil {
				t.Fatalf("after a panic in statement %d: %v", n, err)
			}
			Eventually(t, fmt.Sprintf("all is free after a panic in statement %d", n), func() bool { return inUse() == 0 })
			effects := h.count(t, "SELECT COUNT(*) FROM effects WHERE name = 'one'")
			records := h.count(t, "SELECT COUNT(*) FROM reprise_records WHERE state = 2")
			if effects != records || err == nil && effects != want || pending && n < 4 {
				t.Errorf("a panic in statement %d: %v, %d effects of %d completed records", n, err, effects, records)
			}
			Exec(t, h.DB, "DELETE FROM effects")
			Exec(t, h.DB, "DELETE FROM reprise_records")
		}
	}
}

// Second writes the effect that follows the end of a transaction.
const Second = "INSERT INTO effects (name) VALUES ('second')"

// EndsAreFoundOut has handlers end their transaction by statements, and then return, fail
// or panic. Nothing says whether their effects stay, so that no retry runs; and no effect
// that follows is committed.
func (h *SQLHandlers) EndsAreFoundOut(t *testing.T, ends ...[]string) {
	t.Helper()
	engine, err := reprise.New(h.Store, reprise.Config{})
	Must(t, err)
	for n, statements := range ends {
		for leaves, leave := range map[string]func() error{
			"returns": func() error { return nil }, "fails": func() error { return errors.New("failed") }, "panics": func() error { panic("a bug") },
		} {
			runs := 0
			do := func() (err error) {
				defer func() { _ = recover() }()
				op := reprise.Operation{Scope: "tenant", Key: leaves + strconv.Itoa(n), Transactional: true}
				_, err = job.Do(t.Context(), engine, op, nil, func(ctx context.Context) (string, error) {
					runs++
					for n, s := range append([]string{"INSERT INTO effects (name) VALUES ('first')"}, statements...) {
						if err := h.exec(ctx, s); n < 2 { // those after the end may fail
							Want(t, s, err, nil)
						}
					}
					return "answer", leave()
				})
				return err
			}
			_ = do()
			var refused *job.DoError
			if err := do(); runs != 1 || !errors.As(err, &refused) || refused.Outcome != reprise.Lapsed {
				t.Errorf("%v, and it %s: the retry gets %v after %d runs, want lapsed", statements, leaves, err, runs)
			}
		}
	}
	Must(t, engine.Close(t.Context()))
	st := NewTxStore(h.Store)
	if n := h.count(t, "SELECT COUNT(*) FROM effects WHERE name = 'second'"); n != 0 {
		t.Errorf("%d effects were committed that followed the end", n)
	}
	Exec(t, h.DB, "DELETE FROM effects")
	r := NewClaim() // the connections are as they were
	h.begin(t, st, r, "SAVEPOINT own", Second, "ROLLBACK TO own")
	Must(t, Complete(t, st, r, "answer"))
	if n := h.count(t, "SELECT COUNT(*) FROM effects"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// TimesOut has transactions outlast a TxTimeout of a second: idle, or in the statement
// linger, of which a server may not hear that its client has left. They are rolled back.
// Another client, whose statement waits for their locks, goes on then, and so does the
// next attempt.
func (h *SQLHandlers) TimesOut(t *testing.T, linger, wait string) {
	t.Helper()
	st := NewTxStore(h.Store)
	for name, statement := range map[string]string{"idle": "SELECT 1", "in a statement": linger} {
		late := NewClaim()
		ctx := h.begin(t, st, late)
		waits := make(chan error, 1)
		go func() {
			_, err := h.DB.ExecContext(t.Context(), wait)
			waits <- err
		}()
		Eventually(t, name+": the statements of the handler fail", func() bool { return h.exec(ctx, statement) != nil })
		Want(t, name+": the other client", <-waits, nil)
		Want(t, name, Complete(t, st, late, "answer"), store.ErrNotApplied)
		next := Rival(late)
		h.begin(t, st, next)
		Want(t, name+": the attempt that followed", Complete(t, st, next, "answer"), nil)
		if n := h.count(t, "SELECT COUNT(*) FROM effects"); n != 1 {
			t.Errorf("%s: %d effects, want 1", name, n)
		}
		Exec(t, h.DB, "DELETE FROM effects")
	}
}

// attempt claims, writes an effect, and ends.
func (h *SQLHandlers) attempt(t *testing.T, st *TxStore, r store.ClaimRequest, end func(context.Context, store.ClaimRequest) error) (err error) {
	defer func() {
		if value := recover(); value != nil { // as in an engine
			err = fmt.Errorf("it panicked: %v", value)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, err := st.Claim(ctx, r); err != nil || got.Outcome != store.Claimed {
		return errors.Join(err, errors.New(got.Outcome.String()))
	}
	if err := h.Write(st.Bind(ctx, r.ID, r.Owner), "one"); err != nil {
		return err
	}
	return end(ctx, r)
}
