package reprise

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// generous is a store that grants every claim and renews none.
type generous struct{}

func (generous) Claim(_ context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	return store.ClaimResult{Outcome: store.Claimed, Attempt: 1, Fence: 1, Remaining: r.Lease}, nil
}

func (generous) Renew(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
	return nil, store.ErrUnavailable
}
func (generous) Complete(context.Context, store.CompleteRequest) error { return nil }
func (generous) Release(context.Context, store.ID, store.Owner) error  { return nil }
func (generous) Unknown(context.Context, store.UnknownRequest) error   { return nil }

// The strings of an operation may be views into buffers that are used again once Begin
// has returned. Who waits longest is still counted under the scope then.
func TestNoStringOfAnOperationIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := must(New(generous{}, Config{}))
		res := must(e.Begin(t.Context(), Operation{Scope: "tenant", Key: "k"}))
		waits := func(patience time.Duration) {
			scope, key := []byte("tenant"), []byte("k")
			view := func(b []byte) string { return unsafe.String(&b[0], len(b)) } //nolint:gosec // as an adapter may
			if _, err := e.Begin(t.Context(), Operation{Scope: view(scope), Key: view(key), Wait: patience}); err != nil {
				t.Error(err)
			}
			copy(scope, "used again")
			copy(key, "used again")
		}
		go waits(time.Second)
		synctest.Wait()
		waits(2 * time.Second)
		if len(e.waiters.scopes) != 0 {
			t.Errorf("nobody waits, and %v are counted", e.waiters.scopes)
		}
		if err := res.Attempt.Release(); err != nil {
			t.Error(err)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An attempt without a claim does not enter beside one of its operation that has not
// ended, although that one lost its lease. Another operation may share the row.
func TestUnprotectedAttemptEntersAlone(t *testing.T) {
	t.Parallel()
	e := must(New(generous{}, Config{}))
	attempt := func(key string, unprotected bool) *Attempt { // its lease is not kept
		a := newAttempt(&call{subject: subject{engine: e, id: store.DeriveID("s", "", key), values: t.Context()}})
		a.unprotected = unprotected
		return a
	}
	for _, c := range []struct{ first, second, enters bool }{
		{false, true, false},
		{true, false, false},
		{true, true, false},
		{false, false, true}, // the store granted the second
	} {
		var row tableRow
		if _, turnedAway := row.enter(Result{Attempt: attempt("k", c.first)}); turnedAway != nil {
			t.Errorf("%+v: the first did not enter", c)
		}
		if _, turnedAway := row.enter(Result{Attempt: attempt("another", true)}); turnedAway != nil {
			t.Errorf("%+v: another operation did not enter", c)
		}
		res, turnedAway := row.enter(Result{Attempt: attempt("k", c.second)})
		if entered := turnedAway == nil; entered != c.enters || !entered && res.Outcome != InProgress {
			t.Errorf("%+v: entered %v, as %v", c, entered, res.Outcome)
		}
	}
}

// How a call that joined a shared claim treats its result: a result that may be older
// than the call, or that depends on a field of the leading call, makes it ask again.
func TestResultOfASharedClaim(t *testing.T) {
	t.Parallel()
	const again = Outcome(0) // ask again
	plain := func(*call) {}
	other := func(c *call) { c.fingerprint[0]++ }
	strict := func(c *call) { c.policy = store.Policy{AtMostOnce: true, Retention: time.Hour, Horizon: time.Hour} }
	bounded := func(c *call) { c.maxAttempts++ }
	for _, c := range []struct {
		name          string
		outcome       Outcome
		lead, joins   func(*call)
		first, second Outcome // of the first claim that the call joined, and of a later one
	}{
		{"claimed", Claimed, plain, plain, InProgress, InProgress},
		{"claimed by another request", Claimed, plain, other, Mismatch, Mismatch},
		{"claimed under another policy", Claimed, plain, strict, InProgress, InProgress},
		{"completed", Replayed, plain, plain, Replayed, Replayed},
		{"completed by another request", Replayed, plain, other, Mismatch, Mismatch},
		{"completed under another policy", Replayed, plain, strict, Replayed, Replayed},
		{"expired", Expired, plain, strict, Expired, Expired},
		{"expired by another request", Expired, plain, other, Mismatch, Mismatch},
		{"in progress", InProgress, plain, plain, again, InProgress},
		{"in progress by another request", InProgress, plain, other, again, Mismatch},
		{"lapsed", Lapsed, plain, plain, again, Lapsed},
		{"lapsed, under another policy", Lapsed, plain, strict, again, Lapsed},
		{"lapsed, with another limit", Lapsed, plain, bounded, again, again},
		{"lapsed by another request", Lapsed, plain, other, again, Mismatch},
		{"a mismatch", Mismatch, plain, plain, again, Mismatch},
		{"a mismatch of another request", Mismatch, plain, other, again, again},
	} {
		var lead, joins call
		c.lead(&lead)
		c.joins(&joins)
		claim := &sharedClaim{
			fingerprint: lead.fingerprint, maxAttempts: lead.maxAttempts, outcome: c.outcome, payload: []byte("answer"),
		}
		for round, want := range map[int]Outcome{1: c.first, 2: c.second, claimRounds: c.second} {
			res, ok := claim.answerTo(&joins, round)
			if ok != (want != again) || ok && res.Outcome != want {
				t.Errorf("%s, round %d: %v, %t, want %v", c.name, round, res.Outcome, ok, want)
			}
			if ok && (res.Payload != nil) != (want == Replayed) {
				t.Errorf("%s, round %d: %v with the payload %q", c.name, round, res.Outcome, res.Payload)
			}
		}
		claim.err = store.ErrUnavailable
		if _, ok := claim.answerTo(&joins, 2); ok {
			t.Errorf("%s: a claim that failed has an answer", c.name)
		}
	}
}

// A waiter whose patience ends at the instant at which its queue has a result gets the
// result.
func TestResultAtTheEndOfAWaitIsPreferred(t *testing.T) {
	t.Parallel()
	e := must(New(memstore.New(), Config{}))
	c := call{subject: subject{engine: e}}
	q := &queue{waiters: []waiter{make(waiter)}, done: make(chan struct{}), result: Result{Outcome: Replayed}} // behind its head
	close(q.done)
	e.waiters.queues, e.waiters.scopes = map[store.ID][]*queue{{}: {q}}, map[string]int{}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 64 { // select takes either
		if res, err := c.wait(ended, "", time.Minute); err != nil || res.Outcome != Replayed {
			t.Fatalf("the wait ends with %v, %v", res.Outcome, err)
		}
	}
}

// An attempt that fell due while a batch was out is renewed by the next one, also where
// no other is due.
func TestOverdueAttemptThatIsAloneIsInTheNextBatch(t *testing.T) {
	t.Parallel()
	r, add, _ := renewing(t)
	at := now()
	alone := add(at.add(time.Hour), at.add(-time.Second), never)
	r.tick(true)
	if _, batch := r.tick(false); len(batch) != 1 || batch[0] != alone {
		t.Errorf("%d in the next batch, want the one", len(batch))
	}
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
