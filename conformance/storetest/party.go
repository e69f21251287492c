package storetest

import (
	"encoding/hex"
	"errors"
	"time"

	"github.com/reprise-go/reprise/conformance/internal/suite"

	reprise "github.com/reprise-go/reprise/core"
)

// party is one owner of an operation and what it asks for. It is a value: a copy with another field is another party.
type party struct {
	rig   *rig
	store reprise.Store

	id          reprise.ID
	fingerprint reprise.Fingerprint
	owner       reprise.Owner
	lease       time.Duration
	retention   time.Duration
	takeover    bool
	maxAttempts int
}

// party returns the owner of a new operation, in the first process. Nothing that it claims or completes ends on its own.
func (r *rig) party() party {
	p := party{rig: r, store: r.one, id: suite.NewID(), owner: reprise.NewOwner(), lease: long, retention: long, takeover: true}
	p.fingerprint = reprise.Fingerprint(suite.NewID())
	return p
}

// rival returns another owner of the same operation, in the other process.
func (p party) rival() party {
	p.owner = reprise.NewOwner()
	p.store = p.rig.two
	p.lease, p.retention = long, long
	return p
}

// stranger returns another owner, in the other process, that uses the same ID for something else.
func (p party) stranger() party {
	p = p.rival()
	p.fingerprint[len(p.fingerprint)-1] ^= 1
	return p
}

// claim claims and demands the outcome.
func (p party) claim(want reprise.Outcome) reprise.ClaimResult {
	p.rig.Helper()
	got, err := p.tryClaim()
	if err != nil {
		p.rig.Fatalf("claim: %v, want %v", err, want)
	}
	if got.Outcome != want {
		p.rig.Fatalf("claim answered %v, want %v", got.Outcome, want)
	}
	return got
}

// anew claims and demands that nothing of an earlier record is seen.
func (p party) anew() reprise.ClaimResult {
	p.rig.Helper()
	got := p.claim(reprise.Claimed)
	if got.Attempt != 1 {
		p.rig.Fatalf("claim is attempt %d of an operation that is not seen, want 1", got.Attempt)
	}
	return got
}

// replay claims and demands the payload.
func (p party) replay(want string) {
	p.rig.Helper()
	if got := p.claim(reprise.Completed); string(got.Payload) != want {
		p.rig.Fatalf("replayed %q, want %q", abridged(got.Payload), abridged([]byte(want)))
	}
}

// tryClaim claims, and holds the answer to what is true of all answers. Like all try methods it may run in any goroutine.
func (p party) tryClaim() (reprise.ClaimResult, error) {
	p.rig.Helper()
	ctx, cancel := p.rig.call()
	defer cancel()
	got, err := p.store.Claim(ctx, p.claimRequest())
	p.checkError("claim", err)
	if err != nil {
		return got, err
	}
	p.checkAnswer(got)
	if got.Outcome == reprise.Claimed {
		p.rig.shared.mu.Lock()
		defer p.rig.shared.mu.Unlock()
		p.rig.shared.held = append(p.rig.shared.held, p)
	}
	return got, nil
}

func (p party) claimRequest() reprise.ClaimRequest {
	return reprise.ClaimRequest{
		ID: p.id, Owner: p.owner, Fingerprint: p.fingerprint, Lease: p.lease, Retention: p.retention,
		Takeover: p.takeover, MaxAttempts: p.maxAttempts,
	}
}

// checkAnswer checks that the fields which an outcome names are sound, and that the others are zero.
func (p party) checkAnswer(got reprise.ClaimResult) {
	p.rig.Helper()
	outcome, leased := got.Outcome, !p.rig.fixture.Atomic
	if outcome < reprise.Claimed || outcome > reprise.Lapsed {
		p.rig.Errorf("claim answered the outcome %v", outcome)
	}
	if isClaimed := outcome == reprise.Claimed; (got.Attempt >= 1) != isClaimed || (got.Fence != 0) != isClaimed {
		p.rig.Errorf("claim answered %v with attempt %d and fence %d", outcome, got.Attempt, got.Fence)
	}
	if got.Atomic != (outcome == reprise.Claimed && !leased) {
		p.rig.Errorf("claim answered %v with Atomic %v, and the fixture says %v", outcome, got.Atomic, !leased)
	}
	if outcome != reprise.Completed && got.Payload != nil {
		p.rig.Errorf("claim answered %v with a payload", outcome)
	}
	switch outcome {
	case reprise.Claimed:
		if leased && got.Remaining > p.lease {
			p.rig.Errorf("claim answered that %v remain of a lease of %v", got.Remaining, p.lease)
		}
	case reprise.InProgress:
		if leased && got.Remaining <= 0 {
			p.rig.Errorf("claim answered that an attempt is in progress and that %v remain of its lease", got.Remaining)
		}
	default:
		if got.Remaining != 0 {
			p.rig.Errorf("claim answered %v and that %v remain", outcome, got.Remaining)
		}
	}
}

// complete completes and demands success.
func (p party) complete(payload string) {
	p.rig.Helper()
	if err := p.tryComplete(payload); err != nil {
		p.rig.Fatalf("complete: %v, want success", err)
	}
}

// completeLost completes and demands to hear that the lease is lost.
func (p party) completeLost(payload string) {
	p.rig.Helper()
	if err := p.tryComplete(payload); !errors.Is(err, reprise.ErrLeaseLost) {
		p.rig.Fatalf("complete: error %v, want ErrLeaseLost", err)
	}
}

func (p party) tryComplete(payload string) error {
	p.rig.Helper()
	ctx, cancel := p.rig.call()
	defer cancel()
	err := p.store.Complete(ctx, reprise.CompleteRequest{ID: p.id, Owner: p.owner, Payload: []byte(payload), Retention: p.retention})
	p.checkError("complete", err, payload)
	return err
}

// release releases and demands success.
func (p party) release() {
	p.rig.Helper()
	ctx, cancel := p.rig.call()
	defer cancel()
	err := p.store.Release(ctx, p.id, p.owner)
	p.checkError("release", err)
	if err != nil {
		p.rig.Fatalf("release: %v, want success", err)
	}
}

// renew renews and demands the status.
func (p party) renew(want reprise.RenewStatus) {
	p.rig.Helper()
	got := p.rig.renewAll(p)
	if got[0] != want {
		p.rig.Fatalf("renew answered %v, want %v", got[0], want)
	}
}

// renewAll renews the leases of all parties in one batch, through the handle of the first.
func (r *rig) renewAll(parties ...party) []reprise.RenewStatus {
	r.Helper()
	batch := make([]reprise.RenewRequest, len(parties))
	for i, p := range parties {
		batch[i] = reprise.RenewRequest{ID: p.id, Owner: p.owner, Lease: p.lease}
	}
	ctx, cancel := r.call()
	defer cancel()
	got, err := parties[0].store.Renew(ctx, batch)
	parties[0].checkError("renew", err)
	if err != nil {
		r.Fatalf("renew: %v, want an answer", err)
	}
	if len(got) != len(batch) {
		r.Fatalf("renew gave %d answers to %d requests", len(got), len(batch))
	}
	return got
}

// checkError is [rig.checkError] with what is secret about the party.
func (p party) checkError(what string, err error, secrets ...string) {
	p.rig.Helper()
	p.rig.checkError(what, err, append(secrets, string(p.owner[:]), hex.EncodeToString(p.owner[:]))...)
}

// abridged shortens a payload for a message.
func abridged(payload []byte) []byte { return payload[:min(len(payload), 64)] }
