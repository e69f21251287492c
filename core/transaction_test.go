package reprise_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// setupTransacting makes a process over a store whose handlers begin their transactions.
func setupTransacting(t *testing.T) (*bench, *teststore.Transacting) {
	t.Helper()
	b := &bench{store: &hooked{Store: memstore.New()}, events: &events{}}
	st := &teststore.Transacting{Store: b.store, Lazy: true}
	b.Engine = newEngine(t, st, b.events, reprise.Config{})
	return b, st
}

// transactional is op with a transaction.
func transactional(op reprise.Operation) reprise.Operation {
	op.Transactional = true
	return op
}

// began claims op, and begins the transaction of its handler.
func (b *bench) began(t *testing.T, op reprise.Operation) *reprise.Attempt {
	t.Helper()
	a := b.claim(t, transactional(op))
	if !a.Transactional() {
		t.Error("its response need not wait for the commit")
	}
	teststore.Begin(a.Context())
	return a
}

func wantCalls(t *testing.T, st *teststore.Transacting, want ...string) {
	t.Helper()
	if !slices.Equal(st.Calls, want) {
		t.Errorf("the transaction was called %v, want %v", st.Calls, want)
	}
	st.Calls = nil
}

// Each end of an attempt does to the transaction what it promises, and to the record what
// it does without one.
func TestTransactionEndsWithItsAttempt(t *testing.T) {
	for _, undo := range []error{nil, store.ErrUnknown} {
		inTimeNamed(t, map[bool]string{true: "rolled back", false: "lost"}[undo == nil], func(t *testing.T) {
			b, st := setupTransacting(t)
			st.Undo = undo
			complete(t, b.began(t, order("kept")), "answer", reprise.EndRecorded)
			wantCalls(t, st, "close", "commit")
			b.want(t, order("kept"), reprise.Replayed)

			must(b.began(t, order("refused")).Complete(reprise.Completion{Payload: []byte("500"), DiscardEffects: true}))
			wantCalls(t, st, "close", "rollback", "complete")
			b.want(t, order("refused"), reprise.Replayed)

			release(t, b.began(t, order("released")))
			wantCalls(t, st, "close", "rollback")
			release(t, b.claim(t, order("released")))

			wantError(t, "Unknown", b.began(t, order("unknown")).Unknown("the bank timed out"), nil)
			wantCalls(t, st, "close", "rollback")
			b.want(t, order("unknown"), reprise.Lapsed)

			complete(t, b.claim(t, transactional(order("not asked for"))), "answer", reprise.EndRecorded)
			wantCalls(t, st, "close", "complete")
			complete(t, b.claim(t, order("another policy")), "answer", reprise.EndRecorded)
			wantCalls(t, st, "complete")
		})
	}
}

// What a handler ended by itself may be permanent: no retry runs, whatever its end.
func TestRollbackOfWhatTheHandlerEnded(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b, st := setupTransacting(t)
		st.Undo = store.ErrMisconfigured
		b.store.OnUnknown = func(ctx context.Context, r store.UnknownRequest) error {
			defer time.Sleep(lease) // a renewal finds the lease ended
			return b.store.Store.Unknown(ctx, r)
		}
		wantError(t, "Release", b.began(t, order("released")).Release(), reprise.ErrTxEnded)
		wantError(t, "Unknown", b.began(t, order("unknown")).Unknown("the bank timed out"), nil)
		wantError(t, "Complete", must(b.began(t, order("kept")).Complete(reprise.Completion{DiscardEffects: true})).Err, reprise.ErrTxEnded)
		for _, key := range []string{"released", "unknown", "kept"} {
			b.want(t, order(key), reprise.Lapsed)
		}
		if n := b.Stats().Ends[reprise.EndUnknown]; n != 3 {
			t.Errorf("counted %v", b.Stats().Ends)
		}
		b.events.wantCount(t, "lease-lost", 0)
	})
}

