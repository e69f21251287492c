package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgHandlers are handlers over both kinds of pool, on one table of effects.
type pgHandlers struct {
	*pgFixture
	engine *reprise.Engine
	insert func(ctx context.Context, n int) error
}

// eachPool runs a test over a pgx pool and over a *sql.DB, each with an engine.
func eachPool(t *testing.T, c reprise.Config, conns int32, test func(t *testing.T, h *pgHandlers)) {
	t.Helper()
	for _, kind := range []string{"pgx", "sql"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := servers.SharedPostgres(t)
			f := pgSetup(t, server, labtest.MaxConns(conns))
			f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer PRIMARY KEY)")
			f.Config.TxTimeout = 4 * time.Second
			st, h := f.Leased(t), &pgHandlers{pgFixture: pgOn(labtest.NewPool(t, server.URL()), f.Config)}
			h.insert = func(ctx context.Context, n int) error {
				tx, err := reprisepg.Tx(ctx)
				if err == nil {
					_, err = tx.Exec(ctx, f.insertion(), n)
				}
				return err
			}
			if kind == "sql" {
				var err error
				st, err = reprisepg.NewSQL(labtest.NewDB(t, server.URL(), labtest.MaxConns(conns)), f.Config)
				labtest.Must(t, err)
				h.insert = func(ctx context.Context, n int) error {
					tx, err := reprisepg.SQLTx(ctx)
					if err == nil {
						_, err = tx.ExecContext(ctx, f.insertion(), n)
					}
					return err
				}
			}
			var err error
			h.engine, err = reprise.New(st, c)
			labtest.Must(t, err)
			t.Cleanup(func() {
				ctx, cancel := pgCall(t)
				defer cancel()
				labtest.Must(t, h.engine.Close(ctx))
			})
			test(t, h)
		})
	}
}

// begin begins an attempt of a transactional operation.
func (h *pgHandlers) begin(t *testing.T, key string, want reprise.Outcome) reprise.Result {
	t.Helper()
	got, err := h.engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: key, Transactional: true})
	labtest.Must(t, err)
	if got.Outcome != want {
		t.Fatalf("begin answered %v, want %v", got.Outcome, want)
	}
	return got
}

// complete completes an attempt, and fails the test unless it ends so.
func (h *pgHandlers) complete(t *testing.T, a *reprise.Attempt, c reprise.Completion, want reprise.AttemptEnd) {
	t.Helper()
	got, err := a.Complete(c)
	labtest.Must(t, err)
	if got.End != want {
		t.Errorf("it ended as %v (%v), want %v", got.End, got.Err, want)
	}
}

// want fails the test unless there are so many effects.
func (h *pgHandlers) want(t *testing.T, effects int) {
	t.Helper()
	if n := h.effects(t); n != effects {
		t.Errorf("%d effects, want %d", n, effects)
	}
}

// TestPostgresEffectsCommitWithTheAnswer (G4): effects are there exactly when the answer
// is, whatever the end; and a handler that asks for no transaction has none.
func TestPostgresEffectsCommitWithTheAnswer(t *testing.T) {
	t.Parallel()
	answer := reprise.Completion{Payload: []byte("answer")}
	eachPool(t, reprise.Config{}, 6, func(t *testing.T, h *pgHandlers) {
		released := h.begin(t, "key", reprise.Claimed).Attempt
		labtest.Must(t, h.insert(released.Context(), 1))
		h.begin(t, "key", reprise.InProgress) // its claim is committed
		h.want(t, 0)
		labtest.Must(t, released.Release())
		labtest.Want(t, "Tx after the end", h.insert(released.Context(), 1), store.ErrInvalid)

		kept := h.begin(t, "key", reprise.Claimed).Attempt
		labtest.Must(t, h.insert(kept.Context(), 2))
		h.complete(t, kept, answer, reprise.EndRecorded)
		h.want(t, 1)
		if got := h.begin(t, "key", reprise.Replayed); string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}

		refused := h.begin(t, "refused", reprise.Claimed).Attempt
		labtest.Must(t, h.insert(refused.Context(), 3))
		h.complete(t, refused, reprise.Completion{Payload: []byte("500"), DiscardEffects: true}, reprise.EndRecorded)
		h.begin(t, "refused", reprise.Replayed)

		unknown := h.begin(t, "unknown", reprise.Claimed).Attempt
		labtest.Must(t, h.insert(unknown.Context(), 4))
		labtest.Must(t, unknown.Unknown("a bank timed out"))
		h.begin(t, "unknown", reprise.Lapsed)

		h.complete(t, h.begin(t, "asks for none", reprise.Claimed).Attempt, answer, reprise.EndRecorded)
		h.want(t, 1)

		plain, err := h.engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: "another policy"})
		labtest.Must(t, err)
		labtest.Want(t, "Tx of another policy", h.insert(plain.Attempt.Context(), 5), store.ErrInvalid)
		labtest.Must(t, plain.Attempt.Release())
	})
}

