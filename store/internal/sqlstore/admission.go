package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Claim grants an attempt with its transaction, or says why not. The caller has validated
// the request. Claims that find no free slot wait, first come, first served, until
// shortly before ctx ends.
func (s *Transactional) Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	if result, done := s.claimHere(r); done {
		return result, nil
	}
	found, err := s.lookAlone(ctx, "claim", r.ID)
	if err != nil {
		return store.ClaimResult{}, err
	}
	if d := found.Decide(r); !d.Claimable() {
		return d.AtomicResult(s.Dialect.Name)
	}
	wait, cancel := withoutReserve(ctx)
	defer cancel()
	result, done, err := s.waitForSlot(wait, r)
	if done || err != nil {
		return result, err
	}
	a, result, err := s.attempt(wait, r)
	if a == nil {
		s.slots.Release()
		return result, err
	}
	a.watch(s.slots.Release)
	s.mu.Lock()
	s.attempts[a.owner], s.running[a.id] = a, a
	s.mu.Unlock()
	return a.result(), nil
}

// A claim waits until the deadline of its caller, or for claimWait if there is none, less
// a tenth of that time, and at least claimReserve, which the claim itself needs. While it
// waits, it checks every lookEvery whether an attempt on its record has begun in this
// process.
const (
	claimWait    = 2 * time.Second
	claimReserve = 50 * time.Millisecond
	lookEvery    = 10 * time.Millisecond
)

// withoutReserve returns ctx with the deadline until which a claim waits.
func withoutReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	budget := claimWait
	if deadline, ok := ctx.Deadline(); ok {
		budget = time.Until(deadline)
	}
	return context.WithTimeout(ctx, budget-max(claimReserve, budget/10))
}

// claimHere answers a claim from the memory of this process.
func (s *Transactional) claimHere(r *store.ClaimRequest) (result store.ClaimResult, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.attempts[r.Owner]; a != nil && a.id == r.ID {
		return a.result(), true
	}
	a := s.running[r.ID]
	switch {
	case a == nil || a.over():
		return store.ClaimResult{}, false
	case a.fingerprint != r.Fingerprint:
		return store.ClaimResult{Outcome: store.Mismatch}, true
	}
	return store.ClaimResult{Outcome: store.InProgress}, true
}

// waitForSlot takes a slot, or answers a claim that needs none.
func (s *Transactional) waitForSlot(ctx context.Context, r *store.ClaimRequest) (result store.ClaimResult, done bool, err error) {
	place, since := s.slots.Enqueue(), time.Now()
	for !place.Within(lookEvery) {
		if result, done = s.claimHere(r); done {
			s.slots.Leave(place)
			return result, true, nil
		}
		if ctx.Err() != nil {
			s.slots.Leave(place)
			return result, false, fmt.Errorf("%w: %s: claim: no transaction available within %v (all %d in use); make handlers faster",
				store.ErrBusy, s.Dialect.Name, time.Since(since).Round(time.Millisecond), s.slots.Limit)
		}
	}
	if result, done = s.claimHere(r); done {
		s.slots.Release()
	}
	return result, done, nil
}

// attempt begins an attempt, or says why not.
func (s *Transactional) attempt(ctx context.Context, r *store.ClaimRequest) (*attempt, store.ClaimResult, error) {
	tx, err := s.begin.Begin(ctx, "claim", r.ID)
	switch {
	case errors.Is(err, ErrHeld):
		return nil, store.ClaimResult{Outcome: store.InProgress}, nil
	case err != nil:
		return nil, store.ClaimResult{}, err
	}
	a := &attempt{
		dialect: s.Dialect, id: r.ID, owner: r.Owner, fingerprint: r.Fingerprint, request: *r, tx: tx, handler: tx.Tx, deadline: time.Now().Add(s.timeout),
	}
	a.request.Lease = s.timeout
	result, err := s.open(s.Dialect.rest(ctx), a)
	if err == nil && result.Outcome == store.Claimed {
		return a, result, nil
	}
	tx.Broken = s.Dialect.retires(err)
	tx.End()
	if err = s.Dialect.Fail("claim", err); errors.Is(err, ErrLostRace) {
		return nil, store.ClaimResult{Outcome: store.InProgress}, nil // another writer has the record at this moment
	}
	return nil, result, err
}

// open writes the record of an attempt into its transaction, unless an earlier
// transaction of the attempt has committed it, and sets the savepoint to which its
// effects can be undone.
func (s *Transactional) open(ctx context.Context, a *attempt) (store.ClaimResult, error) {
	found, err := s.hold(ctx, a.tx, a.id)
	if err != nil {
		return store.ClaimResult{}, err
	}
	result := store.ClaimResult{Outcome: store.Claimed}
	if a.number == 0 || !found.Found || !bytes.Equal(found.Owner, a.owner[:]) { // else the handler committed it
		d := found.Decide(&a.request)
		if !d.Claimable() {
			return d.AtomicResult(s.Dialect.Name)
		}
		a.number, a.fence = d.Attempt, d.Fence
		result, err = s.put(ctx, a.tx, &a.request, found, &d)
	}
	if err == nil {
		_, err = a.tx.ExecContext(ctx, "SAVEPOINT "+savepoint)
	}
	return result, err
}
