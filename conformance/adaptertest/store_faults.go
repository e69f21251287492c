package adaptertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// hasty is an engine that gives a store little time, so that a case need not wait long for it to give up.
var hasty = reprise.Config{ClaimTimeout: 400 * time.Millisecond, CompleteTimeout: 400 * time.Millisecond}

// failure is an error of a store of a class.
func failure(class error) error { return fmt.Errorf("%w: the case says so", class) }

// promptly is how long an answer may take whose store hangs: the engine's time for it, and plenty for everything else.
const promptly = 5 * time.Second

var storeFaultCases = []testCase{
	{
		conformance.Case{ID: "R40a", Rule: "When the store cannot be reached nothing runs, and the client is told to come back.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty})
			c := s.post(created)
			for _, class := range []error{reprise.ErrUnavailable, reprise.ErrUnknown, reprise.ErrFull, reprise.ErrMisconfigured} {
				at.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(class)))
				at.refuses(c, protocol.CodeStoreUnavailable)
			}
			at.ran(0)
			at.faults.Clear()
			at.replays(c, at.run(c))
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R40b", Rule: "A store that hangs is given up in time, and nothing runs.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty})
			at.faults.Always(faultstore.Claim, faultstore.Hang())
			start := time.Now()
			at.refuses(s.post(created), protocol.CodeStoreUnavailable)
			if took := time.Since(start); took > promptly {
				at.Errorf("the answer took %v", took)
			}
			at.ran(0)
		},
	},
	{
		conformance.Case{ID: "R40c", Rule: "A claim whose reply is lost is claimed again: the handler runs once.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			at.faults.Next(faultstore.Claim, faultstore.LoseReply())
			c := s.post(created)
			at.replays(c, at.run(c))
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R40d", Rule: "By option the handler runs unprotected when the store cannot be reached, and the answer says so.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty, Guard: protocol.Config{FailOpen: true}})
			c := s.post(created)
			stream := s.post(streamed).freshKey()
			runs := 0
			for _, class := range []error{reprise.ErrUnavailable, reprise.ErrUnknown} {
				at.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(class)))
				for _, c := range []call{c, stream} {
					a := at.send(c)
					runs++
					if a.exec() != runs || a.value(statusField) != "unprotected" || a.value(replayedField) != "" {
						at.Errorf("answered %v", a)
					}
				}
			}
			at.faults.Clear()
			at.protects(c)
		},
	},
	{
		conformance.Case{ID: "R40f", Rule: "Of simultaneous duplicates that would run unprotected one does, and the others are told that it runs.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty, Guard: protocol.Config{FailOpen: true}})
			at.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(reprise.ErrUnavailable)))
			c := s.post(held)
			ran, refused := together(c, at)
			if len(ran) != 1 || len(refused) != crowd-1 || ran[0].value(statusField) != "unprotected" {
				at.Fatalf("%d ran and %d were refused, want 1 and %d", len(ran), len(refused), crowd-1)
			}
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R40g", Rule: "A store that hangs delays the first request that runs unprotected, and not each of them.", Source: "profile"},
		func(s *stage) {
			const requests = 10
			at := s.serve(Options{Engine: hasty, Guard: protocol.Config{FailOpen: true}})
			at.faults.Always(faultstore.Claim, faultstore.Hang())
			start := time.Now()
			for range requests {
				if a := at.send(s.post(created).freshKey()); a.value(statusField) != "unprotected" {
					at.Errorf("answered %v", a)
				}
			}
			if took := time.Since(start); took > requests*hasty.ClaimTimeout/2 {
				at.Errorf("%d requests took %v, and one waits for the store for %v", requests, took, hasty.ClaimTimeout)
			}
			at.faults.Clear()
			at.protects(s.post(created))
		},
	},
	{
		conformance.Case{ID: "R40e", Rule: "The handler never runs unprotected for another reason.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty, Guard: protocol.Config{FailOpen: true}})
			for class, code := range map[error]protocol.Code{
				reprise.ErrCorrupt: protocol.CodeRecordCorrupt, reprise.ErrFull: protocol.CodeStoreUnavailable,
				reprise.ErrNotReplicated: protocol.CodeStoreUnavailable, reprise.ErrMisconfigured: protocol.CodeStoreUnavailable,
			} {
				at.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(class)))
				at.refuses(s.post(created), code)
			}
			at.ran(0)
		},
	},
	{
		conformance.Case{ID: "R41a", Rule: "When the store fails after the run, the client gets the true answer, marked as unrecorded.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty})
			at.faults.Always(faultstore.Complete, faultstore.FailBefore(failure(reprise.ErrUnavailable)))
			c := s.post(created)
			a := at.send(c)
			if a.status != 201 || a.body != created.Body || a.value("Location") != "/orders/1" || a.value(statusField) != "unrecorded" {
				at.Errorf("answered %v", a)
			}
			at.refuses(c, protocol.CodeInProgress) // as long as nobody knows, nobody runs
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41b", Rule: "An answer that was not recorded in time is recorded as soon as the store takes it.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty})
			at.faults.Always(faultstore.Complete, faultstore.FailBefore(failure(reprise.ErrUnavailable)))
			c := s.post(created)
			first := at.send(c)
			at.faults.Clear()
			again := at.returned(c)
			if again.status != first.status || again.body != first.body || again.value(statusField) != "" {
				at.Errorf("replayed %v, of %v", again, first)
			}
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41c", Rule: "A store that hangs does not hold the answer back.", Source: "trap: a hanging store holding the response back", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty})
			at.faults.Always(faultstore.Complete, faultstore.Hang())
			start := time.Now()
			if a := at.send(s.post(created)); a.status != 201 || a.value(statusField) != "unrecorded" {
				at.Errorf("answered %v", a)
			}
			if took := time.Since(start); took > promptly {
				at.Errorf("the answer took %v", took)
			}
		},
	},
	{
		conformance.Case{ID: "R41d", Rule: "A completion whose reply is lost is repeated: the answer is recorded, and not marked.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{})
			at.faults.Next(faultstore.Complete, faultstore.LoseReply())
			c := s.post(created)
			at.replays(c, at.run(c))
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41e", Rule: "A release that the store does not take at once is repeated: no failure is followed by refusals for long.", Source: "trap: a 5xx followed by 409s", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty})
			at.faults.Always(faultstore.Release, faultstore.FailBefore(failure(reprise.ErrUnavailable)))
			c := s.post(Program{Status: 503, Body: "failed"})
			if a := at.run(c); a.status != 503 || a.body != "failed" {
				at.Errorf("answered %v", a)
			}
			at.faults.Clear()
			last := c.does(created)
			at.eventually("the release", func() bool { return at.send(last).status == 201 })
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "R41f", Rule: "When another process has taken over and completed, its answer is the one that leaves.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			one, two := s.serve(Options{}), s.serve(Options{})
			c := s.post(held)
			first := one.begin(c)
			one.holds()
			one.forget()
			kept := two.run(c.does(created))
			one.open()
			one.wantReplay(first.answer(), kept)
			one.replays(c, kept)
		},
	},
	{
		conformance.Case{ID: "R41g", Rule: "When another process has taken over and runs, the one that lost has no answer to give.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			for policy, code := range map[reprise.Preset]protocol.Code{
				reprise.Recoverable: protocol.CodeInProgress, reprise.AtMostOnce: protocol.CodeOutcomeUnknown,
			} {
				at := s.serve(Options{Guard: protocol.Config{Preset: policy}})
				c := s.post(held).freshKey()
				first := at.begin(c)
				at.holds()
				at.forget()
				at.claims(c, reprise.ClaimRequest{})
				at.open()
				at.wantProblem(first.answer(), c, code)
			}
		},
	},
	{
		conformance.Case{ID: "R41h", Rule: "When the record itself is gone and nobody else has the key, the answer is recorded anew.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(held)
			first := at.begin(c)
			at.holds()
			at.forget()
			at.open()
			at.wantRun(first.answer())
			at.replays(c, first.answer())
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41i", Rule: "Where effects commit with the answer and it is unknown whether they did, the client is told to come back, and finds out.", Source: "trap: commit failing after success", Needs: []conformance.Need{conformance.AtomicClaims}},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty})
			at.faults.Next(faultstore.Complete, faultstore.LoseReply())
			c := s.post(created)
			at.wantProblem(at.send(c), c, protocol.CodeStoreUnavailable)
			again := at.send(c)
			if again.status != 201 || again.body != created.Body || again.value(replayedField) != "true" {
				at.Errorf("the client that comes back is answered %v", again)
			}
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41j", Rule: "Where effects commit with the answer and were rolled back, the client is told, and its retry runs.", Source: "trap: commit failing after success", Needs: []conformance.Need{conformance.AtomicClaims}},
		func(s *stage) {
			at := s.serve(Options{Engine: hasty})
			at.faults.Next(faultstore.Complete, faultstore.FailBefore(failure(reprise.ErrNotApplied)))
			c := s.post(created)
			at.wantProblem(at.send(c), c, protocol.CodeNotApplied)
			at.forget() // which a store that says so has done by itself
			at.replays(c, at.run(c))
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "R42a", Rule: "A record that the store cannot read runs nothing.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			at.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(reprise.ErrCorrupt)))
			c := s.post(created)
			for range 2 {
				at.refuses(c, protocol.CodeRecordCorrupt)
			}
			at.ran(0)
		},
	},
	{
		conformance.Case{ID: "R42b", Rule: "An answer that cannot be decoded, of a later version or damaged, is not served in part, and runs nothing.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			for what, payload := range map[string]string{
				"nothing": "", "one byte": "\x01", "a later version": "\x02" + strings.Repeat("\x00", 40), "text": "HTTP/1.1 200 OK\r\n\r\n",
				"zeros": strings.Repeat("\x00", 64), "a wrong checksum": "\x01\x00\x00\xc8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xde\xad\xbe\xef",
				"large": strings.Repeat("\xff", 100_000),
			} {
				c := s.post(created).freshKey()
				at.claims(c, reprise.ClaimRequest{}).completes(payload)
				a := at.send(c)
				if a.status != 500 {
					at.Errorf("a record with %s is answered %v", what, a)
				}
				at.wantProblem(a, c, protocol.CodeRecordCorrupt)
			}
			at.ran(0)
			at.run(s.post(created))
		},
	},
}

// protects waits until a store that is back is asked again, and demands that the answer is replayed.
func (at *site) protects(c call) {
	at.Helper()
	var a answer
	at.eventually("an answer that is protected", func() bool {
		a = at.send(c.freshKey())
		return a.value(statusField) != "unprotected"
	})
	c = c.freshKey()
	a = at.send(c)
	at.wantRun(a)
	at.replays(c, a)
}

// forget makes the store forget the claims that the server made.
func (at *site) forget() {
	at.Helper()
	for _, call := range at.faults.Calls() {
		if call.Op != faultstore.Claim {
			continue
		}
		if err := at.store.Release(at.Context(), call.ID, call.Owner); err != nil {
			at.Fatalf("release at the store: %v", err)
		}
	}
}
