package adaptertest

import (
	"errors"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

var timeCases = []testCase{
	{
		conformance.Case{ID: "R37a", Rule: "When the retention has ended the key is new, for another request too.", Source: "draft 2.3"},
		func(s *stage) {
			grain := s.fixture.Grain
			at := s.serve(Options{Guard: protocol.Config{Retention: grain}})
			c := s.post(created)
			at.run(c)
			at.advance(grain + grain/2)
			other := c.withBody("another").does(Program{Status: 202, Body: "second"})
			if a := at.run(other); a.exec() != 2 || a.status != 202 {
				at.Errorf("answered %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R37b", Rule: "The retention counts from the completion, not from the first request.", Source: "draft 2.3"},
		func(s *stage) {
			for retention := 4 * s.fixture.Grain; ; retention *= 2 {
				at := s.serve(Options{Guard: protocol.Config{Retention: retention}})
				c := s.post(held).freshKey()
				first := at.begin(c)
				at.holds()
				at.advance(retention * 3 / 4)
				at.open()
				opened := time.Now()
				first.answer()
				at.advance(retention / 2) // past the retention of the claim, and half of the completion's
				again := at.send(c)
				if again.exec() == 1 || time.Since(opened) < retention {
					at.wantReplay(again, first.answer())
					return
				}
				if retention > s.fixture.Patience {
					at.Fatalf("inconclusive: two requests took longer than %v", retention/2)
				}
			}
		},
	},
	{
		conformance.Case{ID: "R38a", Rule: "When an owner died its request is in progress until the lease lapses; then it is run again, as attempt 2.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(echoes)
			lease, start := 3*s.fixture.Grain, time.Now()
			dead := at.claims(c, reprise.ClaimRequest{Lease: lease})
			for range 2 {
				if a := at.send(c); a.status != 409 && time.Since(start) < lease {
					at.Fatalf("%v after a claim of %v the request is answered %v", time.Since(start), lease, a)
				}
				at.advance(2 * s.fixture.Grain)
			}
			first := at.run(c)
			if e := at.echo(first); e.Attempt != 2 {
				at.Errorf("the handler is told that it is attempt %d", e.Attempt)
			}
			at.replays(c, first)
			err := dead.at.store.Complete(at.Context(), reprise.CompleteRequest{ID: dead.claim.ID, Owner: dead.claim.Owner, Retention: long})
			if !errors.Is(err, reprise.ErrLeaseLost) {
				at.Errorf("the former owner completes: %v", err)
			}
			at.replays(c, first)
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R38b", Rule: "When an owner died, a policy that runs at most once does not run again.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Guard: atMostOnce})
			c := s.post(created)
			at.claims(c, reprise.ClaimRequest{Lease: s.fixture.Grain})
			at.advance(s.fixture.Grain)
			for range 2 {
				at.refuses(c, protocol.CodeOutcomeUnknown)
			}
			at.refuses(c.withBody("another"), protocol.CodeKeyReused)
			at.ran(0)
		},
	},
	{
		conformance.Case{ID: "R38c", Rule: "After the last attempt that the policy allows the outcome is unknown.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxAttempts: 1}})
			c := s.post(created)
			at.claims(c, reprise.ClaimRequest{Lease: s.fixture.Grain})
			at.advance(s.fixture.Grain)
			at.refuses(c, protocol.CodeOutcomeUnknown)
			at.ran(0)
		},
	},
	{
		conformance.Case{ID: "R38d", Rule: "A key that was never completed is free when its retention has ended.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Guard: atMostOnce})
			c := s.post(echoes)
			at.claims(c, reprise.ClaimRequest{Lease: s.fixture.Grain, Retention: 2 * s.fixture.Grain})
			at.advance(2 * s.fixture.Grain)
			other := c.withBody("another")
			first := at.run(other)
			if e := at.echo(first); e.Attempt != 1 {
				at.Errorf("the handler is told that it is attempt %d", e.Attempt)
			}
			at.replays(other, first)
		},
	},
	{
		conformance.Case{ID: "R39", Rule: "A handler that runs longer than its lease gets no twin, in this process or in another.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			options := Options{Engine: reprise.Config{Lease: 1500 * time.Millisecond}} // a second is the shortest
			one, two := s.serve(options), s.serve(options)
			c := s.post(held)
			first := one.begin(c)
			one.holds()
			for range 6 {
				one.advance(300 * time.Millisecond)
				for _, at := range []*site{one, two} {
					at.wantProblem(at.send(c), c, protocol.CodeInProgress)
				}
			}
			one.open()
			two.replays(c, first.answer())
			one.ran(1)
			two.ran(0)
			if one.faults.Count(faultstore.Renew) == 0 {
				one.Error("the lease was never renewed")
			}
		},
	},
}
