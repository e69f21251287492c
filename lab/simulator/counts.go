package simulator

import (
	reprise "github.com/reprise-go/reprise/core"
)

// counted adds up the counts in the events of a process.
type counted struct {
	outcomes map[reprise.Outcome]uint64
	ends     map[reprise.AttemptEnd]uint64
	labels   map[string]uint64 // of outcomes
}

func newCounted() counted {
	return counted{map[reprise.Outcome]uint64{}, map[reprise.AttemptEnd]uint64{}, map[string]uint64{}}
}

// add counts an event, and judges its times. The world's lock is held.
func (c *counted) add(w *world, e reprise.Event) {
	if e.Counted && e.Outcome != 0 {
		w.tally["outcome "+e.Outcome.String()]++
		c.outcomes[e.Outcome]++
		c.labels[e.Label]++
		if e.End != 0 || e.ClaimTime < 0 || e.WaitTime < 0 || e.ClaimTime+e.WaitTime != e.Elapsed {
			w.find("event: the times of an outcome do not fit: %+v", e)
		}
	}
	if e.Counted && e.End != 0 {
		w.tally["end "+e.End.String()]++
		c.ends[e.End]++
		if e.RunTime < 0 || e.CompleteTime < 0 || e.RunTime+e.CompleteTime > e.Elapsed {
			w.find("event: the times of an end do not fit: %+v", e)
		}
	}
}

// judgeCounts judges what a process that ended counted: each request that a guard decided
// about has one outcome, and each attempt one end, and its observer saw the same.
func (w *world) judgeCounts(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := p.guard.Engine().Stats()
	var outcomes, ends uint64
	for o, n := range s.Outcomes {
		if outcomes += n; n != p.counted.outcomes[o] {
			w.find("counts: %s counted %v %d times and observed it %d times", p.name, o, n, p.counted.outcomes[o])
		}
	}
	for e, n := range s.Ends {
		if ends += n; n != p.counted.ends[e] {
			w.find("counts: %s counted %v %d times and observed it %d times", p.name, e, n, p.counted.ends[e])
		}
	}
	for label, totals := range s.Labels {
		var own uint64
		for _, n := range totals.Outcomes {
			own += n
		}
		if own != p.counted.labels[label] {
			w.find("counts: %s counted %d outcomes of %q and observed %d", p.name, own, label, p.counted.labels[label])
		}
	}
	if decided := p.asked - p.passed; outcomes != decided && p.inner == nil && !p.settings.twice {
		w.find("counts: %s decided about %d requests and has %d outcomes: %v", p.name, decided, outcomes, s.Outcomes)
	}
	if begun := s.Outcomes[reprise.Claimed] + s.Outcomes[reprise.Unprotected]; begun != ends {
		w.find("counts: %s began %d attempts and has %d ends: %v", p.name, begun, ends, s.Ends)
	}
	if s.Running != 0 || s.Waiting != 0 || s.Background != 0 || s.EventsDropped != 0 {
		w.find("counts: %s has ended, and still has %+v", p.name, s)
	}
}
