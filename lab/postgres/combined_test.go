package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// manyCallers are enough for batches.
const manyCallers = 64

// pgTogether calls f from many goroutines at once.
func pgTogether(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-start; f(i) })
	}
	close(start)
	wg.Wait()
}

// TestPostgresCombinedOutcomes: in a batch each call gets the same outcome as alone: new,
// in progress, completed, of another request, lapsed, taken over, repeated by its owner,
// with a payload too large for a batch, and damaged.
func TestPostgresCombinedOutcomes(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(8))
	st := f.Leased(t)
	large := strings.Repeat("x", 70_000)
	running, done, big, empty, lapsed, damaged := labtest.NewClaim(), labtest.NewClaim(), labtest.NewClaim(), labtest.NewClaim(), labtest.NewClaim(), labtest.NewClaim()
	lapsed.Lease = time.Millisecond
	for _, r := range []store.ClaimRequest{running, done, big, empty, lapsed, damaged} {
		labtest.WantClaim(t, st, r, store.Claimed)
	}
	labtest.Must(t, labtest.Complete(t, st, done, "answer"))
	labtest.Must(t, labtest.Complete(t, st, big, large))
	labtest.Must(t, labtest.Complete(t, st, empty, ""))
	f.corrupt(t, damaged.ID, storetest.UnknownVersion)
	pgPass(5 * time.Millisecond)
	claim := func(r store.ClaimRequest, change func(*store.ClaimRequest)) func() string {
		return func() string {
			if change != nil {
				change(&r)
			}
			ctx, cancel := pgCall(t)
			defer cancel()
			got, err := st.Claim(ctx, r)
			if err != nil {
				return fmt.Sprintf("%t corrupt", strings.Contains(err.Error(), store.ErrCorrupt.Error()))
			}
			return fmt.Sprintf("%v %d %t", got.Outcome, len(got.Payload), got.Payload == nil)
		}
	}
	other := func(r *store.ClaimRequest) { r.Fingerprint[0]++ }
	kinds := []struct {
		want string
		call func() string
	}{
		{"in-progress 0 true", claim(labtest.Rival(running), nil)},
		{"mismatch 0 true", claim(labtest.Rival(running), other)},
		{"claimed 0 true", claim(running, nil)},
		{"completed 6 false", claim(labtest.Rival(done), nil)},
		{"mismatch 0 true", claim(labtest.Rival(done), other)},
		{"completed 70000 false", claim(labtest.Rival(big), nil)},
		{"completed 0 false", claim(labtest.Rival(empty), nil)},
		{"lapsed 0 true", claim(labtest.Rival(lapsed), func(r *store.ClaimRequest) { r.Takeover = false })},
		{"claimed 0 true", claim(lapsed, nil)},
		{"true corrupt", claim(labtest.Rival(damaged), nil)},
	}
	for range 5 {
		pgTogether(manyCallers, func(i int) {
			if i >= len(kinds) {
				labtest.Claimed(t, st)
				return
			}
			if got := kinds[i].call(); got != kinds[i].want {
				t.Errorf("%d: %q, want %q", i, got, kinds[i].want)
			}
		})
	}
}