// A commit that fails ends the attempt by what the store knows of it. What was rolled
// back is free at once, and what is not decided keeps its lease, which ends.
func TestCommitThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		commit func() error
		end    reprise.AttemptEnd
		then   reprise.Outcome // of a retry at once
		later  reprise.Outcome // and after the lease
	}{
		"not applied":             {func() error { return store.ErrNotApplied }, reprise.EndNotApplied, reprise.Claimed, 0},
		"unknown":                 {func() error { return store.ErrUnknown }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"unplaced":                {func() error { return errors.New("unplaced") }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"panics":                  {func() error { panic("a bug in the driver") }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"not replicated":          {func() error { return store.ErrNotReplicated }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"ended by its handler":    {func() error { return store.ErrMisconfigured }, reprise.EndUnknown, reprise.Lapsed, reprise.Lapsed},
		"lost, and still its own": {func() error { return store.ErrLeaseLost }, reprise.EndNotApplied, reprise.Claimed, 0},
		"ends its own goroutine":  {func() error { runtime.Goexit(); return nil }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"not applied, likewise":   {func() error { return store.ErrNotApplied }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b, st := setupTransacting(t)
			st.OnCommit = c.commit
			if c.end == reprise.EndUndecided {
				b.store.OnRelease = func(context.Context, store.ID, store.Owner) error { runtime.Goexit(); return nil }
			}
			a := b.began(t, order("k"))
			ends(func() { complete(t, a, "answer", c.end) })
			b.store.Heal()
			if n := b.Stats().Ends[c.end]; n != 1 {
				t.Errorf("counted %v", b.Stats().Ends)
			}
			res := b.want(t, order("k"), c.then)
			if res.Attempt == nil {
				time.Sleep(lease)
				res = b.want(t, order("k"), c.later)
			}
			if res.Attempt != nil {
				release(t, res.Attempt)
			}
		})
	}
}

// The effects of an attempt that lost its record are gone: its client gets the answer of
// the attempt that has it, and never its own.
func TestCommitOfAStaleOwner(t *testing.T) {
	for name, c := range map[string]struct {
		another bool // request has the key
		ends    bool
		end     reprise.AttemptEnd
	}{
		"completed":          {ends: true, end: reprise.EndSuperseded},
		"runs":               {end: reprise.EndContested},
		"of another request": {another: true, end: reprise.EndNotApplied},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b, st := setupTransacting(t)
			var owner store.Owner
			b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
				owner = r.Owner
				return b.store.Store.Claim(ctx, r)
			}
			a := b.began(t, order("k"))
			wantError(t, "Release", b.store.Store.Release(t.Context(), a.ID(), owner), nil)
			op := order("k")
			if c.another {
				op.Fingerprint[0]++
			}
			other := setupOver(t, b.store.Store, reprise.Config{}).claim(t, op)
			if c.ends {
				complete(t, other, "other", reprise.EndRecorded)
			}
			st.OnCommit = func() error { return store.ErrLeaseLost }
			got := complete(t, a, "answer", c.end)
			if c.ends && string(got.Payload) != "other" {
				t.Errorf("its client gets %q", got.Payload)
			}
			wantCalls(t, st, "close", "commit")
			if !c.ends {
				release(t, other)
			}
		})
	}
}

// A transaction is promised by stores that have one, and not together with FailOpen.
func TestTransactionalIsRefused(t *testing.T) {
	t.Parallel()
	_, st := setupTransacting(t)
	unable := &teststore.Transacting{Store: memstore.New(), Able: store.ErrInvalid}
	for name, c := range map[string]struct {
		store store.Store
		op    reprise.Operation
	}{
		"a store without": {memstore.New(), transactional(order("k"))},
		"one that cannot": {unable, transactional(order("k"))},
		"with FailOpen":   {st, open(transactional(order("k")))},
	} {
		e := newEngine(t, c.store, &events{}, reprise.Config{})
		res, err := e.Begin(t.Context(), c.op)
		wantNoRun(t, res, err, reprise.Failed)
		wantError(t, name, err, store.ErrInvalid)
	}
	nothing := &nothings{memstore.New()}
	e := newEngine(t, nothing, &events{}, reprise.Config{})
	res, err := e.Begin(t.Context(), transactional(order("k")))
	wantNoRun(t, res, err, reprise.Unavailable)
	wantError(t, "a store that returns no transaction", err, store.ErrUnknown)
}

// nothings has no transaction, although it says so.
type nothings struct{ store.Store }

func (nothings) Transacts() error { return nil }

func (nothings) Transaction(context.Context, store.ID, store.Owner) (context.Context, store.Transaction) {
	return nil, nil
}
