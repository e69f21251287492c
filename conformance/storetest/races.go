package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

const (
	racers = 8
	rounds = 10
)

// raceCases are about calls that come at once, which no row of steps expresses.
var raceCases = []testCase{
	function("race-first", nil, "G1 exclusion",
		"Of many owners that claim a new ID at once, in two processes, exactly one is granted.",
		func(s *scene) {
			for i := range rounds {
				winner := s.caller(a.of(i)).race(1)
				s.want("complete", winner.tryComplete("of the winner"), nil)
				s.must(a.of(i).claims(replay("of the winner")))
			}
		}),
	function("race-takeover", nil, "G1 exclusion",
		"Of many owners that take over a lapsed attempt at once, exactly one is granted.",
		func(s *scene) {
			for _, c := range s.lapseAll(rounds) {
				winner := c.race(2)
				s.want("complete", c.tryComplete("of the stale owner"), lost)
				s.want("complete", winner.tryComplete("of the winner"), nil)
			}
		}),
	function("race-repeat", nil, "Store, Repetition",
		"An owner that repeats its claim before the first reply arrives is granted one attempt, and no other owner is granted any.",
		func(s *scene) {
			for i := range rounds {
				var mu sync.Mutex
				fences := map[uint64]bool{}
				owner := s.caller(a.of(i))
				together(racers, func(n int) {
					c := *owner
					if n%2 == 1 {
						c.store = s.two
					}
					got, err := c.untilDefinite()
					if err != nil || got.Outcome != store.Claimed {
						s.Errorf("claim answered %v, %v to its owner", got.Outcome, err)
					}
					mu.Lock()
					defer mu.Unlock()
					fences[got.Fence] = true
				})
				if len(fences) != 1 {
					s.Fatalf("one owner was given the fences %v", fences)
				}
				s.must(b.of(i).claims(inProgress))
			}
		}),
	function("race-late-completion", nil, "G3 fencing",
		"When a late completion races a takeover, one of them wins and the other learns that it lost.",
		func(s *scene) {
			for some := range slices.Chunk(s.lapseAll(rounds*racers), racers) {
				together(len(some), func(i int) { some[i].raceTakeover() })
			}
		}),
	function("race-release", nil, "Store.Claim, G3 fencing",
		"Claims that race the release of a lapsed attempt, and each other's releases, take nothing from a record that is gone: after a release the attempt is 1, the fence has grown, and the lease is whole.",
		func(s *scene) {
			for _, c := range s.lapseAll(rounds) {
				c.raceRelease()
			}
		}),
	function("race-purge", purger, "Purger",
		"A purge that races the new claim of an expired ID does not delete the new attempt.",
		func(s *scene) {
			for i := range rounds {
				dead := make([]*caller, racers)
				for n := range dead {
					p := a.of(i*racers + n)
					s.must(p.lease(short).keep(short).claims(first))
					dead[n] = s.caller(p.lease(long).keep(long))
				}
				s.must(passes(short.times(3))) // a store may purge a little late
				together(racers+1, func(n int) {
					if n == racers {
						s.report("purge", purges(anyNumber).do(s), nil)
					} else if got, err := dead[n].untilDefinite(); err != nil || got.Outcome != store.Claimed {
						s.Errorf("claim answered %v, %v", got.Outcome, err)
					}
				})
				for n := range dead {
					s.must(b.of(i*racers + n).claims(inProgress))
				}
			}
		}),
}

