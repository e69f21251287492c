package harness

import "testing"

func TestRanRejectsAnotherCount(t *testing.T) {
	t.Parallel()
	app := New(t, nil)
	app.Count()
	for n, failures := range map[int64]int{0: 1, 1: 0, 2: 1} {
		if got := judge(t, app, func() { app.Ran(n) }); got != failures {
			t.Errorf("Ran(%d) after one run: %d failures, want %d", n, got, failures)
		}
	}
}
