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

// effects is a store that gives every handler a transaction, without a database: the
// effect of a run is committed with its completion.
type effects struct {
	*memstore.Store

	committed atomic.Int64
}

// Transacts implements [store.Transactor].
func (s *effects) Transacts() error { return nil }

// Transaction implements [store.Transactor].
func (s *effects) Transaction(ctx context.Context, _ store.ID, _ store.Owner) (context.Context, store.Transaction) {
	return ctx, transaction{s}
}

// transaction is that of a run, which has begun.
type transaction struct{ *effects }

// Close implements [store.Transaction].
func (transaction) Close() bool { return true }

// Commit implements [store.Transaction].
func (t transaction) Commit(ctx context.Context, r store.CompleteRequest) error {
	err := t.Complete(ctx, r)
	if err == nil {
		t.committed.Add(1)
	}
	return err
}

// Rollback implements [store.Transaction].
func (transaction) Rollback(context.Context) error { return nil }

// guards are the guards of one client, by policy.
type guards struct {
	by      map[Policy]*protocol.Guard
	effects *effects
}

// openGuards opens guards over new stores.
func openGuards() (*guards, error) {
	g := &guards{by: map[Policy]*protocol.Guard{}, effects: &effects{Store: memstore.New()}}
	for policy, st := range map[Policy]store.Store{Leased: memstore.New(), AtMostOnce: memstore.New(), Transactional: g.effects} {
		cfg := protocol.Config{Transactional: policy == Transactional, Limits: protocol.Limits{ResponseBody: BodyLimit}, Engine: reprise.Config{MaxRun: time.Hour, Log: slog.New(slog.DiscardHandler)}}
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
