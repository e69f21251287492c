package sqlite

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// TestFenceRisesThoughTheClockStands: over a release, and over an operator who forgets
// the record. In the bubble the clock of this host, which is that of the store, stands.
func TestFenceRisesThoughTheClockStands(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		synctest.Test(t, func(t *testing.T) {
			db := d.open(t, filepath.Join(t.TempDir(), "records.db"))
			defer db.Close()
			labtest.Must(t, reprisesqlite.Migrate(t.Context(), db, reprisesqlite.Config{}))
			st, err := reprisesqlite.New(db, reprisesqlite.Config{})
			labtest.Must(t, err)
			last, r := uint64(0), labtest.NewClaim()
			claim := func() {
				t.Helper()
				r = labtest.Rival(r)
				got := labtest.WantClaim(t, st, r, store.Claimed)
				if got.Fence <= last || got.Attempt != 1 {
					t.Errorf("attempt %d has the fence %d, after %d", got.Attempt, got.Fence, last)
				}
				last = got.Fence
			}
			for range 3 {
				claim()
				labtest.Must(t, st.Release(t.Context(), r.ID, r.Owner))
			}
			claim()
			labtest.Must(t, st.Complete(t.Context(), labtest.Completion(r, "")))
			labtest.Must(t, st.Resolve(t.Context(), r.ID, store.Resolution{State: store.StateCompleted, Fence: last, Forget: true}))
			claim()
		})
	})
}
