package repriselocal_test

import (
	"context"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	repriselocal "github.com/reprise-go/reprise/local"
)

// The cache finds an entry by what a store finds a record by: whoever knows the key, the
// request and the endpoint of another principal gets neither its answer nor a mismatch,
// and what it runs is its own.
func TestAnEntryBelongsToItsScope(t *testing.T) {
	t.Parallel()
	server := newServer()
	engine, err := reprise.New(open(t, server, repriselocal.Config{}), reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	for _, scope := range []string{"one", "two", "three"} {
		op := reprise.Operation{Scope: scope, Endpoint: "orders", Key: "the-same", Fingerprint: reprise.FingerprintOf([]byte("the same"))}
		first, err := engine.Begin(t.Context(), op)
		if err != nil || first.Outcome != reprise.Claimed {
			t.Fatalf("%s: %v, %v, want Claimed", scope, first.Outcome, err)
		}
		if _, err := first.Attempt.Complete(reprise.Completion{Payload: []byte("of " + scope)}); err != nil {
			t.Fatal(err)
		}
		server.wantClaims(t, 1)
	}
	for _, scope := range []string{"one", "two", "three"} {
		op := reprise.Operation{Scope: scope, Endpoint: "orders", Key: "the-same", Fingerprint: reprise.FingerprintOf([]byte("the same"))}
		for range 4 { // the last two from the cache
			again, err := engine.Begin(t.Context(), op)
			if err != nil || again.Outcome != reprise.Completed || string(again.Payload) != "of "+scope {
				t.Errorf("%s: %v %q, %v", scope, again.Outcome, again.Payload, err)
			}
		}
		server.wantClaims(t, 2)
	}
}
