package reprise

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// bid is one call to Begin: an operation, and who would run it. Most calls end in an answer and not in a claim, so a bid stays on the
// stack; an [Attempt] is made of one that was granted.
type bid struct {
	engine      *Engine
	id          ID
	owner       Owner
	fingerprint Fingerprint
	retention   time.Duration
	maxAttempts int
	preset      Preset
	scope       [6]byte         // the start of its SHA-256; zero where there is no observer to tell
	began       time.Duration   // by the clock that nobody sets
	values      context.Context // of the request, for its values only: its end is not the attempt's
}

func newBid(ctx context.Context, e *Engine, op *Operation, at instant) bid {
	b := bid{
		engine: e, id: DeriveID(op.Scope, op.Endpoint, op.Key), owner: NewOwner(), fingerprint: op.Fingerprint,
		retention: op.Retention, maxAttempts: op.MaxAttempts, preset: op.Preset, began: at.mono, values: ctx,
	}
	if e.cfg.Observer != nil {
		sum := sha256.Sum256([]byte(op.Scope))
		copy(b.scope[:], sum[:])
	}
	return b
}

func (b *bid) claimRequest(takeover bool) ClaimRequest {
	return ClaimRequest{
		ID: b.id, Owner: b.owner, Fingerprint: b.fingerprint,
		Lease: b.engine.cfg.Lease, Retention: b.retention,
		Takeover: takeover, MaxAttempts: b.maxAttempts,
	}
}

// hasValues reports whether a store may find anything in the context of the request. Frameworks whose requests have none
// pass the background.
func (b *bid) hasValues() bool { return b.values != context.Background() }

// report tells the observer of e, which says what happened and to which attempt.
func (b *bid) report(e Event) {
	o := b.engine.cfg.Observer
	if o == nil {
		return
	}
	e.ID, e.Scope, e.Elapsed = b.id, hex.EncodeToString(b.scope[:]), now().mono-b.began
	notify(b.values, o, e)
}
