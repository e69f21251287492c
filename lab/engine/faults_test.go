package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

func TestEngineSurvivesALostReply(t *testing.T) {
	inBubble(t, "claim", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Next(faultstore.Claim, faultstore.LoseReply(), faultstore.LoseReply())
		attempt := a.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		if n := attempt.View().Number(); n != 1 {
			t.Errorf("attempt %d, want 1: the repeated claim is the first one", n)
		}
		b.begin(t, engineOrder("k"), reprise.InProgress)
		a.end(t, attempt, "answer", reprise.EndRecorded)
		b.replays(t, engineOrder("k"), "answer")
	})
	inBubble(t, "renew", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Next(faultstore.Renew, faultstore.LoseReply(), faultstore.LoseReply())
		attempt := a.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		inTime(3 * engineLease)
		if err := context.Cause(attempt.Context()); err != nil {
			t.Errorf("cancelled: %v", err)
		}
		b.begin(t, engineOrder("k"), reprise.InProgress)
		a.end(t, attempt, "answer", reprise.EndRecorded)
	})
	inBubble(t, "complete", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Next(faultstore.Complete, faultstore.LoseReply(), faultstore.LoseReply())
		a.end(t, a.begin(t, engineOrder("k"), reprise.Claimed).Attempt, "answer", reprise.EndRecorded)
		if n := a.faults.Count(faultstore.Complete); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
		b.replays(t, engineOrder("k"), "answer")
	})
	inBubble(t, "release", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Next(faultstore.Release, faultstore.LoseReply())
		if err := a.begin(t, engineOrder("k"), reprise.Claimed).Attempt.Release(); err != nil {
			t.Fatal(err)
		}
		b.end(t, b.begin(t, engineOrder("k"), reprise.Claimed).Attempt, "answer", reprise.EndRecorded)
	})
}

// A release whose first try arrives late finds the next owner, and leaves it alone.
func TestEngineLateReleaseAffectsNoOtherAttempt(t *testing.T) {
	inBubble(t, "release", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Next(faultstore.Release, faultstore.ExecuteLate(time.Minute))
		attempt := a.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		if err := attempt.Release(); !errors.Is(err, store.ErrUnknown) {
			t.Fatalf("Release: %v, want unknown", err)
		}
		inTime(engineBudget)
		next := b.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		a.faults.Wait()
		a.begin(t, engineOrder("k"), reprise.InProgress)
		b.end(t, next, "answer", reprise.EndRecorded)
	})
}

func TestEngineClaimThatExecutesLateFreesItsKey(t *testing.T) {
	for _, late := range []time.Duration{engineBudget - time.Millisecond, engineBudget + engineBudget/2} {
		inBubble(t, late.String(), func(t *testing.T) {
			a, b := twoProcesses(t)
			a.faults.Next(faultstore.Claim, faultstore.ExecuteLate(late))
			if _, err := a.Begin(t.Context(), engineOrder("k")); !errors.Is(err, store.ErrUnknown) {
				t.Fatalf("Begin: %v, want unknown", err)
			}
			a.faults.Wait()
			inTime(2 * engineBudget)
			b.end(t, b.begin(t, engineOrder("k"), reprise.Claimed).Attempt, "answer", reprise.EndRecorded)
		})
	}
}

func TestEngineCompletionThatFailsForGood(t *testing.T) {
	for name, c := range map[string]struct {
		fault   faultstore.Fault
		repeats bool
	}{
		"unavailable":    {faultstore.FailBefore(store.ErrUnavailable), true},
		"unknown":        {faultstore.FailBefore(store.ErrUnknown), true},
		"not replicated": {faultstore.FailBefore(store.ErrNotReplicated), true},
		"hanging":        {faultstore.Hang(), true},
		"panicking":      {faultstore.Panic("a bug in the store"), true},
		"corrupt":        {faultstore.FailBefore(store.ErrCorrupt), false},
	} {
		inBubble(t, name, func(t *testing.T) {
			a, b := twoProcesses(t)
			a.faults.Always(faultstore.Complete, c.fault)
			start := time.Now()
			a.end(t, a.begin(t, engineOrder("k"), reprise.Claimed).Attempt, "answer", reprise.EndUnrecorded)
			if took := time.Since(start); took > engineBudget {
				t.Errorf("held the response back for %v", took)
			}
			inTime(2 * engineLease)
			if !c.repeats { // the lease is not renewed
				next := b.begin(t, engineOrder("k"), reprise.Claimed).Attempt
				if n := next.View().Number(); n != 2 {
					t.Errorf("attempt %d, want 2", n)
				}
				b.end(t, next, "second", reprise.EndRecorded)
				return
			}
			b.begin(t, engineOrder("k"), reprise.InProgress)
			a.faults.Clear()
			a.faults.LetGo()
			inTime(2 * engineBudget)
			b.replays(t, engineOrder("k"), "answer")
		})
	}
}

