package combinations

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

var (
	draws = flag.Int("draws", 0, "how many combinations are drawn; 0 is the test's own number")
	seed  = flag.Uint64("seed", 0, "draw the combination of this seed alone, and print what happened")
)

// An Adapter puts the middleware of a framework around a handler.
type Adapter func(guard *protocol.Guard, scope Scope, next http.Handler) http.Handler

// Scope returns the principal of a request.
type Scope func(*http.Request) (string, error)

// Run draws n combinations, the same ones in each run, or as many new ones as the flags
// and REPRISE_SOAK say. It fails the test for each kind of finding, with its seed and the
// smallest draw that still has it.
// The test must not run beside others: Run gives the draws one processor, because on more
// the goroutines that one instant wakes run in random order, and a seed would fix less.
func Run(t *testing.T, n int, protect Adapter) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if labtest.RaceEnabled {
		n /= 20
	}
	if *draws > 0 {
		n = *draws
	}
	if *seed != 0 {
		w := newDraw(*seed).run(t, protect)
		t.Logf("-seed %d\n%v", *seed, w)
		for _, f := range w.findings {
			t.Error(f)
		}
		return
	}
	seeds := rand.New(rand.NewPCG(23, 50)) //nolint:gosec // to be repeated
	soak := labtest.Soak(t)
	if *draws > 0 || soak > 0 {
		seeds = rand.New(rand.NewPCG(rand.Uint64(), 0)) //nolint:gosec // to be repeated
	}
	total, until := map[string]int{}, time.Now().Add(soak)
	for i := 0; i < n || time.Now().Before(until); i++ {
		s := seeds.Uint64()
		c := newDraw(s)
		w := c.run(t, protect)
		for what, times := range w.tally {
			total[what] += times
		}
		for _, f := range w.findings {
			kind, _, _ := strings.Cut(f, ":")
			if total["FINDING "+kind]++; total["FINDING "+kind] > 1 {
				continue
			}
			shown := w
			if less := c.minimal(t, protect, kind).run(t, protect); len(less.findings) > 0 {
				shown = less
			}
			t.Errorf("-seed %d: %s\n%v", s, f, shown)
		}
	}
	t.Logf("%d draws: %v", n, total)
	if n >= 10_000 {
		demandAll(t, total)
	}
}

// demandAll fails the test if the draws never came to a sentence of the model, a refusal
// or a contradiction: then they would show nothing about it.
func demandAll(t *testing.T, total map[string]int) {
	t.Helper()
	for _, rule := range mayRunAgain {
		if total[rule.sentence] == 0 {
			t.Errorf("no run followed another because %s", rule.sentence)
		}
	}
	if total[unknownKept] == 0 {
		t.Error("no response was " + unknownKept)
	}
	for code := range mayAnswer {
		if total[string(code)] == 0 {
			t.Errorf("no response was %s", code)
		}
	}
	for _, pair := range contradictions {
		if total["refused: "+pair.name] == 0 {
			t.Errorf("no policy with %s was refused", pair.name)
		}
	}
}
