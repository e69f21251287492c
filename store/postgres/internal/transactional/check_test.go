package transactional

import (
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// TestCheckFindsSmallPools: those that let fewer than eight attempts run.
func TestCheckFindsSmallPools(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{1: 1, 7: 1, 8: 0, 100: 0} {
		s := &Store{slots: slots.Slots{Limit: limit}}
		list := s.poolFindings()
		if len(list) != want || want > 0 && (list[0].Code != "pool-size" || list[0].Severity != store.Warning) {
			t.Errorf("%d slots: %+v", limit, list)
		}
	}
}