// together calls do for 0 to n-1 at once, and returns when all have returned.
func together(n int, do func(int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}

// report and want compare an error; want ends the test if it is another.
func (s *scene) report(what string, err, want error) {
	s.Helper()
	if err := wantError(what, err, want); err != nil {
		s.Error(err)
	}
}

func (s *scene) want(what string, err, want error) {
	s.Helper()
	if err := wantError(what, err, want); err != nil {
		s.Fatal(err)
	}
}

// lapseAll returns the owners of n attempts whose leases have run out, in operations 0 to
// n-1.
func (s *scene) lapseAll(n int) []*caller {
	s.Helper()
	all := make([]*caller, n)
	for i := range all {
		s.must(a.of(i).lease(short).claims(first))
		all[i] = s.caller(a.of(i).lease(long))
	}
	s.must(passes(short))
	return all
}

// race lets rivals claim at once, half of them in each process, and returns the only one
// that is granted, as the wanted attempt. The others have to see it in progress.
func (c *caller) race(attempt int) *caller {
	c.Helper()
	var mu sync.Mutex
	var winners []*caller
	together(racers, func(i int) {
		rival := c.rivalIn(i)
		got, err := rival.untilDefinite()
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			c.Errorf("claim: %v", err)
		case got.Outcome == store.Claimed:
			winners = append(winners, rival)
		case got.Outcome != store.InProgress:
			c.Errorf("claim answered %v, want %v or %v", got.Outcome, store.Claimed, store.InProgress)
		}
	})
	if len(winners) != 1 || winners[0].granted.Attempt != attempt {
		c.Fatalf("%d of %d claims were granted, want 1 as attempt %d", len(winners), racers, attempt)
	}
	return winners[0]
}

// rivalIn returns a rival in one process or the other.
func (c *caller) rivalIn(process int) *caller {
	rival := c.rival()
	if process%2 == 1 {
		rival.store = c.one
	}
	return rival
}

// raceRelease releases the lapsed attempt of c while rivals, half of whom begin before,
// claim and release. A rival holds a granted claim until it releases it, so the grants
// have an order.
func (c *caller) raceRelease() {
	c.Helper()
	var (
		mu     sync.Mutex
		grants int
		fence  uint64
	)
	together(racers+1, func(i int) {
		if i == racers/2 {
			c.report("release", c.tryRelease(), nil)
			return
		}
		for range rounds {
			rival := c.rivalIn(i)
			got, err := rival.untilDefinite()
			c.report("claim", err, nil)
			if err != nil || got.Outcome != store.Claimed {
				continue
			}
			mu.Lock()
			if grants++; grants > 1 && got.Attempt != 1 || got.Fence <= fence || got.Remaining < hour/2 {
				c.Errorf("attempt %d with fence %d and a lease of %v was granted after a release, and after fence %d", got.Attempt, got.Fence, got.Remaining, fence)
			}
			fence = got.Fence
			mu.Unlock()
			c.report("release", rival.tryRelease(), nil)
		}
	})
}

// raceTakeover completes the lapsed attempt of c while a rival takes it over. A store may
// tell the rival that it is in progress while the completion is being written.
func (c *caller) raceTakeover() {
	c.Helper()
	rival := c.rival()
	ended := make(chan error)
	begun := make(chan struct{})
	go func() {
		close(begun)
		ended <- c.tryComplete("of the late one")
	}()
	<-begun
	got, claimErr := rival.untilDefinite(store.InProgress)
	err := <-ended
	switch {
	case err == nil && claimErr == nil && got.Outcome == store.Completed:
	case errors.Is(err, store.ErrLeaseLost) && got.Outcome == store.Claimed:
		err = rival.tryComplete("of the rival")
		if again, claimErr := c.untilDefinite(); err != nil || claimErr != nil || string(again.Payload) != "of the rival" {
			c.Errorf("after the takeover: complete %v, claim %v with %q, %v", err, again.Outcome, again.Payload, claimErr)
		}
	default:
		c.Errorf("the completion ended with %v, and the takeover with %v, %v", err, got.Outcome, claimErr)
	}
}

// untilDefinite claims again, as the engine does, while the store is busy, unavailable or
// does not know, or answers one of the outcomes that are to pass. It gives the store half
// a second, because a commit waits for a disk.
func (c *caller) untilDefinite(passing ...store.Outcome) (got store.ClaimResult, err error) {
	for try := range 50 {
		if try > 0 {
			conformance.Sleep(c, 10*time.Millisecond)
		}
		got, err = c.tryClaim()
		passes := err == nil && slices.Contains(passing, got.Outcome)
		if !passes && !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
			break
		}
	}
	return got, err
}
