package repriselocal_test

import (
	"context"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	repriselocal "github.com/reprise-go/reprise/local"
)

// A policy that fails open runs operations without a claim while the store is away. What
// this process has the answer of is not one of them, and answering from memory says
// nothing about the store.
func TestWhatIsInTheCacheDoesNotRunUnprotected(t *testing.T) {
	t.Parallel()
	inner := newServer()
	engine, err := reprise.New(open(t, inner, repriselocal.Config{}), reprise.Config{Observer: reprise.ObserverFunc(func(context.Context, reprise.Event) {})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = engine.Close(ctx)
	})
	begin := func(key string, want reprise.Outcome) reprise.Result {
		t.Helper()
		got, err := engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: key, FailOpen: true})
		if err != nil || got.Outcome != want {
			t.Fatalf("begin of %q answered %v, %v; want %v", key, got.Outcome, err, want)
		}
		return got
	}
	hot := begin("hot", reprise.Claimed).Attempt
	if end, err := hot.Complete(reprise.Completion{Payload: []byte("answer")}); err != nil || end.Status != reprise.Recorded {
		t.Fatal(end, err)
	}
	begin("hot", reprise.Completed)
	begin("hot", reprise.Completed) // which enters the cache
	inner.claims.Store(0)
	inner.onClaim = func(context.Context, reprise.ClaimRequest) (reprise.ClaimResult, error) {
		return reprise.ClaimResult{}, reprise.ErrUnavailable
	}
	start := time.Now()
	for range 3 {
		away := begin("away", reprise.Claimed).Attempt // the outage begins, and lasts
		if !away.Unprotected() {
			t.Fatal("protected by a store that is away")
		}
		_ = away.Release()
		if got := begin("hot", reprise.Completed); string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}
	}
	if claims := inner.claims.Load(); claims > 1+int64(time.Since(start)/(500*time.Millisecond)) {
		t.Errorf("the store that is away was asked %d times in %v: answers of the cache ended the outage", claims, time.Since(start))
	}
}