func TestEngineLostCompletion(t *testing.T) {
	// lose lets the lease of a's attempt run out.
	lose := func(t *testing.T, a *faultyEngine) *reprise.Attempt {
		t.Helper()
		a.faults.Always(faultstore.Renew, faultstore.FailBefore(store.ErrUnavailable))
		attempt := a.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		inTime(engineLease)
		return attempt
	}
	inBubble(t, "with a rival that completed", func(t *testing.T) {
		a, b := twoProcesses(t)
		attempt := lose(t, a)
		b.end(t, b.begin(t, engineOrder("k"), reprise.Claimed).Attempt, "rival's", reprise.EndRecorded)
		if end := a.end(t, attempt, "mine", reprise.EndSuperseded); string(end.Payload) != "rival's" {
			t.Errorf("the answer to send is %q", end.Payload)
		}
		a.replays(t, engineOrder("k"), "rival's")
	})
	inBubble(t, "with a rival that runs", func(t *testing.T) {
		a, b := twoProcesses(t)
		attempt := lose(t, a)
		rival := b.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		a.end(t, attempt, "mine", reprise.EndContested)
		b.end(t, rival, "rival's", reprise.EndRecorded)
		a.replays(t, engineOrder("k"), "rival's")
	})
	inBubble(t, "without a rival", func(t *testing.T) {
		a, b := twoProcesses(t)
		attempt := lose(t, a)
		a.end(t, attempt, "mine", reprise.EndRecorded)
		b.replays(t, engineOrder("k"), "mine")
	})
	inBubble(t, "with a rival that gave up", func(t *testing.T) {
		a, b := twoProcesses(t)
		attempt := lose(t, a)
		if err := b.begin(t, engineOrder("k"), reprise.Claimed).Attempt.Release(); err != nil {
			t.Fatal(err)
		}
		a.faults.Next(faultstore.Claim, faultstore.LoseReply()) // of the claim that asks who has it
		a.end(t, attempt, "mine", reprise.EndRecorded)
		b.replays(t, engineOrder("k"), "mine")
	})
	inBubble(t, "with a store that is gone", func(t *testing.T) {
		a, b := twoProcesses(t)
		attempt := lose(t, a)
		rival := b.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		a.faults.Always(faultstore.Claim, faultstore.Hang())
		a.end(t, attempt, "mine", reprise.EndUnrecorded)
		b.end(t, rival, "rival's", reprise.EndRecorded)
	})
}

func TestEngineReleaseThatFailsGoesOn(t *testing.T) {
	inBubble(t, "release", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Always(faultstore.Release, faultstore.Hang())
		start := time.Now()
		if err := a.begin(t, engineOrder("k"), reprise.Claimed).Attempt.Release(); !errors.Is(err, store.ErrUnknown) {
			t.Fatalf("Release: %v, want unknown", err)
		}
		if took := time.Since(start); took > engineBudget {
			t.Errorf("held the response back for %v", took)
		}
		b.begin(t, engineOrder("k"), reprise.InProgress)
		a.faults.Clear()
		inTime(2 * engineBudget)
		b.end(t, b.begin(t, engineOrder("k"), reprise.Claimed).Attempt, "answer", reprise.EndRecorded)
	})
}

// The handler does not look at its context: the table of its process must let the store
// answer from the local deadline on.
func TestEngineLeaseLostWhileTheHandlerIgnoresItsContext(t *testing.T) {
	inBubble(t, "handler", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Always(faultstore.Renew, faultstore.Hang())
		zombie := a.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		inTime(engineLease*9/10 - time.Nanosecond)
		a.begin(t, engineOrder("k"), reprise.InProgress)
		if n := a.faults.Count(faultstore.Claim); n != 1 {
			t.Fatalf("%d claims before the local deadline, want 1: the table answers", n)
		}
		inTime(time.Nanosecond)
		synctest.Wait()
		if err := context.Cause(zombie.Context()); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("cause %v, want lease lost", err)
		}
		a.begin(t, engineOrder("k"), reprise.InProgress)
		if n := a.faults.Count(faultstore.Claim); n != 2 {
			t.Fatalf("%d claims after the local deadline, want 2: the store answers", n)
		}
		inTime(engineLease / 10)
		next := b.begin(t, engineOrder("k"), reprise.Claimed).Attempt
		a.begin(t, engineOrder("k"), reprise.InProgress)
		a.end(t, zombie, "zombie's", reprise.EndContested)
		b.end(t, next, "answer", reprise.EndRecorded)
		a.replays(t, engineOrder("k"), "answer")
	})
}

func TestEngineRenewBatchThatHangs(t *testing.T) {
	inBubble(t, "once", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Next(faultstore.Renew, faultstore.Hang())
		attempts := make([]*reprise.Attempt, 10)
		for i := range attempts {
			attempts[i] = a.begin(t, engineOrder(string(rune('a'+i))), reprise.Claimed).Attempt
		}
		inTime(2 * engineLease)
		for i, attempt := range attempts {
			if err := context.Cause(attempt.Context()); err != nil {
				t.Errorf("%d: cancelled: %v", i, err)
			}
			b.begin(t, engineOrder(string(rune('a'+i))), reprise.InProgress)
			a.end(t, attempt, "answer", reprise.EndRecorded)
		}
	})
	inBubble(t, "for good", func(t *testing.T) {
		a, b := twoProcesses(t)
		a.faults.Always(faultstore.Renew, faultstore.Hang())
		attempt, start := a.begin(t, engineOrder("k"), reprise.Claimed).Attempt, time.Now()
		<-attempt.Context().Done()
		if took := time.Since(start); took != engineLease*9/10 {
			t.Errorf("told after %v, want 27s", took)
		}
		b.begin(t, engineOrder("k"), reprise.InProgress)
		if n := a.faults.Count(faultstore.Renew); n < 2 || n > 4 {
			t.Errorf("%d batches, want 2 to 4: one at a time", n)
		}
		a.end(t, attempt, "answer", reprise.EndRecorded)
	})
}
