package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/table/tabletest"
)

// TestQueueFollowsThePool: those beyond the eighth, and beyond half of a small pool, of
// which one may always be sent alone; none where the application wants that, or where it
// chose the simple protocol.
func TestQueueFollowsThePool(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		options table.Options
		conns   int // 0: no limit
		want    int64
	}{
		{table.Options{}, 0, 8},
		{table.Options{}, 1, 1},
		{table.Options{}, 4, 2},
		{table.Options{}, 16, 8},
		{table.Options{}, 100, 8},
		{table.Options{Mode: pgx.QueryExecModeExec}, 100, 8},
		{table.Options{NoCombining: true}, 100, 0},
		{table.Options{Mode: pgx.QueryExecModeSimpleProtocol}, 100, 0},
	} {
		db := sql.OpenDB(&pgtest.Refusing{})
		db.SetMaxOpenConns(test.conns)
		store := New(tabletest.New(t, db, test.options))
		if combined := store.queue != nil; combined != (test.want > 0) || store.maxUncombined != test.want {
			t.Errorf("%+v over %d connections: combined %t, beyond %d", test.options, test.conns, combined, store.maxUncombined)
		}
		_ = db.Close()
	}
}

// TestCombinedCallsShareTheirConnections: eight calls have separate connections, the
// calls beyond them have two, and a payload that is too large for a batch has one again.
// A call that ended counts no more.
func TestCombinedCallsShareTheirConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := pgtest.Refusing{Hangs: true}
		db := sql.OpenDB(&away)
		defer func() { _ = db.Close() }()
		st := New(tabletest.New(t, db, table.Options{}))
		for round := range 2 {
			before := len(away.Asked())
			call := func(n, want int, do func(context.Context) error) {
				t.Helper()
				for range n {
					go func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if do(ctx) == nil {
							t.Error("a call succeeds without a server")
						}
					}()
					synctest.Wait()
				}
				if n := len(away.Asked()) - before; n != want {
					t.Errorf("%d connections are asked for, want %d", n, want)
				}
			}
			operation := func() (id store.ID) { // each its own: a batch has one call of each
				owner := store.NewOwner()
				copy(id[:], owner[:])
				return id
			}
			claim := func(ctx context.Context) error {
				_, err := st.Claim(ctx, store.ClaimRequest{ID: operation(), Owner: store.NewOwner(), Lease: time.Minute, Policy: store.Policy{Retention: time.Hour}})
				return err
			}
			complete := func(size int) func(context.Context) error {
				return func(ctx context.Context) error {
					return st.Complete(ctx, store.CompleteRequest{ID: operation(), Owner: store.NewOwner(), Payload: make([]byte, size), Policy: store.Policy{Retention: time.Hour}})
				}
			}
			kinds := []func(context.Context) error{claim, complete(1)}
			call(7, 7, kinds[round])
			call(1, 8, kinds[1-round])
			call(20, 10, claim)
			call(20, 10, complete(largestCombined))
			call(3, 13, complete(largestCombined+1))
			time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
			synctest.Wait()
			if n := st.active.Load(); n != 0 {
				t.Errorf("%d calls are on their way after the last", n)
			}
		}
	})
}

// TestQueueErrorIsUnknownOnceTheCallWasSent: a call that was not sent was not executed,
// and an error of the store stays unchanged.
func TestQueueErrorIsUnknownOnceTheCallWasSent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ err, want error }{
		{&batching.Error{Err: context.Canceled}, store.ErrBusy},
		{&batching.Error{Err: context.DeadlineExceeded}, store.ErrBusy},
		{&batching.Error{Err: &batching.PanicError{Value: "oops"}}, store.ErrUnavailable},
		{&batching.Error{Sent: true, Err: context.Canceled}, store.ErrUnknown},
		{fmt.Errorf("%w: postgres: batch: full", store.ErrFull), store.ErrFull},
	} {
		if got := queueError("claim", test.err); !errors.Is(got, test.want) || errors.Is(got, context.Canceled) {
			t.Errorf("%v, want %v", got, test.want)
		}
	}
	if got := queueError("claim", nil); got != nil {
		t.Errorf("success became %v", got)
	}
}
