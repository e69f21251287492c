package adaptertest

import (
	"errors"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

var timeCases = []testCase{
	{
		conformance.Case{ID: "R37a", Rule: "When the retention ended, the key is new, even for a different request.", Source: "draft 2.3"},
		func(e *env) {
			grain := e.fixture.Grain
			srv := e.serve(Options{Guard: protocol.Config{Retention: grain}})
			c := e.post(created)
			srv.run(c)
			srv.advance(grain + grain/2)
			other := c.withBody("another").does(Program{Status: 202, Body: "second"})
			if a := srv.run(other); a.exec() != 2 || a.status != 202 {
				srv.Errorf("answered %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R37e", Rule: "With a horizon, a retry after the retention gets 409 result-expired, and a different request still 422; nothing runs.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Retention: e.fixture.Grain, Horizon: long}})
			c := e.post(created)
			srv.run(c)
			srv.advance(e.fixture.Grain)
			for range 2 {
				srv.refuses(c, protocol.CodeResultExpired)
				srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R37g", Rule: "The retention and horizon of the first request decide, also after a deployment with others.", Source: "profile"},
		func(e *env) {
			old, srv := e.serve(Options{Guard: protocol.Config{Retention: long}}), e.serve(Options{Guard: protocol.Config{Retention: e.fixture.Grain, Horizon: long}})
			kept := e.post(created)
			first := old.run(kept)
			brief := kept.freshKey()
			srv.run(brief)
			srv.advance(e.fixture.Grain)
			srv.replays(kept, first)
			old.refuses(brief, protocol.CodeResultExpired)
		},
	},
	{
		conformance.Case{ID: "R38a", Rule: "After an owner died, its request is in progress until the lease lapses; then a retry runs as attempt 2.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(echoes)
			lease, start := 3*e.fixture.Grain, time.Now()
			dead := srv.claims(c, store.ClaimRequest{Lease: lease})
			// A machine that is busy for longer than the lease may run the second request already.
			first, advanced := srv.send(c), time.Duration(0)
			for first.status == 409 && advanced < lease {
				srv.advance(2 * e.fixture.Grain)
				advanced += 2 * e.fixture.Grain
				first = srv.send(c)
			}
			if since := max(advanced, time.Since(start)); first.status != 409 && since < lease {
				srv.Fatalf("%v after a claim of %v the handler is told that it is attempt %d", since, lease, srv.echo(first).Attempt)
			}
			if first.status == 409 {
				first = srv.run(c)
			}
			if e := srv.echo(first); e.Attempt != 2 {
				srv.Errorf("the handler is told that it is attempt %d", e.Attempt)
			}
			srv.replays(c, first)
			err := dead.at.store.Complete(srv.Context(), store.CompleteRequest{ID: dead.claim.ID, Owner: dead.claim.Owner, Policy: store.Policy{Retention: long}})
			if !errors.Is(err, store.ErrLeaseLost) {
				srv.Errorf("the former owner completes: %v", err)
			}
			srv.replays(c, first)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R38b", Rule: "A request that was claimed with AtMostOnce and whose owner died never runs again, whatever preset the retry has.", Source: "profile"},
		func(e *env) {
			for _, guard := range []protocol.Config{atMostOnce, {}} { // a deployment changes the preset
				srv := e.serve(Options{Guard: guard})
				c := e.post(created).freshKey()
				srv.claims(c, store.ClaimRequest{Lease: e.fixture.Grain, Policy: store.Policy{AtMostOnce: true}})
				srv.advance(e.fixture.Grain)
				for range 2 {
					srv.refuses(c, protocol.CodeOutcomeUnknown)
				}
				srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
				srv.ran(0)
			}
		},
	},
	{
		conformance.Case{ID: "R38c", Rule: "After the last attempt that MaxAttempts allows, retries get 409 outcome-unknown.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{MaxAttempts: 1}})
			c := e.post(created)
			srv.claims(c, store.ClaimRequest{Lease: e.fixture.Grain})
			srv.advance(e.fixture.Grain)
			srv.refuses(c, protocol.CodeOutcomeUnknown)
			srv.ran(0)
		},
	},
	{
		conformance.Case{ID: "R39", Rule: "A handler that runs longer than its lease is not run a second time, in this process or another.", Source: "profile"},
		func(e *env) {
			options := Options{Engine: reprise.Config{Lease: 4 * time.Second}} // a busy machine renews it late
			one, two := e.serve(options), e.serve(options)
			c := e.post(held)
			first := one.begin(c)
			one.waitForHandler()
			for range 6 {
				one.advance(700 * time.Millisecond)
				for _, srv := range []*server{one, two} {
					srv.wantProblem(srv.send(c), c, protocol.CodeInProgress)
				}
			}
			one.releaseHandlers()
			two.replays(c, first.answer())
			one.ran(1)
			two.ran(0)
			if one.faults.Count(faultstore.Renew) == 0 {
				one.Error("the lease was never renewed")
			}
		},
	},
}
