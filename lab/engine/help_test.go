package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// The configuration of the engines in these tests; a sixth of the lease bounds renewals.
const (
	engineLease     = 30 * time.Second
	engineRetention = 24 * time.Hour
	engineBudget    = 2 * time.Second
)

// inBubble runs body as a parallel subtest in a bubble, where time passes only when all
// goroutines wait. The bubble fails when a goroutine is left at its end.
func inBubble(t *testing.T, name string, body func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, body)
	})
}

// inTime lets d pass. In a bubble that takes no time, and is exact.
func inTime(d time.Duration) { <-time.After(d) }

// faultyEngine is a process on a store with a script of faults.
type faultyEngine struct {
	*reprise.Engine
	faults *faultstore.Faults
}

// newFaultyEngine makes a process over inner, drained and closed at the end of the test.
func newFaultyEngine(t *testing.T, inner store.Store, cfg reprise.Config) *faultyEngine {
	t.Helper()
	store, faults := faultstore.New(inner)
	engine, err := reprise.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		faults.Clear()
		faults.LetGo()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Hour)
		defer cancel()
		if err := engine.Close(ctx); err != nil && !t.Failed() {
			t.Errorf("at the end of the test: %v", err)
		}
		faults.Close()
	})
	return &faultyEngine{engine, faults}
}

// engineOrder is an operation of the default preset.
func engineOrder(key string) reprise.Operation {
	return reprise.Operation{Scope: "tenant", Key: key, Fingerprint: store.Fingerprint{1}}
}

// begin begins op and fails the test unless the outcome is the wanted one.
func (f *faultyEngine) begin(t *testing.T, op reprise.Operation, want reprise.Outcome) reprise.Result {
	t.Helper()
	res, err := f.Begin(t.Context(), op)
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	if res.Outcome != want {
		t.Fatalf("Begin answered %v, want %v", res.Outcome, want)
	}
	return res
}

// end completes a and fails the test unless it answers as wanted.
func (f *faultyEngine) end(t *testing.T, a *reprise.Attempt, payload string, want reprise.AttemptEnd) reprise.CompleteResult {
	t.Helper()
	end, err := a.Complete(reprise.Completion{Payload: []byte(payload)})
	if err != nil {
		t.Fatalf("Complete: %v", err)
	}
	if end.End != want {
		t.Fatalf("Complete answered %v (%v), want %v", end.End, end.Err, want)
	}
	return end
}

// replays fails the test unless op is answered from its record with payload.
func (f *faultyEngine) replays(t *testing.T, op reprise.Operation, payload string) {
	t.Helper()
	if got := f.begin(t, op, reprise.Replayed).Payload; string(got) != payload {
		t.Fatalf("replayed %q, want %q", got, payload)
	}
}

// twoProcesses makes two processes over one memory store.
func twoProcesses(t *testing.T) (a, b *faultyEngine) {
	t.Helper()
	store := memstore.New()
	return newFaultyEngine(t, store, reprise.Config{}), newFaultyEngine(t, store, reprise.Config{})
}
