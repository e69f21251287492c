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
	waiter := r
	waiter.Owner, waiter.Waiting = store.NewOwner(), true
	var held store.ClaimResult
	claims := func(r store.ClaimRequest, want store.Outcome) func() error {
		return func() error {
			got, err := s.Claim(ctx, r)
			if err == nil && (got.Outcome != want || want == store.Completed && string(got.Payload) != payload) {
				return misconfigured("the answer is %v, want %v", got.Outcome, want)
			}
			if want == store.Claimed {
				held = got
			}
			return err
		}
	}
	claim := claims(r, store.Claimed)
	resolve := func(state store.RecordState) func() error {
		return func() error {
			return s.Resolve(ctx, id, store.Resolution{State: state, Fence: held.Fence, Forget: true})
		}
	}
	complete := func() error {
		return s.Complete(ctx, store.CompleteRequest{
			ID: id, Owner: r.Owner, Payload: []byte(payload), Policy: r.Policy, Attempt: held.Attempt, Fence: held.Fence,
		})
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"read a record", func() error { return s.probeReads(ctx, node, id) }},
		{"claim", claim},
		{"claim again", claim},
		{"wait for a claim", claims(waiter, store.InProgress)},
		{"renew", func() error {
			got, err := s.Renew(ctx, []store.RenewRequest{{ID: id, Owner: r.Owner, Lease: probeTime}})
			if err == nil && got[0] != store.Renewed {
				return misconfigured("the answer is %v, want %v", got[0], store.Renewed)
			}
			return err
		}},
		{"inspect", func() error { _, err := s.Inspect(ctx, id); return err }},
		{"release", func() error { return s.Release(ctx, id, r.Owner) }},
		{"claim after the release", claim},
		{"mark an outcome as unknown", func() error {
			return s.Unknown(ctx, store.UnknownRequest{ID: id, Owner: r.Owner, Reason: "probe"})
		}},
		{"resolve it", resolve(0)},
		{"claim after that", claim},
		{"complete", complete},
		{"complete again", complete},
		{"replay", claims(r, store.Completed)},
		{"forget a completed record", resolve(store.StateCompleted)},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("trying to %s on %s: %w", step.name, node.Options().Addr, err)
		}
	}
	return nil
}

// probeReads tries the commands that do not write, before any claim: a claim that is
// refused halfway has written already, and a write that is not confirmed does not say
// whether the server refuses to wait.
func (s *Store) probeReads(ctx context.Context, node *redis.Client, id store.ID) error {
	err := node.PExpireTime(ctx, s.key(id)).Err()
	if err == nil && !s.noCombining {
		err = node.GetRange(ctx, s.key(id), 0, 0).Err()
	}
	if err != nil {
		return readError(err)
	}
	if s.durability.level != async {
		if err := s.probeWait(ctx, node); err != nil {
			return err
		}
	}
	_, err = s.Inspect(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// probeWait asks the server to wait for its replicas. However it refuses that, it cannot
// keep the durability, unless it is known to be unable only now.
func (s *Store) probeWait(ctx context.Context, node *redis.Client) error {
	wait := s.durability.command(ctx, minAckTimeout)
	err := node.Process(ctx, wait)
	var answer redis.Error
	switch class := classify(err).class; {
	case err == nil:
		return nil
	case errors.As(err, &answer) && errors.Is(class, store.ErrUnknown):
		return fail(store.ErrMisconfigured, err)
	default:
		return fail(class, err)
	}
}

// idAt returns a new ID whose key is at node.
func (s *Store) idAt(ctx context.Context, node *redis.Client) (id store.ID, err error) {
	const tries = 1 << 20 // one of many nodes may have few slots
	for range tries {
		_, _ = rand.Read(id[:]) // never returns an error
		at, err := s.serverFor(ctx, s.key(id))
		if err != nil {
			return id, readError(err)
		}
		if at == node {
			return id, nil
		}
	}
	return id, misconfigured("%s has no slots of the cluster", node.Options().Addr)
}
