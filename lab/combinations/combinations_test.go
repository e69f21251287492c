package combinations

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

var (
	draws = flag.Int("draws", 10_000, "how many combinations are drawn")
	seed  = flag.Uint64("seed", 0, "draw the combination of this seed alone, and print what happened")
)

// TestMain gives the draws one processor: on more, goroutines that one instant wakes run
// in random order, and a seed would fix less.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	if os.Getenv("REPRISE_NOLEAK") == "" {
		labtest.Main(m)
	}
	os.Exit(m.Run())
}

// TestRandomCombinationsKeepTheGuarantees draws policies, faults and schedules, and
// judges every run and every response by the model.
func TestRandomCombinationsKeepTheGuarantees(t *testing.T) {
	if *seed != 0 {
		w := newDraw(*seed).run(t)
		t.Log("\n" + w.String())
		for _, f := range w.findings {
			t.Error(f)
		}
		return
	}
	total, kinds, until := map[string]int{}, map[string]bool{}, time.Now().Add(labtest.Soak(t))
	for n := 0; n < *draws || time.Now().Before(until); n++ {
		s := rand.Uint64()
		c := newDraw(s)
		w := c.run(t)
		for what, times := range w.tally {
			total[what] += times
		}
		if len(w.findings) == 0 {
			continue
		}
		kind, _, _ := strings.Cut(w.findings[0], ":")
		if total["FINDING "+kind]++; kinds[kind] {
			continue
		}
		kinds[kind] = true
		if less := c.minimal(t, kind).run(t); len(less.findings) > 0 {
			w = less
		}
		t.Errorf("-seed %d: %s\n%v", s, strings.Join(w.findings, "\n"), w)
	}
	t.Logf("%v", total)
}
