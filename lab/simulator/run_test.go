package simulator

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/setting"
)

// The settings of a test: see the comment of the package.
const (
	runsAre = "REPRISE_RUNS"
	seedIs  = "REPRISE_SEED"
)

// mostKinds is how many kinds of findings end a test.
const mostKinds = 3

// simulate runs n draws, or as many as the environment says, and returns the sum of their
// tallies. It fails the test for each kind of finding once, up to a few, with the seed
// and the smallest draw that still has it.
func simulate(t *testing.T, n uint64) map[string]int {
	t.Helper()
	n = setting.Number(t, runsAre, n)
	total, kinds := map[string]int{}, map[string]bool{}
	first, until := setting.Number(t, seedIs, 1), time.Now().Add(setting.Soak(t))
	for seed := first; (seed < first+n || time.Now().Before(until)) && len(kinds) < mostKinds; seed++ {
		c := newDraw(seed)
		w := c.run(t, nil)
		total["simulations"]++
		for what, times := range w.tally {
			total[what] += times
		}
		for _, f := range w.findings {
			kind, _, _ := strings.Cut(f, ":")
			if kinds[kind] {
				continue
			}
			kinds[kind] = true
			shown := w
			if less := c.minimal(t, kind).run(t, nil); len(less.findings) > 0 && n > 1 {
				shown = less
			}
			t.Errorf("%s\n%s=1 %s=%d repeats it\n%v", f, runsAre, seedIs, seed, shown)
		}
		if n == 1 {
			t.Log(w)
		}
	}
	return total
}
