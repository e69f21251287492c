package postgres

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
)

// contenders claim each key at once.
const contenders = 16

// TestPostgresContention: of sixteen claims of one key at once, one is granted, over many
// keys and on both stores.
func TestPostgresContention(t *testing.T) {
	t.Parallel()
	keys := labtest.Times(1000, 100)
	server := servers.SharedPostgres(t)
	pgContend(t, pgSetup(t, server, labtest.MaxConns(contenders)).Leased(t), keys)
}

// pgContend lets contenders race for each key, completes the winner's claim, and
// counts.
func pgContend(t *testing.T, st store.Store, keys int) {
	t.Helper()
	granted, refused, replayed := 0, 0, 0
	for range keys {
		key := pgClaim()
		var (
			wg      sync.WaitGroup
			start   = make(chan struct{})
			winners atomic.Int64
			late    atomic.Int64
			done    atomic.Int64
		)
		ended := make(chan struct{}, contenders)
		for range contenders {
			r := pgRival(key)
			wg.Go(func() {
				<-start
				ctx, cancel := pgCall(t)
				defer cancel()
				got, err := st.Claim(ctx, r)
				ended <- struct{}{}
				switch {
				case err != nil:
					t.Errorf("claim: %v", err)
				case got.Outcome == store.InProgress:
					late.Add(1)
				case got.Outcome == store.Completed:
					done.Add(1)
				case got.Outcome == store.Claimed:
					winners.Add(1)
					for range contenders / 2 { // it completes while others still claim
						<-ended
					}
					if err := st.Complete(ctx, pgCompletion(r, "answer")); err != nil {
						t.Errorf("complete: %v", err)
					}
				default:
					t.Errorf("claim answered %v", got.Outcome)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := winners.Load(); n != 1 {
			t.Fatalf("%d claims of one key were granted", n)
		}
		granted, refused, replayed = granted+1, refused+int(late.Load()), replayed+int(done.Load())
	}
	t.Logf("%d keys, %d claims: %d granted, %d in progress, %d replayed, 0 double claims", keys, keys*contenders, granted, refused, replayed)
}
