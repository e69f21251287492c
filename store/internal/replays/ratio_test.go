package replays

import "testing"

// TestReplaysAreCommonFromTwoInFive: the estimate follows the traffic to either side.
func TestReplaysAreCommonFromTwoInFive(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		replays int // of ten claims
		want    bool
	}{{0, false}, {3, false}, {5, true}, {10, true}} {
		var r Ratio
		for range 100 {
			for i := range 10 {
				r.Count(i < test.replays)
			}
		}
		if got := r.Common(); got != test.want {
			t.Errorf("with %d replays in ten they are common: %t", test.replays, got)
		}
		if share := r.share.Load(); share > recentWhole {
			t.Errorf("a share of %d in %d", share, recentWhole)
		}
	}
	var r Ratio
	for range 200 {
		r.Count(true)
	}
	few := 0
	for ; r.Common(); few++ {
		r.Count(false)
	}
	if few < 40 || few > 80 { // 64 · ln 2.5 is 59
		t.Errorf("after %d claims without a replay they are not common any more", few)
	}
	r.share.Store(recentCommon)
	if r.Common() {
		t.Error("two in five are common already")
	}
}
