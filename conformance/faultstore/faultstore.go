// Package faultstore wraps a [reprise.Store] and makes its operations fail on command:
// before or after they execute, with a lost reply, by hanging, late, slowly, or with a
// panic. Tests use it to simulate failures of the network and the server.
//
//	store, inject := faultstore.New(memstore.New())
//	t.Cleanup(inject.Close)
//	inject.Next(faultstore.Complete, faultstore.LoseReply(), faultstore.Hang())
//	inject.Always(faultstore.Renew, faultstore.FailBefore(store.ErrUnavailable))
//
// The faults are those of a real network: a call that hangs returns [store.ErrUnknown]
// when its context ends, and a late call executes whether or not its caller still waits.
//
// It works in a bubble of testing/synctest if New is called inside the bubble. All
// methods are safe for concurrent use.
package faultstore

import (
	"context"
	"slices"
	"sync"

	"github.com/reprise-go/reprise/core/store"
)

// Op names an operation of [reprise.Store].
type Op uint8

// The operations.
const (
	Claim Op = iota
	Renew
	Complete
	Release
	Unknown
	numOps
)

// String returns the name of the operation in lower case.
func (op Op) String() string {
	if op >= numOps {
		return "invalid"
	}
	return [...]string{Claim: "claim", Renew: "renew", Complete: "complete", Release: "release", Unknown: "unknown"}[op]
}

// Faults is the script of a store made by [New], and the count of its calls.
type Faults struct {
	inner store.Store

	mu     sync.Mutex
	next   [numOps][]Fault
	always [numOps]*Fault
	counts [numOps]int
	called chan struct{} // closed and replaced at each call
	letGo  chan struct{} // closed and replaced by LetGo
	closed chan struct{} // closed by Close
	late   int           // executions that may outlive their call
	idle   *sync.Cond    // late became zero
}

// New returns a store that forwards to inner, and its script, which is empty.
// [store.As] finds exactly the abilities of inner in the store; faults do not apply to
// them.
func New(inner store.Store) (store.Store, *Faults) {
	f := &Faults{
		inner:  inner,
		called: make(chan struct{}),
		letGo:  make(chan struct{}),
		closed: make(chan struct{}),
	}
	f.idle = sync.NewCond(&f.mu)
	return &scripted{f}, f
}

// Next appends faults to the queue of op. Each call of op takes one; [Pass] lets the call
// through.
func (f *Faults) Next(op Op, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next[op] = append(f.next[op], faults...)
}

// Always applies fault to every call of op that finds its queue empty, until Always is
// called again or op is cleared.
func (f *Faults) Always(op Op, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always[op] = &fault
}

// Clear empties the queue of each op and removes its Always fault; without arguments, of
// every op. Calls that hang continue to hang: see [Faults.LetGo].
func (f *Faults) Clear(ops ...Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(ops) == 0 {
		ops = []Op{Claim, Renew, Complete, Release, Unknown}
	}
	for _, op := range ops {
		f.next[op], f.always[op] = nil, nil
	}
}

// LetGo ends the calls that hang at this moment; they return [store.ErrUnknown]. Later
// calls hang again.
func (f *Faults) LetGo() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.letGo)
	f.letGo = make(chan struct{})
}

// Wait waits until no late execution is pending or running.
func (f *Faults) Wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.late > 0 {
		f.idle.Wait()
	}
}

// Close clears the script, ends all hanging calls, drops late executions that did not
// begin, and waits for those that did. Later calls are forwarded. Close may be called
// more than once.
func (f *Faults) Close() {
	f.Clear()
	f.mu.Lock()
	if !f.isClosed() {
		close(f.closed)
	}
	f.mu.Unlock()
	f.LetGo()
	f.Wait()
}

// take counts a call and returns its fault, and the channel that the test closes to let
// it proceed.
func (f *Faults) take(op Op) (Fault, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[op]++
	close(f.called)
	f.called = make(chan struct{})

	fault := Pass()
	switch queue := f.next[op]; {
	case f.isClosed():
	case len(queue) > 0:
		fault, f.next[op] = queue[0], queue[1:]
	case f.always[op] != nil:
		fault = *f.always[op]
	}
	if fault.kind == executeLate {
		f.late++ // here, so that Close either sees it or comes before it
	}
	return fault, f.letGo
}

// lateEnded reverts the count of take.
func (f *Faults) lateEnded() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late--
	if f.late == 0 {
		f.idle.Broadcast()
	}
}

func (f *Faults) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

// scripted is the store that New returns. Its calls have memory of their own, as the
// caller of a late one may reuse its own after the call.
type scripted struct{ f *Faults }

// Unwrap returns the store inside, whose abilities are those of this one.
func (s *scripted) Unwrap() store.Store { return s.f.inner }

func (s *scripted) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	return run(ctx, s.f, Claim, func(ctx context.Context) (store.ClaimResult, error) { return s.f.inner.Claim(ctx, r) })
}

func (s *scripted) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	rs = slices.Clone(rs)
	return run(ctx, s.f, Renew, func(ctx context.Context) ([]store.RenewStatus, error) { return s.f.inner.Renew(ctx, rs) })
}

func (s *scripted) Complete(ctx context.Context, r store.CompleteRequest) error {
	r.Payload = slices.Clone(r.Payload)
	return s.tell(ctx, Complete, func(ctx context.Context) error { return s.f.inner.Complete(ctx, r) })
}

func (s *scripted) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return s.tell(ctx, Release, func(ctx context.Context) error { return s.f.inner.Release(ctx, id, owner) })
}

func (s *scripted) Unknown(ctx context.Context, r store.UnknownRequest) error {
	return s.tell(ctx, Unknown, func(ctx context.Context) error { return s.f.inner.Unknown(ctx, r) })
}

// tell is [run] for a call that answers no more than its error.
func (s *scripted) tell(ctx context.Context, op Op, do func(context.Context) error) error {
	_, err := run(ctx, s.f, op, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}
