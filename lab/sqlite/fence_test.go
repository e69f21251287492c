package sqlite

import (
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// TestFencesNeverFall: not over a release, nor over an operator who forgets the record,
// though the clock of this host, which is that of the store, was set back by an hour.
func TestFencesNeverFall(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.newFile(t)
		st, r := d.store(t, file), labtest.NewClaim()
		last := labtest.WantClaim(t, st, r, store.Claimed).Fence + 3_600_000_000
		d.exec(t, file, "UPDATE reprise_records SET fence = ?", last)
		for name, ends := range map[string]func() error{
			"released": func() error { return st.Release(t.Context(), r.ID, r.Owner) },
			"forgotten": func() error {
				labtest.Must(t, st.Complete(t.Context(), labtest.Completion(r, "")))
				return st.Resolve(t.Context(), r.ID, store.Resolution{State: store.StateCompleted, Fence: last, Forget: true})
			},
		} {
			labtest.Must(t, ends())
			r = labtest.Rival(r)
			got := labtest.WantClaim(t, st, r, store.Claimed)
			if got.Fence <= last || got.Attempt != 1 {
				t.Errorf("%s: attempt %d has the fence %d, after %d", name, got.Attempt, got.Fence, last)
			}
			last = got.Fence
		}
	})
}
