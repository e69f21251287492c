package storetest

import (
	"encoding/hex"
	"errors"
	"time"

	"github.com/reprise-go/reprise/conformance/internal/suite"
	"github.com/reprise-go/reprise/core/store"
)

// caller is one owner of an operation, with the parameters of its requests. It is a
// value: a copy with another field is another caller.
type caller struct {
	env   *env
	store store.Store

	id          store.ID
	fingerprint store.Fingerprint
	label       string
	description string
	scope       uint64
	owner       store.Owner
	lease       time.Duration
	retention   time.Duration
	horizon     time.Duration
	atMostOnce  bool
	takeover    bool
	maxAttempts int
	waiting     bool
}

// policy returns the policy of the caller's requests.
func (c caller) policy() store.Policy {
	return store.Policy{Label: c.label, AtMostOnce: c.atMostOnce, Retention: c.retention, Horizon: c.horizon}
}

// caller returns the owner of a new operation, in the first process. Its lease and
// retention outlast the case.
func (e *env) caller() caller {
	c := caller{env: e, store: e.one, id: suite.NewID(), owner: store.NewOwner(), lease: long, retention: long, takeover: true}
	c.fingerprint = store.Fingerprint(suite.NewID())
	return c
}

// rival returns another owner of the same operation, in the other process.
func (c caller) rival() caller {
	c.owner = store.NewOwner()
	c.store = c.env.two
	c.lease, c.retention = long, long
	return c
}

// otherRequest returns another owner, in the other process, that uses the same ID for a
// different request.
func (c caller) otherRequest() caller {
	c = c.rival()
	c.fingerprint[len(c.fingerprint)-1] ^= 1
	return c
}

// claim claims and demands the outcome.
func (c caller) claim(want store.Outcome) store.ClaimResult {
	c.env.Helper()
	got, err := c.tryClaim()
	if err != nil {
		c.env.Fatalf("claim: %v, want %v", err, want)
	}
	if got.Outcome != want {
		c.env.Fatalf("claim answered %v, want %v", got.Outcome, want)
	}
	return got
}

// claimNew claims and wants attempt 1: no earlier record is seen.
func (c caller) claimNew() store.ClaimResult {
	c.env.Helper()
	got := c.claim(store.Claimed)
	if got.Attempt != 1 {
		c.env.Fatalf("claim is attempt %d of an operation that is not seen, want 1", got.Attempt)
	}
	return got
}

// replay claims and demands the payload.
func (c caller) replay(want string) {
	c.env.Helper()
	if got := c.claim(store.Completed); string(got.Payload) != want {
		c.env.Fatalf("replayed %q, want %q", abridged(got.Payload), abridged([]byte(want)))
	}
}

// tryClaim claims, and checks the result for the properties of all results. Like all try
// methods it may run in any goroutine.
func (c caller) tryClaim() (store.ClaimResult, error) {
	c.env.Helper()
	ctx, cancel := c.env.call()
	defer cancel()
	got, err := c.store.Claim(ctx, c.claimRequest())
	c.checkError("claim", err)
	if err != nil {
		return got, err
	}
	c.checkAnswer(got)
	if got.Outcome == store.Claimed {
		c.env.shared.mu.Lock()
		defer c.env.shared.mu.Unlock()
		c.env.shared.held = append(c.env.shared.held, granted{c, got})
	}
	return got, nil
}

func (c caller) claimRequest() store.ClaimRequest {
	return store.ClaimRequest{
		ID: c.id, Owner: c.owner, Fingerprint: c.fingerprint, Policy: c.policy(), Description: c.description, Scope: c.scope, Lease: c.lease,
		Takeover: c.takeover, MaxAttempts: c.maxAttempts, Waiting: c.waiting,
	}
}

