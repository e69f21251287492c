package storetest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// caller is one owner of an operation, with the parameters of its requests. Its methods
// may run in any goroutine, each caller in one at a time.
type caller struct {
	*scene
	*operation
	store.ClaimRequest

	store   store.Store
	granted store.ClaimResult // by its last claim
	seen    uint64            // the fence that it saw last, by a claim or as an operator
	shownAt time.Time         // when its claim was, as an operator saw it
	asked   time.Duration     // the retention of its claim
	forgot  bool              // the fields of its claim

	tx    store.Transaction // of its handler; nil before that has a context
	bound context.Context
}

// rival returns another owner of the same operation, in the other process.
func (c *caller) rival() *caller {
	other := *c
	other.Owner, other.store, other.granted = store.NewOwner(), c.two, store.ClaimResult{}
	other.Lease, other.Retention = hour, hour
	return &other
}

// ask makes a call, and checks its error for the properties of all errors.
func ask[T any](c *caller, what string, do func(context.Context) (T, error), secrets ...string) (T, error) {
	c.Helper()
	ctx, cancel := c.call()
	defer cancel()
	got, err := do(ctx)
	c.checkError(what, err, append(secrets, string(c.Owner[:]), hex.EncodeToString(c.Owner[:]))...)
	return got, err
}

// tell is [ask] for a call that answers no more than its error.
func tell(c *caller, what string, do func(context.Context) error, secrets ...string) error {
	c.Helper()
	_, err := ask(c, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) }, secrets...)
	return err
}

// tryClaim claims, and checks the result for the properties of all results.
func (c *caller) tryClaim() (store.ClaimResult, error) {
	c.Helper()
	got, err := ask(c, "claim", func(ctx context.Context) (store.ClaimResult, error) { return c.store.Claim(ctx, c.ClaimRequest) })
	if err != nil {
		return got, err
	}
	c.checkAnswer(got)
	if got.Outcome == store.Claimed {
		c.granted = got
	}
	return got, nil
}

// checkAnswer checks that the fields which an outcome names are sound, and that the
// others are zero.
func (c *caller) checkAnswer(got store.ClaimResult) {
	c.Helper()
	outcome := got.Outcome
	isClaimed := outcome == store.Claimed
	switch {
	case outcome < store.Claimed || outcome > store.Expired:
		c.Errorf("claim answered the outcome %v", outcome)
	case (got.Attempt >= 1) != isClaimed || (got.Fence != 0) != isClaimed:
		c.Errorf("claim answered %v with attempt %d and fence %d", outcome, got.Attempt, got.Fence)
	case outcome != store.Completed && got.Payload != nil:
		c.Errorf("claim answered %v with a payload", outcome)
	case isClaimed && got.Remaining > c.Lease:
		c.Errorf("claim answered Remaining %v of a lease of %v", got.Remaining, c.Lease)
	case outcome == store.InProgress && got.Remaining <= 0:
		c.Errorf("claim answered InProgress with Remaining %v, want more than 0", got.Remaining)
	case !isClaimed && outcome != store.InProgress && got.Remaining != 0:
		c.Errorf("claim answered %v with Remaining %v, want 0", outcome, got.Remaining)
	}
}

// completion carries the result of the caller's claim, where there is one, as the engine
// does.
func (c *caller) completion(payload string) store.CompleteRequest {
	r := store.CompleteRequest{ID: c.ID, Owner: c.Owner, Payload: []byte(payload), Policy: c.Policy}
	if c.granted.Attempt > 0 && !c.forgot {
		r.Fingerprint, r.Description, r.Attempt, r.Fence = c.Fingerprint, c.Description, c.granted.Attempt, c.granted.Fence
	}
	return r
}

func (c *caller) tryComplete(payload string) error {
	c.Helper()
	return tell(c, "complete", func(ctx context.Context) error { return c.store.Complete(ctx, c.completion(payload)) }, payload)
}

func (c *caller) tryRelease() error {
	c.Helper()
	return tell(c, "release", func(ctx context.Context) error { return c.store.Release(ctx, c.ID, c.Owner) })
}

func (c *caller) tryUnknown(reason string) error {
	c.Helper()
	r := store.UnknownRequest{ID: c.ID, Owner: c.Owner, Reason: reason}
	return tell(c, "unknown", func(ctx context.Context) error { return c.store.Unknown(ctx, r) }, reason)
}

// tryRenew renews the leases of the caller and of others in one batch.
func (c *caller) tryRenew(others ...*caller) ([]store.RenewStatus, error) {
	c.Helper()
	var batch []store.RenewRequest
	for _, one := range append([]*caller{c}, others...) {
		batch = append(batch, store.RenewRequest{ID: one.ID, Owner: one.Owner, Lease: one.Lease})
	}
	got, err := ask(c, "renew", func(ctx context.Context) ([]store.RenewStatus, error) { return c.store.Renew(ctx, batch) })
	if err == nil && len(got) != len(batch) {
		c.Fatalf("renew gave %d answers to %d requests", len(got), len(batch))
	}
	return got, err
}

// tryInspect and tryResolve are calls of an operator, in the other process.
func (c *caller) tryInspect() (store.Record, error) {
	c.Helper()
	return ask(c, "inspect", func(ctx context.Context) (store.Record, error) {
		return ability[store.Inspector](c.two).Inspect(ctx, c.ID)
	})
}

func (c *caller) tryResolve(r store.Resolution) error {
	c.Helper()
	return tell(c, "resolve", func(ctx context.Context) error {
		return ability[store.Inspector](c.two).Resolve(ctx, c.ID, r)
	}, string(r.Payload))
}

// wantError returns what is wrong with an error; a nil want is success.
func wantError(what string, err, want error) error {
	switch {
	case want == nil && err != nil:
		return fmt.Errorf("%s: %w, want success", what, err)
	case want != nil && err == nil:
		return fmt.Errorf("%s succeeded, want %w", what, want)
	case !errors.Is(err, want):
		return fmt.Errorf("%s: error %w, want %w", what, err, want)
	}
	return nil
}

// unlike says that a call was answered otherwise than wanted.
func unlike(what string, got any, err error, want any) error {
	if err != nil {
		return fmt.Errorf("%s answered %+v, %w; want %v", what, got, err, want)
	}
	return fmt.Errorf("%s answered %+v, want %v", what, got, want)
}
