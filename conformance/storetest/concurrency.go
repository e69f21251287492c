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

var concurrencyCases = []testCase{
	{
		conformance.Case{
			ID:     "race-first",
			Rule:   "Of many owners that claim a new ID at once, in two processes, exactly one is granted.",
			Source: "G1 exclusion",
		},
		func(e *env) {
			for range rounds {
				current := e.caller()
				winner := current.race(store.InProgress)
				if winner.granted.Attempt != 1 {
					e.Fatalf("the winner is attempt %d, want 1", winner.granted.Attempt)
				}
				winner.complete("of the winner")
				current.replay("of the winner")
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-takeover",
			Rule:   "Of many owners that take over a lapsed attempt at once, exactly one is granted.",
			Source: "G1 exclusion",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			for _, current := range e.lapsedAll(rounds) {
				winner := current.race(store.InProgress)
				if winner.granted.Attempt != 2 {
					e.Fatalf("the winner is attempt %d, want 2", winner.granted.Attempt)
				}
				current.completeLost("of the stale owner")
				winner.complete("of the winner")
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-after-release",
			Rule:   "Of many owners that claim during a release, at most one is granted, and the others then see it in progress.",
			Source: "G1 exclusion",
		},
		func(e *env) {
			for range rounds {
				current := e.caller()
				current.claimNew()
				var release sync.WaitGroup
				release.Go(current.release)
				granted := current.claimTogether(store.InProgress)
				release.Wait()
				if len(granted) > 1 {
					e.Fatalf("%d claims were granted", len(granted))
				}
				for _, winner := range granted {
					winner.release()
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-repeat",
			Rule:   "An owner that repeats its claim before the first reply arrives is granted one attempt, and no other owner is granted any.",
			Source: "Store, Repetition",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			for range rounds {
				first := e.caller()
				var mu sync.Mutex
				fences := map[uint64]bool{}
				var wg sync.WaitGroup
				for i := range racers {
					wg.Go(func() {
						c := first
						if i%2 == 1 {
							c.store = e.two
						}
						got, err := c.untilDefinite()
						if err != nil || got.Outcome != store.Claimed {
							e.Errorf("claim answered %v, %v to its owner", got.Outcome, err)
						}
						mu.Lock()
						defer mu.Unlock()
						fences[got.Fence] = true
					})
				}
				wg.Wait()
				if len(fences) != 1 {
					e.Fatalf("one owner was given the fences %v", fences)
				}
				first.rival().claim(store.InProgress)
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-late-completion",
			Rule:   "When a late completion races a takeover, one of them wins and the other learns that it lost.",
			Source: "G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			for some := range slices.Chunk(e.lapsedAll(rounds*racers), racers) {
				var meetings sync.WaitGroup
				for _, c := range some {
					meetings.Go(c.raceTakeover)
				}
				meetings.Wait()
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-zombies",
			Rule:   "While every former owner tries at once, over takeovers and releases, only the current owner succeeds, and fences only grow.",
			Source: "G1 exclusion, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			origin := e.caller()
			var former []caller
			fence := uint64(0)
			for round := range rounds {
				current := origin.rival()
				current.lease = e.short()
				got := current.claim(store.Claimed)
				if got.Fence < fence || got.Attempt > 1 && got.Fence == fence {
					e.Fatalf("attempt %d has fence %d after %d", got.Attempt, got.Fence, fence)
				}
				fence = got.Fence
				current.lease = long
				current.renew(store.Renewed)
				e.wantAllRejected(former)
				origin.rival().claim(store.InProgress)

				former = append(former, current)
				if round%3 == 0 {
					current.release()
					continue
				}
				current.lease = e.short()
				current.renew(store.Renewed)
				e.advance(current.lease)
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-release",
			Rule:   "Claims that race the release of a lapsed attempt, and each other's releases, take nothing from a record that is gone: after a release the attempt is 1, the fence has grown, and the lease is whole.",
			Source: "Store.Claim, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			for _, lapsed := range e.lapsedAll(rounds) {
				lapsed.raceRelease()
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-purge",
			Rule:   "A purge that races the new claim of an expired ID does not delete the new attempt.",
			Source: "Purger",
			Needs:  []conformance.Need{conformance.Leases, conformance.Purger},
		},
		func(e *env) {
			for range rounds {
				dead := make([]caller, racers)
				for i := range dead {
					dead[i] = e.caller()
					brief := dead[i]
					brief.lease, brief.retention = e.short(), e.short()
					brief.claimNew()
				}
				e.advance(3 * e.short()) // a store may purge a little late
				var claims sync.WaitGroup
				for i := range dead {
					claims.Go(func() {
						if got, err := dead[i].untilDefinite(); err != nil || got.Outcome != store.Claimed {
							e.Errorf("claim answered %v, %v", got.Outcome, err)
						}
					})
				}
				e.purge()
				claims.Wait()
				for _, c := range dead {
					c.rival().claim(store.InProgress)
				}
			}
		},
	},
}

// winner is the caller whose claim was granted in a race.
type winner struct {
	caller

	granted store.ClaimResult
}

// race lets rivals of p claim at once and demands that one is granted and that the
// others are answered as wanted.
func (c caller) race(others store.Outcome) winner {
	c.env.Helper()
	winners := c.claimTogether(others)
	if len(winners) != 1 {
		c.env.Fatalf("%d of %d claims were granted, want 1", len(winners), racers)
	}
	return winners[0]
}

// claimTogether lets rivals of p claim at once, half of them in each process, and
// returns those that were granted. The others have to be answered as wanted.
func (c caller) claimTogether(others store.Outcome) []winner {
	c.env.Helper()
	var mu sync.Mutex
	var winners []winner
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range racers {
		rival := c.rival()
		if i%2 == 1 {
			rival.store = c.env.one
		}
		wg.Go(func() {
			<-start
			got, err := rival.untilDefinite()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				c.env.Errorf("claim: %v", err)
			case got.Outcome == store.Claimed:
				winners = append(winners, winner{rival, got})
			case got.Outcome != others:
				c.env.Errorf("claim answered %v, want %v or %v", got.Outcome, store.Claimed, others)
			}
		})
	}
	close(start)
	wg.Wait()
	return winners
}

// raceRelease releases the lapsed attempt of c while rivals claim and release. A rival
// holds a granted claim until it releases it, so the grants have an order.
func (c caller) raceRelease() {
	c.env.Helper()
	var (
		mu     sync.Mutex
		grants int
		fence  uint64
		wg     sync.WaitGroup
	)
	start := make(chan struct{})
	wg.Go(func() {
		<-start
		c.release()
	})
	for i := range racers {
		wg.Go(func() {
			<-start
			for range rounds {
				rival := c.rival()
				if i%2 == 1 {
					rival.store = c.env.one
				}
				got, err := rival.untilDefinite()
				if err != nil {
					c.env.Errorf("claim: %v", err)
				}
				if err != nil || got.Outcome != store.Claimed {
					continue
				}
				mu.Lock()
				if grants++; grants > 1 && got.Attempt != 1 {
					c.env.Errorf("attempt %d after a release, want 1", got.Attempt)
				}
				if got.Fence <= fence {
					c.env.Errorf("fence %d was granted after %d", got.Fence, fence)
				}
				if got.Remaining < long/2 {
					c.env.Errorf("the lease of %v has %v left", rival.lease, got.Remaining)
				}
				fence = got.Fence
				mu.Unlock()
				rival.release()
			}
		})
	}
	close(start)
	wg.Wait()
}

// raceTakeover completes the lapsed attempt of p while a rival takes it over. A store may
// tell the rival that it is in progress while the completion is being written.
func (c caller) raceTakeover() {
	c.env.Helper()
	rival := c.rival()
	completed := make(chan error)
	begun := make(chan struct{})
	go func() {
		close(begun)
		completed <- c.tryComplete("of the late one")
	}()
	<-begun
	got, claimErr := rival.untilDefinite(store.InProgress)
	err := <-completed
	switch {
	case err == nil && claimErr == nil && got.Outcome == store.Completed:
	case errors.Is(err, store.ErrLeaseLost) && got.Outcome == store.Claimed:
		err = rival.tryComplete("of the rival")
		if again, claimErr := c.untilDefinite(); err != nil || claimErr != nil || string(again.Payload) != "of the rival" {
			c.env.Errorf("after the takeover: complete %v, claim %v with %q, %v", err, again.Outcome, again.Payload, claimErr)
		}
	default:
		c.env.Errorf("the completion ended with %v, and the takeover with %v, %v", err, got.Outcome, claimErr)
	}
}

// untilDefinite claims again, as the engine does, while the store is busy, unavailable or
// does not know, or answers one of the outcomes that are to pass. It gives the store half
// a second, because a commit waits for a disk.
func (c caller) untilDefinite(passing ...store.Outcome) (got store.ClaimResult, err error) {
	for try := range 50 {
		if try > 0 {
			conformance.Sleep(c.env, 10*time.Millisecond)
		}
		got, err = c.tryClaim()
		passes := err == nil && slices.Contains(passing, got.Outcome)
		if !passes && !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
			break
		}
	}
	return got, err
}

// wantAllRejected lets former owners of an ID try everything at once. None of it may
// succeed.
func (e *env) wantAllRejected(former []caller) {
	e.Helper()
	var wg sync.WaitGroup
	for _, c := range former {
		wg.Go(func() {
			if err := c.tryComplete("of a former owner"); !errors.Is(err, store.ErrLeaseLost) {
				e.Errorf("complete by a former owner: error %v, want ErrLeaseLost", err)
			}
		})
		wg.Go(func() {
			ctx, cancel := e.call()
			defer cancel()
			if err := c.store.Release(ctx, c.id, c.owner); err != nil {
				e.Errorf("release by a former owner: %v, want success", err)
			}
		})
		wg.Go(func() {
			ctx, cancel := e.call()
			defer cancel()
			got, err := c.store.Renew(ctx, []store.RenewRequest{{ID: c.id, Owner: c.owner, Lease: long}})
			if err != nil || len(got) != 1 || got[0] != store.RenewLost {
				e.Errorf("renew by a former owner answered %v, %v; want %v", got, err, store.RenewLost)
			}
		})
	}
	wg.Wait()
}
