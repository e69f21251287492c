package repriseredis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// probeTime is how long the records of a probe last, and how long the probe of a node may
// take.
const probeTime = 10 * time.Second

// probe tries every command and script once at each primary, on probe records. Otherwise
// the first sign of a server or user that refuses one of them would be an operation that
// has run and cannot be completed.
func (s *Store) probe(ctx context.Context) error {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if err := s.probeNode(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) probeNode(ctx context.Context, node *redis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	id, err := s.idAt(ctx, node)
	if err != nil {
		return err
	}
	const payload = "probe"
	r := store.ClaimRequest{ID: id, Owner: store.NewOwner(), Lease: probeTime, Policy: store.Policy{Label: store.ProbeLabel, Retention: probeTime, Horizon: probeTime}}
	var held store.ClaimResult
	try := func(r store.ClaimRequest, want store.Outcome) error {
		got, err := s.Claim(ctx, r)
		if err == nil && (got.Outcome != want || want == store.Completed && string(got.Payload) != payload) {
			return misconfigured("the answer is %v, want %v", got.Outcome, want)
		}
		if want == store.Claimed {
			held = got
		}
		return err
	}
	claim := func() error { return try(r, store.Claimed) }
	wait := func() error {
		waiter := r
		waiter.Owner, waiter.Waiting = store.NewOwner(), true
		return try(waiter, store.InProgress)
	}
	replay := func() error { return try(r, store.Completed) }
	read := func() error { // before any claim: one that is refused halfway has written already
		err := node.PExpireTime(ctx, s.key(id)).Err()
		if err == nil && !s.noCombining {
			err = node.GetRange(ctx, s.key(id), 0, 0).Err()
		}
		if err != nil {
			return fail(classify(err).class, err)
		}
		if _, err = s.Inspect(ctx, id); errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	}
	renew := func() error {
		got, err := s.Renew(ctx, []store.RenewRequest{{ID: id, Owner: r.Owner, Lease: probeTime}})
		if err == nil && got[0] != store.Renewed {
			return misconfigured("the answer is %v, want %v", got[0], store.Renewed)
		}
		return err
	}
	inspect := func() error { _, err := s.Inspect(ctx, id); return err }
	release := func() error { return s.Release(ctx, id, r.Owner) }
	unknown := func() error {
		return s.Unknown(ctx, store.UnknownRequest{ID: id, Owner: r.Owner, Reason: "probe"})
	}
	forget := func() error { return s.Resolve(ctx, id, store.Resolution{Fence: held.Fence, Forget: true}) }
	complete := func() error {
		return s.Complete(ctx, store.CompleteRequest{
			ID: id, Owner: r.Owner, Payload: []byte(payload), Policy: r.Policy, Attempt: held.Attempt, Fence: held.Fence,
		})
	}
	forgetCompleted := func() error {
		return s.Resolve(ctx, id, store.Resolution{State: store.StateCompleted, Fence: held.Fence, Forget: true})
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"read a record", read},
		{"claim", claim},
		{"claim again", claim},
		{"wait for a claim", wait},
		{"renew", renew},
		{"inspect", inspect},
		{"release", release},
		{"claim after the release", claim},
		{"mark an outcome as unknown", unknown},
		{"resolve it", forget},
		{"claim after that", claim},
		{"complete", complete},
		{"complete again", complete},
		{"replay", replay},
		{"forget a completed record", forgetCompleted},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("trying to %s on %s: %w", step.name, node.Options().Addr, s.refusedWait(ctx, node, err))
		}
	}
	return nil
}

// refusedWait returns [store.ErrMisconfigured] in the place of a missing confirmation
// when node refuses to wait at all.
func (s *Store) refusedWait(ctx context.Context, node *redis.Client, err error) error {
	if !errors.Is(err, store.ErrNotReplicated) {
		return err
	}
	wait := s.durability.command(ctx, minAckTimeout)
	_ = node.Process(ctx, wait)
	var answer redis.Error
	if errors.As(wait.Err(), &answer) {
		return fail(store.ErrMisconfigured, answer)
	}
	return err
}

// idAt returns a new ID whose key is at node.
func (s *Store) idAt(ctx context.Context, node *redis.Client) (id store.ID, err error) {
	const tries = 1 << 20 // one of many nodes may have few slots
	for range tries {
		_, _ = rand.Read(id[:]) // never returns an error
		at, err := s.serverFor(ctx, s.key(id))
		if err != nil {
			return id, fail(classify(err).class, err)
		}
		if at == node {
			return id, nil
		}
	}
	return id, misconfigured("%s has no slots of the cluster", node.Options().Addr)
}

// keyAt returns a new key at node.
func (s *Store) keyAt(ctx context.Context, node *redis.Client) (string, error) {
	id, err := s.idAt(ctx, node)
	return s.key(id), err
}
