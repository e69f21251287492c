package harness

import (
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
)

func TestRanRejectsAnotherCount(t *testing.T) {
	t.Parallel()
	app := New(t, memstore.New(), nil)
	app.Count()
	for n, failures := range map[int64]int{0: 1, 1: 0, 2: 1} {
		if got := judge(t, app, func() { app.Ran(n) }); got != failures {
			t.Errorf("Ran(%d) after one run: %d failures, want %d", n, got, failures)
		}
	}
}
