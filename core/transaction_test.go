package reprise_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// transacting is a store that gives handlers a transaction, which they begin by a value
// of their context.
type transacting struct {
	*hooked
	able   error
	commit func(store.CompleteRequest) error // nil: it completes the record
	undo   error
	calls  []string
}

type beginKey struct{}

// Transacts implements [store.Transactor].
func (s *transacting) Transacts() error { return s.able }

// Transaction implements [store.Transactor].
func (s *transacting) Transaction(ctx context.Context, _ store.ID, _ store.Owner) (context.Context, store.Transaction) {
	tx := &transaction{store: s}
	return context.WithValue(ctx, beginKey{}, func() { tx.begun = true }), tx
}

type transaction struct {
	store *transacting
	begun bool
}

func (tx *transaction) Close() bool {
	tx.store.calls = append(tx.store.calls, "close")
	return tx.begun
}

func (tx *transaction) Commit(ctx context.Context, r store.CompleteRequest) error {
	tx.store.calls = append(tx.store.calls, "commit")
	if tx.store.commit != nil {
		return tx.store.commit(r)
	}
	return tx.store.Store.Complete(ctx, r)
}

func (tx *transaction) Rollback(context.Context) error {
	tx.store.calls = append(tx.store.calls, "rollback")
	return tx.store.undo
}

// setupTransacting makes a process over such a store.
func setupTransacting(t *testing.T) (*bench, *transacting) {
	t.Helper()
	st := &transacting{hooked: &hooked{Store: memstore.New()}}
	b := &bench{store: st.hooked, events: &events{}}
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
	a.Context().Value(beginKey{}).(func())() //nolint:forcetypeassert // the store's
	return a
}

func wantCalls(t *testing.T, st *transacting, want ...string) {
	t.Helper()
	if !slices.Equal(st.calls, want) {
		t.Errorf("the transaction was called %v, want %v", st.calls, want)
	}
	st.calls = nil
}

// Each end of an attempt does to the transaction what it promises, and to the record what
// it does without one.
func TestTransactionEndsWithItsAttempt(t *testing.T) {
	for _, undo := range []error{nil, store.ErrUnknown} {
		inTimeNamed(t, map[bool]string{true: "rolled back", false: "lost"}[undo == nil], func(t *testing.T) {
			b, st := setupTransacting(t)
			st.undo = undo
			complete(t, b.began(t, order("kept")), "answer", reprise.EndRecorded)
			wantCalls(t, st, "close", "commit")
			b.want(t, order("kept"), reprise.Replayed)

			must(b.began(t, order("refused")).Complete(reprise.Completion{Payload: []byte("500"), DiscardEffects: true}))
			wantCalls(t, st, "close", "rollback")
			b.want(t, order("refused"), reprise.Replayed)

			release(t, b.began(t, order("released")))
			wantCalls(t, st, "close", "rollback")
			release(t, b.claim(t, order("released")))

			wantError(t, "Unknown", b.began(t, order("unknown")).Unknown("the bank timed out"), nil)
			wantCalls(t, st, "close", "rollback")
			b.want(t, order("unknown"), reprise.Lapsed)

			complete(t, b.claim(t, transactional(order("not asked for"))), "answer", reprise.EndRecorded)
			wantCalls(t, st, "close")
			complete(t, b.claim(t, order("another policy")), "answer", reprise.EndRecorded)
			wantCalls(t, st)
		})
	}
}

// A commit that fails ends the attempt by what the store knows of it. What was rolled
// back is free at once, and what is not decided keeps its lease, which ends.
func TestCommitThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		commit func(store.CompleteRequest) error
		end    reprise.AttemptEnd
		then   reprise.Outcome // of a retry at once
		later  reprise.Outcome // and after the lease
	}{
		"not applied":             {func(store.CompleteRequest) error { return store.ErrNotApplied }, reprise.EndNotApplied, reprise.Claimed, 0},
		"unknown":                 {func(store.CompleteRequest) error { return store.ErrUnknown }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"unplaced":                {func(store.CompleteRequest) error { return errors.New("unplaced") }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"panics":                  {func(store.CompleteRequest) error { panic("a bug in the driver") }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"not replicated":          {func(store.CompleteRequest) error { return store.ErrNotReplicated }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
		"ended by its handler":    {func(store.CompleteRequest) error { return store.ErrMisconfigured }, reprise.EndUnknown, reprise.Lapsed, reprise.Lapsed},
		"lost, and still its own": {func(store.CompleteRequest) error { return store.ErrLeaseLost }, reprise.EndNotApplied, reprise.Claimed, 0},
		"ends its own goroutine":  {func(store.CompleteRequest) error { runtime.Goexit(); return nil }, reprise.EndUndecided, reprise.InProgress, reprise.Claimed},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b, st := setupTransacting(t)
			st.commit = c.commit
			a := b.began(t, order("k"))
			done := make(chan struct{})
			go func() {
				defer close(done)
				complete(t, a, "answer", c.end)
			}()
			<-done
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
			st.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
				owner = r.Owner
				return st.Store.Claim(ctx, r)
			}
			a := b.began(t, order("k"))
			wantError(t, "Release", st.Store.Release(t.Context(), a.ID(), owner), nil)
			op := order("k")
			if c.another {
				op.Fingerprint[0]++
			}
			other := setupOver(t, st.Store, reprise.Config{}).claim(t, op)
			if c.ends {
				complete(t, other, "other", reprise.EndRecorded)
			}
			st.commit = func(store.CompleteRequest) error { return store.ErrLeaseLost }
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

// What was rolled back is released in the background if the store is away, and then free.
func TestNotAppliedIsReleasedLater(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b, st := setupTransacting(t)
		st.commit = func(store.CompleteRequest) error { return store.ErrNotApplied }
		a := b.began(t, order("k"))
		st.OnRelease = func(context.Context, store.ID, store.Owner) error { return store.ErrUnavailable }
		complete(t, a, "answer", reprise.EndNotApplied)
		st.Heal()
		time.Sleep(time.Minute)
		synctest.Wait()
		release(t, b.claim(t, order("k")))
	})
}

// A transaction is promised by stores that have one, and not together with FailOpen.
func TestTransactionalIsRefused(t *testing.T) {
	t.Parallel()
	_, st := setupTransacting(t)
	unable := &transacting{hooked: &hooked{Store: memstore.New()}, able: store.ErrInvalid}
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
