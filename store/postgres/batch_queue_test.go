package reprisepg

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// newTestTable returns the table of the defaults over db.
func newTestTable(t *testing.T, db *sql.DB, logger *slog.Logger) *table {
	t.Helper()
	st, err := newTable(database{sql: db}, Config{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestQueueFollowsThePool: those beyond the eighth, and beyond half of a small pool, of
// which one may always be sent alone; none where the application wants that.
func TestQueueFollowsThePool(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config Config
		conns  int // 0: no limit
		want   int64
	}{
		{Config{}, 0, 8},
		{Config{}, 1, 1},
		{Config{}, 4, 2},
		{Config{}, 16, 8},
		{Config{}, 100, 8},
		{Config{NoCombining: true}, 100, 0},
	} {
		db := sql.OpenDB(&refusing{})
		db.SetMaxOpenConns(test.conns)
		st, err := newTable(database{sql: db}, test.config)
		if err != nil {
			t.Fatal(err)
		}
		if combined := st.queue != nil; combined != (test.want > 0) || st.maxUncombined != test.want {
			t.Errorf("%+v over %d connections: combined %t, beyond %d", test.config, test.conns, combined, st.maxUncombined)
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
		away := refusing{Hangs: true}
		db := sql.OpenDB(&away)
		defer func() { _ = db.Close() }()
		st := newTestTable(t, db, slog.Default())
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
				_, err := st.Claim(ctx, &store.ClaimRequest{ID: operation(), Owner: store.NewOwner(), Lease: time.Minute, Policy: store.Policy{Retention: time.Hour}})
				return err
			}
			complete := func(size int) func(context.Context) error {
				return func(ctx context.Context) error {
					return st.Complete(ctx, &store.CompleteRequest{ID: operation(), Owner: store.NewOwner(), Payload: make([]byte, size), Policy: store.Policy{Retention: time.Hour}})
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
