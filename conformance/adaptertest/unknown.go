package adaptertest

import (
	"context"
	"log/slog"
	"slices"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// bankTimedOut is the reason that the handlers of these cases give.
const bankTimedOut = "the bank timed out"

var unknownCases = []testCase{
	{
		conformance.Case{ID: "R52a", Rule: "The client of a handler that says that its outcome is unknown gets the handler's own response; every retry gets 409 outcome-unknown, whatever the preset of either, and another request 422.", Source: "profile"},
		func(e *env) {
			for _, guard := range []protocol.Config{{}, atMostOnce} {
				srv, other := e.serve(Options{Guard: guard}), e.serve(Options{Guard: atMostOnce})
				for _, status := range []int{504, 202, 429} {
					c := e.post(Program{Status: status, Body: "ask us", Headers: []Pair{{"X-Reference", "r1"}}, Unknown: bankTimedOut}).freshKey()
					if first := srv.run(c); first.status != status || first.body != "ask us" || first.value("X-Reference") != "r1" {
						srv.Errorf("the first answer is %v", first)
					}
					for range 2 {
						srv.refuses(c, protocol.CodeOutcomeUnknown)
						other.refuses(c, protocol.CodeOutcomeUnknown)
					}
					srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
				}
				srv.ran(3)
				other.ran(0)
			}
		},
	},
	{
		conformance.Case{ID: "R52b", Rule: "An operator ends an unknown outcome, which shows the handler's reason: with a response, which every retry gets, or by forgetting it, so that the next request runs.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			answered, forgotten := e.post(Program{Status: 504, Unknown: bankTimedOut}).freshKey(), e.post(Program{Status: 504, Unknown: bankTimedOut}).freshKey()
			srv.run(answered)
			srv.run(forgotten)
			id, fence := srv.unknownRecord(answered)
			err := operate.Resolve(srv.Context(), srv.inspector(), operate.Resolution{
				ID: id, State: store.StateUnknown, Fence: fence, Answer: protocol.Response{Status: 201, Body: []byte("paid")}, Retention: long,
				Reason: "the bank says that it paid", Operator: "suite",
			}, slog.DiscardHandler)
			if err != nil {
				srv.Fatal(err)
			}
			if a := srv.send(answered); a.status != 201 || a.body != "paid" || a.value(protocol.FieldReplayed) != "true" {
				srv.Errorf("a retry of the resolved request is answered %v", a)
			}
			srv.ran(2)
			id, fence = srv.unknownRecord(forgotten)
			if err := srv.inspector().Resolve(srv.Context(), id, store.Resolution{Fence: fence, Forget: true}); err != nil {
				srv.Fatal(err)
			}
			srv.run(forgotten)
			srv.ran(3)
		},
	},
	{
		conformance.Case{ID: "R52c", Rule: "A handler that said that its outcome is unknown and then panics, drops the connection or answers at length is not run again.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for i, p := range slices.Concat(cutShort, []Program{{Status: 504, BodySize: 2 << 20}, {Behaviour: Panics}}) {
				p.Unknown = bankTimedOut
				c := e.post(p).freshKey()
				_, _ = srv.try(c) // the connection may end
				srv.wantProblem(srv.sendUntilDone(c), c, protocol.CodeOutcomeUnknown)
				srv.ran(i + 1)
			}
		},
	},
}

// unknownRecord returns the ID and the fence of the record of a call, which has a bare
// key and an unknown outcome.
func (srv *server) unknownRecord(c call) (store.ID, uint64) {
	srv.Helper()
	id := store.DeriveID(c.tenant, "", c.keys[0])
	r, err := srv.inspector().Inspect(context.WithoutCancel(srv.Context()), id)
	if err != nil || r.State != store.StateUnknown || r.Reason != bankTimedOut {
		srv.Fatalf("the record is %+v, %v; want an unknown outcome", r, err)
	}
	return id, r.Fence
}

// inspector returns the store as operators see it.
func (srv *server) inspector() store.Inspector {
	srv.Helper()
	inspector, ok := store.As[store.Inspector](srv.store)
	if !ok {
		srv.Fatal("the store is no Inspector, so that no operator can end an unknown outcome")
	}
	return inspector
}
