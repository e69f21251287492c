package repriseredis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
)

// probe tries every command and script once at each primary.
func (s *Store) probe(ctx context.Context) error {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		id, err := s.idAt(ctx, node)
		if err == nil {
			err = s.probeReads(ctx, node, id)
		}
		if err != nil {
			return fmt.Errorf("trying to read a record on %s: %w", node.Options().Addr, err)
		}
		err = (&probe.Probe{
			Name: "redis", ID: id, Store: s, Rival: s,
			Read:   func(ctx context.Context, id store.ID) error { _, err := s.Inspect(ctx, id); return err },
			Delete: s.forget,
		}).Run(ctx)
		if err != nil {
			return fmt.Errorf("%w (on %s)", err, node.Options().Addr)
		}
	}
	return nil
}

// forget deletes the record of a probe.
func (s *Store) forget(ctx context.Context, id store.ID) error {
	r, err := s.Inspect(ctx, id)
	if err != nil {
		return err
	}
	return s.Resolve(ctx, id, store.Resolution{State: r.State, Fence: r.Fence, Forget: true})
}

// probeReads tries the commands that do not write, before any claim: a claim that is
// refused halfway has written already, and a write that is not confirmed does not say
// whether the server refuses to wait. An answer that is no known failure refuses, too.
func (s *Store) probeReads(ctx context.Context, node *redis.Client, id store.ID) error {
	commands := []*redis.Cmd{redis.NewCmd(ctx, argExpiry, s.key(id))}
	if !s.config.NoCombining {
		commands = append(commands, redis.NewCmd(ctx, argRange, s.key(id), 0, 0))
	}
	if s.config.Durability.level != async {
		commands = append(commands, s.config.Durability.command(ctx, minAckTimeout))
	}
	for _, c := range commands {
		err := node.Process(ctx, c)
		var answer redis.Error
		switch {
		case err == nil:
		case errors.As(err, &answer) && errors.Is(classify(err).class, store.ErrUnknown):
			return fail(store.ErrMisconfigured, err)
		default:
			return readError(err)
		}
	}
	_, err := s.Inspect(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
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
			return id, readError(err)
		}
		if at == node {
			return id, nil
		}
	}
	return id, misconfigured("%s has no slots of the cluster", node.Options().Addr)
}
