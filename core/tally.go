package reprise

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// mostLabels is how many labels are counted apart.
	mostLabels = 1000

	// otherLabels is the label under which the others are counted.
	otherLabels = "(others)"
)

// tally counts the outcomes and ends of one label.
type tally struct {
	outcomes [len(outcomeNames)]atomic.Uint64
	ends     [len(endNames)]atomic.Uint64
}

func (t *tally) outcome(o Outcome) { t.outcomes[o].Add(1) }

func (t *tally) end(e AttemptEnd) { t.ends[e].Add(1) }

// tallies are those of an engine. Labels are few and stay, so finding the tally of a
// label that was seen before takes no lock: the map is never written, but replaced.
type tallies struct {
	known atomic.Pointer[map[string]*tally]
	mu    sync.Mutex // of those who replace it
}

// of returns the tally of a label, which is valid.
func (ts *tallies) of(label string) *tally {
	if known := ts.known.Load(); known != nil {
		if t := (*known)[label]; t != nil {
			return t
		}
	}
	return ts.add(label)
}

func (ts *tallies) add(label string) *tally {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var known map[string]*tally
	if old := ts.known.Load(); old != nil {
		known = *old
	}
	if len(known) >= mostLabels && known[label] == nil {
		label = otherLabels
	}
	if t := known[label]; t != nil {
		return t
	}
	more := make(map[string]*tally, len(known)+1)
	maps.Copy(more, known)
	t := new(tally)
	more[strings.Clone(label)] = t
	ts.known.Store(&more)
	return t
}

// Totals counts the requests and attempts of one label, or of all. Both maps have every
// outcome and every end.
type Totals struct {
	Outcomes map[Outcome]uint64    // of requests
	Ends     map[AttemptEnd]uint64 // of attempts

	// Running is how many attempts have begun and not ended: those whose handlers run, and
	// those that the background still completes or releases. It equals Outcomes[Claimed] and
	// Outcomes[Unprotected] less all Ends.
	Running int
}

// add adds the counts of t.
func (s *Totals) add(t *tally) {
	var begun, ended uint64
	for _, e := range AttemptEnds() { // the ends first: an attempt that has ended by now has begun before
		n := t.ends[e].Load()
		s.Ends[e] += n
		ended += n
	}
	for _, o := range Outcomes() {
		n := t.outcomes[o].Load()
		s.Outcomes[o] += n
		if o == Claimed || o == Unprotected {
			begun += n
		}
	}
	s.Running += int(begun - ended)
}

func newTotals() Totals {
	return Totals{
		Outcomes: make(map[Outcome]uint64, len(outcomeNames)-1), Ends: make(map[AttemptEnd]uint64, len(endNames)-1),
	}
}

// totals returns the counts, for all labels and by label.
func (ts *tallies) totals() (all Totals, byLabel map[string]Totals) {
	all, byLabel = newTotals(), make(map[string]Totals)
	all.add(new(tally))
	known := ts.known.Load()
	if known == nil {
		return all, byLabel
	}
	for label, t := range *known {
		one := newTotals()
		one.add(t)
		byLabel[label] = one
		for o, n := range one.Outcomes {
			all.Outcomes[o] += n
		}
		for e, n := range one.Ends {
			all.Ends[e] += n
		}
		all.Running += one.Running
	}
	return all, byLabel
}
