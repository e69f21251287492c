package reprise

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

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

// A table that an ended attempt stays in would grow for ever.
func TestTablesAreEmptyAfterwards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := must(New(generous{}, Config{}))
		size := func() (running, leases, waiting int) {
			synctest.Wait() // no call is running now
			e.waiters.mu.Lock()
			defer e.waiters.mu.Unlock()
			e.renewer.mu.Lock()
			defer e.renewer.mu.Unlock()
			for i := range e.table {
				for a := e.table[i].attempts; a != nil; a = a.next {
					running++
				}
			}
			return running, len(e.renewer.due), len(e.waiters.queues) + len(e.waiters.scopes) + int(e.waiters.total.Load())
		}
		begin := func(key string) *Attempt {
			res, err := e.Begin(t.Context(), Operation{Scope: "s", Key: key})
			if err != nil || res.Attempt == nil {
				t.Fatal(res, err)
			}
			return res.Attempt
		}
		const n = 3000 // more than the table has rows
		attempts := make([]*Attempt, n)
		for i := range attempts {
			attempts[i] = begin(strconv.Itoa(i))
		}
		for range 10 { // who wait for the first
			go func() { _, _ = e.Begin(t.Context(), Operation{Scope: "s", Key: "0", Wait: time.Second}) }()
		}
		if running, leases, waiting := size(); running != n || leases != n || waiting != 12 {
			t.Errorf("%d running, %d leases, %d for waiters while they run", running, leases, waiting)
		}
		for key := range n {
			res, err := e.Begin(t.Context(), Operation{Scope: "s", Key: strconv.Itoa(key)})
			if err != nil || res.Outcome != InProgress { // the store would grant it
				t.Fatalf("a duplicate of %d of %d running attempts: %v, %v", key, n, res.Outcome, err)
			}
		}
		time.Sleep(2 * time.Second)
		for i, a := range attempts[:n/2] {
			if i%2 == 0 {
				_, _ = a.Complete(Completion{})
			} else {
				_ = a.Release()
			}
		}
		if running, leases, waiting := size(); running != n/2 || leases != n/2 || waiting != 0 {
			t.Errorf("%d running, %d leases, %d for waiters when half have ended", running, leases, waiting)
		}
		time.Sleep(defaultLease)
		if running, leases, _ := size(); running != n/2 || leases != 0 {
			t.Errorf("%d running, %d leases when the others have lost theirs and go on", running, leases)
		}
		for _, a := range attempts[n/2:] {
			_ = a.Release()
		}
		if running, leases, _ := size(); running != 0 || leases != 0 {
			t.Errorf("%d running, %d leases when all have ended", running, leases)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

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

// A worker that found its next task due in an hour, and was about to sleep when the
// engine closed, slept that hour.
func TestCloseWakesABackgroundThatIsAboutToSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := must(New(generous{}, Config{}))
		e.work.retain() // the task
		b := &e.background
		b.mu.Lock()
		b.sleeping = true
		b.mu.Unlock()
		closed := make(chan error)
		go func() { closed <- e.Close(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		b.sleep(e.base, time.Hour)
		if slept := time.Since(start); slept > 0 {
			t.Errorf("slept %v", slept)
		}
		e.work.done()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// A claim that was answered and that referred to the next one of its row kept that one,
// and those behind it, from being collected.
func TestFinishedClaimRefersToNoOther(t *testing.T) {
	t.Parallel()
	var table table
	first, second := &call{id: store.ID{1}}, &call{id: store.ID{1, 0, 2}}
	_, older, _ := table.join(first)
	_, newer, _ := table.join(second)
	table.join(second) // a duplicate waits for its result
	if newer.next != older {
		t.Fatal("not in one row")
	}
	table.publish(newer, Result{Outcome: Replayed}, nil)
	if newer.next != nil {
		t.Error("refers to another")
	}
}

// An attempt without a claim does not enter beside one that has not ended, although that
// one lost its lease.
func TestUnprotectedAttemptEntersAlone(t *testing.T) {
	t.Parallel()
	e := must(New(generous{}, Config{}))
	attempt := func(unprotected bool) *Attempt { // its lease is not kept
		a := newAttempt(&call{engine: e, id: store.DeriveID("s", "", "k"), values: t.Context()})
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
		if _, turnedAway := row.enter(Result{Attempt: attempt(c.first)}); turnedAway != nil {
			t.Errorf("%+v: the first did not enter", c)
		}
		res, turnedAway := row.enter(Result{Attempt: attempt(c.second)})
		if entered := turnedAway == nil; entered != c.enters || !entered && res.Outcome != InProgress {
			t.Errorf("%+v: entered %v, as %v", c, entered, res.Outcome)
		}
	}
}