// checkAnswer checks that the fields which an outcome names are sound, and that the
// others are zero.
func (c caller) checkAnswer(got store.ClaimResult) {
	c.env.Helper()
	outcome, leased := got.Outcome, !c.env.fixture.Atomic
	if outcome < store.Claimed || outcome > store.Expired {
		c.env.Errorf("claim answered the outcome %v", outcome)
	}
	if isClaimed := outcome == store.Claimed; (got.Attempt >= 1) != isClaimed || (got.Fence != 0) != isClaimed {
		c.env.Errorf("claim answered %v with attempt %d and fence %d", outcome, got.Attempt, got.Fence)
	}
	if got.Atomic != (outcome == store.Claimed && !leased) {
		c.env.Errorf("claim answered %v with Atomic %v, and the fixture says %v", outcome, got.Atomic, !leased)
	}
	if outcome != store.Completed && got.Payload != nil {
		c.env.Errorf("claim answered %v with a payload", outcome)
	}
	switch outcome {
	case store.Claimed:
		if leased && got.Remaining > c.lease {
			c.env.Errorf("claim answered Remaining %v of a lease of %v", got.Remaining, c.lease)
		}
	case store.InProgress:
		if leased && got.Remaining <= 0 {
			c.env.Errorf("claim answered InProgress with Remaining %v, want more than 0", got.Remaining)
		}
	default:
		if got.Remaining != 0 {
			c.env.Errorf("claim answered %v with Remaining %v, want 0", outcome, got.Remaining)
		}
	}
}

// complete completes and demands success.
func (c caller) complete(payload string) {
	c.env.Helper()
	if err := c.tryComplete(payload); err != nil {
		c.env.Fatalf("complete: %v, want success", err)
	}
}

// completeLost completes and demands that the lease is reported as lost.
func (c caller) completeLost(payload string) {
	c.env.Helper()
	if err := c.tryComplete(payload); !errors.Is(err, store.ErrLeaseLost) {
		c.env.Fatalf("complete: error %v, want ErrLeaseLost", err)
	}
}

func (c caller) tryComplete(payload string) error {
	c.env.Helper()
	ctx, cancel := c.env.call()
	defer cancel()
	err := c.store.Complete(ctx, c.completeRequest(payload))
	c.checkError("complete", err, payload)
	return err
}

// completeRequest carries the result of the claim, where the case made one, as the engine
// does.
func (c caller) completeRequest(payload string) store.CompleteRequest {
	r := store.CompleteRequest{ID: c.id, Owner: c.owner, Payload: []byte(payload), Policy: c.policy()}
	c.env.shared.mu.Lock()
	defer c.env.shared.mu.Unlock()
	for _, g := range c.env.shared.held {
		if g.id == c.id && g.owner == c.owner {
			r.Fingerprint, r.Description, r.Attempt, r.Fence = c.fingerprint, c.description, g.result.Attempt, g.result.Fence
		}
	}
	return r
}

// release releases and demands success.
func (c caller) release() {
	c.env.Helper()
	ctx, cancel := c.env.call()
	defer cancel()
	err := c.store.Release(ctx, c.id, c.owner)
	c.checkError("release", err)
	if err != nil {
		c.env.Fatalf("release: %v, want success", err)
	}
}

// renew renews and demands the status.
func (c caller) renew(want store.RenewStatus) {
	c.env.Helper()
	got := c.env.renewAll(c)
	if got[0] != want {
		c.env.Fatalf("renew answered %v, want %v", got[0], want)
	}
}

// renewAll renews the leases of all callers in one batch, through the handle of the
// first.
func (e *env) renewAll(callers ...caller) []store.RenewStatus {
	e.Helper()
	batch := make([]store.RenewRequest, len(callers))
	for i, c := range callers {
		batch[i] = store.RenewRequest{ID: c.id, Owner: c.owner, Lease: c.lease}
	}
	ctx, cancel := e.call()
	defer cancel()
	got, err := callers[0].store.Renew(ctx, batch)
	callers[0].checkError("renew", err)
	if err != nil {
		e.Fatalf("renew: %v, want an answer", err)
	}
	if len(got) != len(batch) {
		e.Fatalf("renew gave %d answers to %d requests", len(got), len(batch))
	}
	return got
}

// checkError is [env.checkError] with the secrets of the caller.
func (c caller) checkError(what string, err error, secrets ...string) {
	c.env.Helper()
	c.env.checkError(what, err, append(secrets, string(c.owner[:]), hex.EncodeToString(c.owner[:]))...)
}

// abridged shortens a payload for a message.
func abridged(payload []byte) []byte { return payload[:min(len(payload), 64)] }
