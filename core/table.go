package reprise

import (
	"encoding/binary"
	"sync"

	"github.com/reprise-go/reprise/core/store"
)

// table is this process's knowledge about IDs, so that a duplicate that arrives here
// needs no round trip: the attempts that run, and the claims that are on their way to the
// store. An attempt enters when its claim returned Claimed, and leaves when it has ended:
// also in the background. From when its lease is no longer reliable the store decides; an
// operation that fails open is not run beside it even so.
type table [1024]tableRow

type tableRow struct {
	mu       sync.Mutex
	attempts *Attempt     // linked by Attempt.next, newest first
	claims   *sharedClaim // linked by sharedClaim.next
	spare    *sharedClaim // without followers, for the next claim
}

// row returns where an ID is. IDs are digests, so any part of one spreads well.
func (t *table) row(id store.ID) *tableRow {
	return &t[int(binary.LittleEndian.Uint16(id[:]))%len(t)]
}

// sharedClaim is a claim that is on its way to the store. The call that leads it asks;
// those that join it wait for the result.
type sharedClaim struct {
	id          store.ID
	fingerprint store.Fingerprint
	maxAttempts int
	next        *sharedClaim
	done        chan struct{} // closed when there is a result; nil until another call joins

	outcome Outcome // the fields below are valid when done is closed
	payload []byte
	err     error
}

// join returns the known outcome for the operation of c. Otherwise it returns the claim
// that is on its way, to wait for, or a new one that c leads.
func (t *table) join(c *call) (known Outcome, claim *sharedClaim, leads bool) {
	row := t.row(c.id)
	row.mu.Lock()
	defer row.mu.Unlock()
	known, relied := row.find(c)
	if relied {
		return known, nil, false
	}
	if known != 0 {
		c.seen = known
	}
	for claim = row.claims; claim != nil; claim = claim.next {
		if claim.id == c.id {
			if claim.done == nil {
				claim.done = make(chan struct{})
			}
			return 0, claim, false
		}
	}
	if claim, row.spare = row.spare, nil; claim == nil {
		claim = new(sharedClaim)
	}
	claim.id, claim.fingerprint, claim.maxAttempts = c.id, c.fingerprint, c.maxAttempts
	claim.next, row.claims = row.claims, claim
	return 0, claim, true
}

// publish ends a claim with its result, for those that joined it. An attempt enters the
// table in the same step.
func (t *table) publish(claim *sharedClaim, res Result, err error) (_ Result, turnedAway *Attempt) {
	row := t.row(claim.id)
	row.mu.Lock()
	defer row.mu.Unlock()
	for at := &row.claims; *at != nil; at = &(*at).next {
		if *at == claim {
			*at = claim.next
			break
		}
	}
	claim.next = nil
	res, turnedAway = row.enter(res)
	if claim.done == nil {
		row.spare = claim // without a result, so it refers to no payload
	} else {
		claim.outcome, claim.payload, claim.err = res.Outcome, res.Payload, err
		close(claim.done)
	}
	return res, turnedAway
}

// add enters the attempt of a result that was not shared.
func (t *table) add(res Result) (_ Result, turnedAway *Attempt) {
	if res.Attempt == nil {
		return res, nil
	}
	row := t.row(res.Attempt.id)
	row.mu.Lock()
	defer row.mu.Unlock()
	return row.enter(res)
}

// remove takes a out, if it is in.
func (t *table) remove(a *Attempt) {
	row := t.row(a.id)
	row.mu.Lock()
	defer row.mu.Unlock()
	for at := &row.attempts; *at != nil; at = &(*at).next {
		if *at == a {
			*at, a.next = a.next, nil
			return
		}
	}
}

// find answers for c from the attempts that have not ended: Mismatch or InProgress, and
// zero where there is none. relied says that the lease of one of them is relied on;
// otherwise the store is asked.
func (row *tableRow) find(c *call) (known Outcome, relied bool) {
	for a := row.attempts; a != nil && !relied; a = a.next {
		if a.id != c.id {
			continue
		}
		if known, relied = InProgress, a.engine.renewer.holds(a); a.fingerprint != c.fingerprint {
			known = Mismatch
		}
	}
	return known, relied
}

// enter adds the attempt of a result, if it has one. Only this table excludes others
// from an attempt that runs without a granted claim, so neither an unprotected attempt
// that is not alone enters, nor a protected one beside an unprotected one. That is so
// also where the lease of the other one was lost: it may still run.
func (row *tableRow) enter(res Result) (_ Result, turnedAway *Attempt) {
	a := res.Attempt
	if a == nil {
		return res, nil
	}
	if a.unprotected || row.runsUnprotected(a.id) {
		if known, _ := row.find(&a.call); known != 0 {
			return Result{Outcome: known}, a
		}
	}
	a.next, row.attempts = row.attempts, a
	return res, nil
}

// runsUnprotected reports whether an attempt at id runs without a claim.
func (row *tableRow) runsUnprotected(id store.ID) bool {
	for a := row.attempts; a != nil; a = a.next {
		if a.unprotected && a.id == id {
			return true
		}
	}
	return false
}

// answerTo translates the result of a shared claim for a call that joined it. It is not
// ok when the call has to ask again.
//
// A record that is completed stays so, and an attempt of this process was just begun; any
// other result may be older than the call. That of a second claim is not: it was sent
// after the first one, which the call joined, had its result.
func (s *sharedClaim) answerTo(c *call, round int) (res Result, ok bool) {
	if s.err != nil {
		return Result{}, false
	}
	same, fresh := s.fingerprint == c.fingerprint, round > 1
	switch s.outcome {
	case Claimed, Unprotected:
		res.Outcome, ok = InProgress, true
	case Replayed:
		res.Outcome, res.Payload, ok = Replayed, s.payload, true
	case Expired:
		res.Outcome, ok = Expired, true
	case InProgress:
		res.Outcome, ok = InProgress, fresh
	case Lapsed:
		res.Outcome, ok = Lapsed, fresh && (!same || s.maxAttempts == c.maxAttempts)
	default: // Mismatch: of the leading call, and so of those that ask for the same
		return Result{Outcome: Mismatch}, fresh && same
	}
	if !same { // the key belongs to the request of the leading call
		return Result{Outcome: Mismatch}, ok
	}
	return res, ok
}
