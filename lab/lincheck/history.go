package lincheck

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// deployment is a store as a service has it: several processes over one set of records.
type deployment struct {
	stores    []store.Store // one a process
	repeats   bool          // calls are repeated inside: by a cluster's client until it knows the nodes, by Acked to confirm a claim
	asksAgain bool          // a claim whose result came when most of its lease was over is repeated
	clock     clock
	pace      pace
}

// pace is how fast the clients of a deployment are, and how long leases and validities
// last. The zero value is that of most stores.
type pace struct {
	calls   int           // of each client
	between time.Duration // two calls, at most
	unit    time.Duration // leases and validities are multiples of it; zero: they are milliseconds and parts of them
	ids     int
}

// executesTwice reports whether a store may have executed a claim twice before it
// returned: each time so that no repetition changes the effect of the first.
func (d *deployment) executesTwice(in input, out output) bool {
	if in.kind != claim || d.repeats {
		return in.kind == claim
	}
	return d.asksAgain && out.at.to-out.at.from > in.lease/10*9
}

// The size of one history.
const (
	clients   = 8
	calls     = 120 // of each client
	ids       = 6
	deadline  = 2 * time.Minute // for the checker, of one ID
	histories = 2               // of each deployment that are decided; more in a soak

	mostHistories = 40 // until they are, and have met everything that they have to
)

// everything has the situations that the histories of a store must meet, so that they are
// significant.
var everything = []string{
	"claimed", "takeover", "in-progress", "completed", "mismatch", "renewal renewed", "renewal lost", "renewal completed",
	"complete", "refused completion", "release", "lapsed", "unknown", "refused unknown", "unknown claim", "unknown complete",
}

// history runs clients on a deployment, and returns their calls and results.
func history(t *testing.T, d *deployment, seed uint64) *recorder {
	t.Helper()
	h := &recorder{start: time.Now(), byID: map[store.ID][]porcupine.Operation{}, tally: map[string]int{}}
	dice := rand.New(rand.NewPCG(seed, 0))
	names := make([]store.ID, cmp.Or(d.pace.ids, ids))
	for i := range names {
		for j := range names[i] {
			names[i][j] = byte(dice.Uint32())
		}
	}
	var group sync.WaitGroup
	others := &strangers{}
	for n := range clients {
		c := &client{
			recorder: h, number: n, store: d.stores[n%len(d.stores)], dice: rand.New(rand.NewPCG(seed, uint64(n)+1)),
			d: d, ids: names, others: others,
		}
		group.Go(func() { c.run(t.Context()) })
	}
	group.Wait()
	h.settle(d)
	return h
}

// check reports the first ID of a history that no order of its operations explains.
func (h *recorder) check(tb testing.TB, seed uint64) (explained bool) {
	tb.Helper()
	for _, err := range h.wrong {
		tb.Errorf("a call answered what no model knows: %v", err)
	}
	for id, operations := range h.byID {
		result, info := porcupine.CheckOperationsVerbose(model(), operations, deadline)
		switch result {
		case porcupine.Ok:
			continue
		case porcupine.Unknown:
			h.endless++
			tb.Logf("seed %d: the checker did not come to an end for %d operations", seed, len(operations))
		default:
			tb.Logf("seed %d: no order explains the %d operations on %v\n%s", seed, len(operations), id, unexplained(operations, info))
			return false
		}
	}
	return true
}

// checked runs histories on a deployment until its time is up, and demands that each has
// an explanation and that together they met everything that there is to meet.
func checked(t *testing.T, d *deployment, meets ...string) (tally map[string]int) {
	t.Helper()
	return checkedRuns(t, func(t *testing.T, seed uint64) *recorder {
		t.Helper()
		return history(t, d, seed)
	}, meets...)
}

// checkedRuns is checked for anything that has histories.
func checkedRuns(t *testing.T, run func(*testing.T, uint64) *recorder, meets ...string) (tally map[string]int) {
	t.Helper()
	tally = map[string]int{}
	n, decided := 0, 0
	met := func() bool {
		return !slices.ContainsFunc(meets, func(what string) bool { return tally[what] == 0 })
	}
	for until := time.Now().Add(labtest.Soak(t)); n < mostHistories && (decided < histories || !met()) || time.Now().Before(until); n++ {
		seed := rand.Uint64()
		h := run(t, seed)
		if !h.check(t, seed) {
			t.Errorf("seed %d: the history is not linearizable", seed)
		}
		if h.endless == 0 { // the checker's time is limited, and the machine may be busy
			decided++
		}
		for what, n := range h.tally {
			tally[what] += n
		}
	}
	if decided == 0 {
		t.Errorf("none of %d histories was decided", n)
	}
	for _, what := range meets {
		if tally[what] == 0 {
			t.Errorf("no call met %q, so nothing was shown about it", what)
		}
	}
	t.Logf("%d histories, %d of them decided: %v", n, decided, tally)
	return tally
}

// unexplained returns the operations around the first that the longest explanation leaves
// out.
func unexplained(operations []porcupine.Operation, info porcupine.LinearizationInfo) string {
	longest := []int{}
	for _, orders := range info.PartialLinearizations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	explained := map[int]int{}
	for place, i := range longest {
		explained[i] = place + 1
	}
	order := make([]int, len(operations))
	first := time.Duration(math.MaxInt64)
	for i := range operations {
		order[i] = i
		if out := operations[i].Output.(output); explained[i] == 0 && !out.unknown {
			first = min(first, out.at.from)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(operations[a].Call, operations[b].Call) })
	var text strings.Builder
	for _, i := range order {
		in, out := operations[i].Input.(input), operations[i].Output.(output)
		if out.at.from > first+60*time.Millisecond || out.at.to < first-150*time.Millisecond {
			continue
		}
		fmt.Fprintf(&text, "%4d  %-9s %x print=%d lease=%v policy=%+v takeover=%v/%d → %s\n",
			explained[i], in.kind, in.owner[:2], in.print[0], in.lease, in.policy, in.takeover, in.attempts, out)
	}
	return text.String()
}
