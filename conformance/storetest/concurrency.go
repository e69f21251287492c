package storetest

import (
	"errors"
	"slices"
	"sync"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
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
		func(r *rig) {
			for range rounds {
				current := r.party()
				winner := current.race(reprise.InProgress)
				if winner.granted.Attempt != 1 {
					r.Fatalf("the winner is attempt %d, want 1", winner.granted.Attempt)
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
		func(r *rig) {
			for _, current := range r.lapsedAll(rounds) {
				winner := current.race(reprise.InProgress)
				if winner.granted.Attempt != 2 {
					r.Fatalf("the winner is attempt %d, want 2", winner.granted.Attempt)
				}
				current.completeLost("of the zombie")
				winner.complete("of the winner")
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-after-release",
			Rule:   "Of many owners that claim at the moment of a release, at most one is granted, and then the others wait for it.",
			Source: "G1 exclusion",
		},
		func(r *rig) {
			for range rounds {
				current := r.party()
				current.anew()
				var release sync.WaitGroup
				release.Go(current.release)
				grants := len(current.claimTogether(reprise.InProgress))
				release.Wait()
				if grants > 1 {
					r.Fatalf("%d claims were granted", grants)
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-repeat",
			Rule:   "An owner whose claim is repeated while it is still on its way is granted one attempt, and nobody else is.",
			Source: "Store, Repetition",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			for range rounds {
				first := r.party()
				var mu sync.Mutex
				fences := map[uint64]bool{}
				var wg sync.WaitGroup
				for i := range racers {
					wg.Go(func() {
						p := first
						if i%2 == 1 {
							p.store = r.two
						}
						got, err := p.tryClaim()
						if err != nil || got.Outcome != reprise.Claimed {
							r.Errorf("claim answered %v, %v to its owner", got.Outcome, err)
						}
						mu.Lock()
						defer mu.Unlock()
						fences[got.Fence] = true
					})
				}
				wg.Wait()
				if len(fences) != 1 {
					r.Fatalf("one owner was given the fences %v", fences)
				}
				first.rival().claim(reprise.InProgress)
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-late-completion",
			Rule:   "When a late completion and a takeover meet, one of them wins and the other is told.",
			Source: "G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			for some := range slices.Chunk(r.lapsedAll(rounds*racers), racers) {
				var meetings sync.WaitGroup
				for _, p := range some {
					meetings.Go(p.meetsTakeover)
				}
				meetings.Wait()
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-zombies",
			Rule:   "Over takeovers and releases, with every former owner trying at once, only the current one acts, and fences only grow.",
			Source: "G1 exclusion, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			origin := r.party()
			var former []party
			fence := uint64(0)
			for round := range rounds {
				current := origin.rival()
				current.lease = r.short()
				got := current.claim(reprise.Claimed)
				if got.Fence < fence || got.Attempt > 1 && got.Fence == fence {
					r.Fatalf("attempt %d has fence %d after %d", got.Attempt, got.Fence, fence)
				}
				fence = got.Fence
				current.lease = long
				current.renew(reprise.Renewed)
				r.together(former)
				origin.rival().claim(reprise.InProgress)

				former = append(former, current)
				if round%3 == 0 {
					current.release()
					continue
				}
				current.lease = r.short()
				current.renew(reprise.Renewed)
				r.advance(current.lease)
			}
		},
	},
	{
		conformance.Case{
			ID:     "race-purge",
			Rule:   "A purge at the moment at which a dead key is claimed anew does not delete the new attempt.",
			Source: "Purger",
			Needs:  []conformance.Need{conformance.Leases, conformance.Purger},
		},
		func(r *rig) {
			for range rounds {
				dead := make([]party, racers)
				for i := range dead {
					dead[i] = r.party()
					brief := dead[i]
					brief.lease, brief.retention = r.short(), r.short()
					brief.anew()
				}
				r.advance(3 * r.short()) // a store may purge a little late
				var claims sync.WaitGroup
				for i := range dead {
					claims.Go(func() {
						if got, err := dead[i].tryClaim(); err != nil || got.Outcome != reprise.Claimed {
							r.Errorf("claim answered %v, %v", got.Outcome, err)
						}
					})
				}
				r.purge()
				claims.Wait()
				for _, p := range dead {
					p.rival().claim(reprise.InProgress)
				}
			}
		},
	},
}

// winner is the party whose claim was granted in a race.
type winner struct {
	party

	granted reprise.ClaimResult
}

// race lets rivals of p claim at once and demands that one is granted and that the others are answered as wanted.
func (p party) race(others reprise.Outcome) winner {
	p.rig.Helper()
	winners := p.claimTogether(others)
	if len(winners) != 1 {
		p.rig.Fatalf("%d of %d claims were granted, want 1", len(winners), racers)
	}
	return winners[0]
}

// claimTogether lets rivals of p claim at once, half of them in each process, and returns those that were granted. The
// others have to be answered as wanted.
func (p party) claimTogether(others reprise.Outcome) []winner {
	p.rig.Helper()
	var mu sync.Mutex
	var winners []winner
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range racers {
		rival := p.rival()
		if i%2 == 1 {
			rival.store = p.rig.one
		}
		wg.Go(func() {
			<-start
			got, err := rival.untilDefinite()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				p.rig.Errorf("claim: %v", err)
			case got.Outcome == reprise.Claimed:
				winners = append(winners, winner{rival, got})
			case got.Outcome != others:
				p.rig.Errorf("claim answered %v, want %v or %v", got.Outcome, reprise.Claimed, others)
			}
		})
	}
	close(start)
	wg.Wait()
	return winners
}

// meetsTakeover completes the lapsed attempt of p while a rival takes it over.
func (p party) meetsTakeover() {
	p.rig.Helper()
	rival := p.rival()
	completed := make(chan error)
	begun := make(chan struct{})
	go func() {
		close(begun)
		completed <- p.tryComplete("of the late one")
	}()
	<-begun
	got, claimErr := rival.tryClaim()
	err := <-completed
	switch {
	case err == nil && claimErr == nil && got.Outcome == reprise.Completed:
	case errors.Is(err, reprise.ErrLeaseLost) && got.Outcome == reprise.Claimed:
		err = rival.tryComplete("of the rival")
		if again, claimErr := p.tryClaim(); err != nil || claimErr != nil || string(again.Payload) != "of the rival" {
			p.rig.Errorf("after the takeover: complete %v, claim %v with %q, %v", err, again.Outcome, again.Payload, claimErr)
		}
	default:
		p.rig.Errorf("the completion ended with %v, and the takeover with %v, %v", err, got.Outcome, claimErr)
	}
}

// untilDefinite claims again, as the engine does, while the store says that it is too busy or does not know.
func (p party) untilDefinite() (got reprise.ClaimResult, err error) {
	for range 50 {
		got, err = p.tryClaim()
		if !errors.Is(err, reprise.ErrUnavailable) && !errors.Is(err, reprise.ErrUnknown) {
			break
		}
	}
	return got, err
}

// together lets former owners of an ID try everything at once. None of it may succeed.
func (r *rig) together(former []party) {
	r.Helper()
	var wg sync.WaitGroup
	for _, p := range former {
		wg.Go(func() {
			if err := p.tryComplete("of a former owner"); !errors.Is(err, reprise.ErrLeaseLost) {
				r.Errorf("complete by a former owner: error %v, want ErrLeaseLost", err)
			}
		})
		wg.Go(func() {
			ctx, cancel := r.call()
			defer cancel()
			if err := p.store.Release(ctx, p.id, p.owner); err != nil {
				r.Errorf("release by a former owner: %v, want success", err)
			}
		})
		wg.Go(func() {
			ctx, cancel := r.call()
			defer cancel()
			got, err := p.store.Renew(ctx, []reprise.RenewRequest{{ID: p.id, Owner: p.owner, Lease: long}})
			if err != nil || len(got) != 1 || got[0] != reprise.RenewLost {
				r.Errorf("renew by a former owner answered %v, %v; want %v", got, err, reprise.RenewLost)
			}
		})
	}
	wg.Wait()
}