// TestPostgresNestedAttemptsHaveTheirOwn: an attempt inside another one has its own
// transaction, or none, and never that of the other: their ends are two.
func TestPostgresNestedAttemptsHaveTheirOwn(t *testing.T) {
	t.Parallel()
	eachPool(t, reprise.Config{}, 6, func(t *testing.T, h *pgHandlers) {
		outer := h.begin(t, "outer", reprise.Claimed).Attempt
		labtest.Must(t, h.insert(outer.Context(), 1))
		elsewhere, err := reprise.New(memstore.New(), reprise.Config{})
		labtest.Must(t, err)
		for name, begin := range map[string]func(reprise.Operation) (reprise.Result, error){
			"another policy": func(op reprise.Operation) (reprise.Result, error) { return h.engine.Begin(outer.Context(), op) },
			"the same key, another store": func(op reprise.Operation) (reprise.Result, error) {
				op.Key = "outer"
				return elsewhere.Begin(outer.Context(), op)
			},
		} {
			inner, err := begin(reprise.Operation{Scope: "tenant", Key: name})
			labtest.Must(t, err)
			labtest.Want(t, name, h.insert(inner.Attempt.Context(), 2), store.ErrInvalid)
			labtest.Must(t, inner.Attempt.Release())
		}
		inner, err := h.engine.Begin(outer.Context(), reprise.Operation{Scope: "tenant", Key: "inner", Transactional: true})
		labtest.Must(t, err)
		labtest.Must(t, h.insert(inner.Attempt.Context(), 3))
		h.complete(t, inner.Attempt, reprise.Completion{Payload: []byte("answer")}, reprise.EndRecorded)
		labtest.Must(t, h.insert(outer.Context(), 4))
		labtest.Must(t, outer.Release())
		h.want(t, 1)
		labtest.Must(t, elsewhere.Close(t.Context()))
	})
}

// TestPostgresEndedByTheHandler: SQL text that ends the transaction is misuse, which
// nothing can undo: the record says that the outcome is unknown, and no retry runs.
func TestPostgresEndedByTheHandler(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	for _, text := range []string{"COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"} {
		r := labtest.NewClaim()
		labtest.WantClaim(t, st, r, store.Claimed)
		if _, err := pgTx(t, st, r).Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		labtest.Want(t, text, labtest.Complete(t, st, r, "answer"), store.ErrMisconfigured)
		labtest.WantClaim(t, st, labtest.Rival(r), store.Lapsed)
	}
	if n := f.Pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are still out", n)
	}
}

// TestPostgresHabitsDoNoHarm: a handler over database/sql that ends its *sql.Tx, or rolls
// it back when it returns, ends nothing.
func TestPostgresHabitsDoNoHarm(t *testing.T) {
	t.Parallel()
	eachPool(t, reprise.Config{}, 6, func(t *testing.T, h *pgHandlers) {
		for n, end := range []string{"commit", "rollback"} {
			a := h.begin(t, end, reprise.Claimed).Attempt
			labtest.Must(t, h.insert(a.Context(), n))
			ctx := a.Context()
			if tx, err := reprisepg.Tx(ctx); err == nil {
				ends := map[string]func(context.Context) error{"commit": tx.Commit, "rollback": tx.Rollback}
				labtest.Want(t, end, ends[end](ctx), reprisepg.ErrTxManaged)
			} else {
				tx, err := reprisepg.SQLTx(ctx)
				labtest.Must(t, err)
				ends := map[string]func() error{"commit": tx.Commit, "rollback": tx.Rollback}
				labtest.Want(t, end, ends[end](), reprisepg.ErrTxManaged)
			}
			h.complete(t, a, reprise.Completion{Payload: []byte("answer")}, reprise.EndRecorded)
		}
		h.want(t, 2)
	})
}

// TestPostgresTransactionTimesOut: a transaction that outlasts TxTimeout is rolled back,
// idle or in a statement, and its attempt is released when its handler returns.
func TestPostgresTransactionTimesOut(t *testing.T) {
	t.Parallel()
	f, _ := pgTxSetup(t)
	f.Config.TxTimeout = time.Second
	st := f.Transactional(t)
	for name, linger := range map[string]string{"idle": "", "in a statement": "SELECT pg_sleep(60)"} {
		r := labtest.NewClaim()
		labtest.WantClaim(t, st, r, store.Claimed)
		tx := pgTx(t, st, r)
		f.insert(t, tx, 1)
		if linger != "" {
			if _, err := tx.Exec(t.Context(), linger); err == nil {
				t.Errorf("%s: it was not stopped", name)
			}
		}
		labtest.Eventually(t, name+": the connection is closed", func() bool {
			_, err := tx.Exec(t.Context(), "SELECT 1")
			return err != nil
		})
		labtest.Want(t, name, labtest.Complete(t, st, r, "answer"), store.ErrNotApplied)
		labtest.WantClaim(t, st, labtest.Rival(r), store.Claimed)
		if n := f.effects(t); n != 0 {
			t.Errorf("%s: %d effects are left", name, n)
		}
	}
}

// TestPostgresPoolsOfAnySize: fifty handlers at once, over pools in which there is hardly
// room for one, all commit; claims and renewals find a connection meanwhile.
func TestPostgresPoolsOfAnySize(t *testing.T) {
	t.Parallel()
	for _, conns := range []int32{2, 4} {
		eachPool(t, reprise.Config{ClaimTimeout: time.Minute, CompleteTimeout: time.Minute}, conns, func(t *testing.T, h *pgHandlers) {
			var wg sync.WaitGroup
			for n := range 50 {
				wg.Go(func() {
					got, err := h.engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: time.Duration(n).String(), Transactional: true})
					if err != nil || got.Outcome != reprise.Claimed {
						t.Errorf("begin: %v, %v", got.Outcome, err)
						return
					}
					for err = h.insert(got.Attempt.Context(), n); errors.Is(err, store.ErrBusy); { // longer than TxTimeout, on a busy machine
						err = h.insert(got.Attempt.Context(), n)
					}
					labtest.Must(t, err)
					h.complete(t, got.Attempt, reprise.Completion{Payload: []byte("answer")}, reprise.EndRecorded)
				})
			}
			wg.Wait()
			h.want(t, 50)
		})
	}
	alone, err := reprise.New(pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(1)).Leased(t), reprise.Config{})
	labtest.Must(t, err)
	labtest.Want(t, "a pool of one", alone.Transacts(), store.ErrInvalid)
	labtest.Must(t, alone.Close(t.Context()))
}
