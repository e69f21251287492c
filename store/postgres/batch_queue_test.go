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
// which one may always be sent alone.
func TestQueueFollowsThePool(t *testing.T) {
	t.Parallel()
	for conns, want := range map[int]int64{0: 8, 1: 1, 4: 2, 16: 8, 100: 8} { // 0: no limit
		db := sql.OpenDB(&refusing{})
		db.SetMaxOpenConns(conns)
		if st := newTestTable(t, db, slog.Default()); st.maxUncombined != want {
			t.Errorf("over %d connections: combined beyond %d, want %d", conns, st.maxUncombined, want)
		}
		_ = db.Close()
	}
}

// TestCombinedCallsShareTheirConnections: eight calls have separate connections, the
// calls beyond them have two, and two more when these hang, and a payload that is too
// large for a batch has one again. A call that ended counts no more.
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
			time.Sleep(leastPatience)                //nolint:forbidigo // in a bubble
			call(1, 16, complete(largestCombined+1)) // and those that waited have two
			time.Sleep(2 * time.Minute)              //nolint:forbidigo // in a bubble
			synctest.Wait()
			if n := st.active.Load(); n != 0 {
				t.Errorf("%d calls are on their way after the last", n)
			}
		}
	})
}
