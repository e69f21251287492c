package repriselocal

import (
	"encoding/binary"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// running remembers the claims that were granted here, until they end. Its memory does
// not grow: a claim that finds its place taken takes it, and the completion of the other
// one does not enter the cache. An owner is random, so any part of it spreads well.
type running [4096]runningSlot

type runningSlot struct {
	mu    sync.Mutex
	claim runningClaim
}

// runningClaim is a claim that was granted.
type runningClaim struct {
	id          reprise.ID
	owner       reprise.Owner // zero: none
	fingerprint reprise.Fingerprint
	sent        time.Time // before the claim
}

func (t *running) slot(owner reprise.Owner) *runningSlot {
	return &t[int(binary.LittleEndian.Uint16(owner[:]))%len(t)]
}

func (t *running) add(r *reprise.ClaimRequest, sent time.Time) {
	s := t.slot(r.Owner)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim = runningClaim{id: r.ID, owner: r.Owner, fingerprint: r.Fingerprint, sent: sent}
}

// take returns the claim of owner, and forgets it.
func (t *running) take(owner reprise.Owner) (claim runningClaim, ok bool) {
	s := t.slot(owner)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claim.owner != owner {
		return claim, false
	}
	claim, s.claim = s.claim, runningClaim{}
	return claim, true
}
