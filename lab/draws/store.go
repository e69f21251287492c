package draws

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// atomicStore is a transactional store without a database: the effect of a run is
// committed with its completion.
type atomicStore struct {
	*memstore.Store

	committed atomic.Int64
}

var _ store.ContextBinder = (*atomicStore)(nil)

// Bind implements [store.ContextBinder].
func (s *atomicStore) Bind(ctx context.Context, _ store.ID, _ store.Owner) context.Context {
	return ctx
}

// Atomic implements [store.ContextBinder].
func (s *atomicStore) Atomic() bool { return true }

// Claim implements [store.Store].
func (s *atomicStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	result, err := s.Store.Claim(ctx, r)
	result.Atomic = result.Outcome == store.Claimed
	return result, err
}

// Complete implements [store.Store].
func (s *atomicStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	err := s.Store.Complete(ctx, r)
	if err == nil && !r.DiscardEffects {
		s.committed.Add(1)
	}
	return err
}

// guards are the guards of one client, by policy.
type guards struct {
	by     map[Policy]*protocol.Guard
	atomic *atomicStore
}

// openGuards opens guards over new stores.
func openGuards() (*guards, error) {
	g := &guards{by: map[Policy]*protocol.Guard{}, atomic: &atomicStore{Store: memstore.New()}}
	for policy, st := range map[Policy]store.Store{Leased: memstore.New(), AtMostOnce: memstore.New(), Transactional: g.atomic} {
		cfg := protocol.Config{Limits: protocol.Limits{ResponseBody: BodyLimit}, Engine: reprise.Config{MaxRun: time.Hour, Log: slog.New(slog.DiscardHandler)}}
		if policy == AtMostOnce {
			cfg.Preset = reprise.AtMostOnce
		}
		guard, err := protocol.New(st, cfg)
		if err != nil {
			return nil, err
		}
		g.by[policy] = guard
	}
	return g, nil
}

// close drains the guards.
func (g *guards) close(ctx context.Context) error {
	for _, guard := range g.by {
		if err := guard.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}
