package transactional

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// This file handles claims that find no free slot.

// claimWithoutSlot answers a claim that needs no slot: a replay, a mismatch, or a
// duplicate of an attempt that runs in another process.
func (s *Store) claimWithoutSlot(ctx context.Context, r store.ClaimRequest) (result store.ClaimResult, done bool, err error) {
	var (
		found table.Seen
		held  bool
		key   = uint64(s.lockKey(r.ID)) //nolint:gosec // its bits
	)
	err = s.table.On(ctx, "claim", func(conn *pgx.Conn) error {
		held = false
		look := s.statements.waiting.Call(func(row *wire.Row) {
			found.ReadAttempt(row)
			held = row.Boolean()
		}, r.ID[:], wire.AppendInt8(nil, int64(key>>32)), wire.AppendInt8(nil, int64(key&0xffffffff)))
		prepared := s.table.Sender.On(conn) == wire.Prepared
		err := wire.Send(ctx, conn, prepared, look)
		if prepared && wire.NotPrepared(err) {
			s.table.Sender.Lost(ctx, conn, err)
			err = wire.Send(ctx, conn, false, look)
		}
		return err
	})
	if err != nil {
		return store.ClaimResult{}, false, err
	}
	result, done, err = s.settle(&found, &r)
	switch {
	case done || err != nil:
		return result, done, err
	case held && s.isUndecided(r.Owner):
		return store.ClaimResult{}, false, nil // the lock may be this owner's
	case held:
		return store.ClaimResult{Outcome: store.InProgress}, true, nil
	}
	return store.ClaimResult{}, false, nil
}

// A claim waits for a slot until the deadline of its caller, or for claimWait if there is
// none, less a tenth of that time, and at least claimReserve, which the claim itself
// needs. After lookAfter it checks whether it needs a slot at all; not earlier, because
// most waits are shorter, and the check costs as much as a claim.
const (
	claimWait    = 2 * time.Second
	claimReserve = 50 * time.Millisecond
	lookAfter    = 10 * time.Millisecond
)

// waitForSlot waits for a slot, or answers a claim that needs none.
func (s *Store) waitForSlot(ctx context.Context, r store.ClaimRequest) (result store.ClaimResult, done bool, err error) {
	start, budget := time.Now(), claimWait
	if deadline, ok := ctx.Deadline(); ok {
		budget = time.Until(deadline)
	}
	place := s.slots.Enqueue()
	if place.Within(min(lookAfter, budget/10)) {
		return store.ClaimResult{}, false, nil
	}
	kept := false
	defer func() { // also when a tracer of the application panics
		if !kept {
			s.slots.Leave(place)
		}
	}()
	result, done, err = s.claimWithoutSlot(ctx, r)
	if done || err != nil {
		return result, done, err
	}
	wait, cancel := context.WithDeadline(ctx, start.Add(budget-max(claimReserve, budget/10)))
	defer cancel()
	kept = true
	if s.slots.Take(wait, place) != nil {
		return store.ClaimResult{}, false, s.noSlot(start)
	}
	return store.ClaimResult{}, false, nil
}

// noSlot is the error of a claim that waited since start.
func (s *Store) noSlot(start time.Time) error {
	return fmt.Errorf("%w: postgres: claim: no transaction available within %v (all %d in use); give the pool more connections or make handlers faster",
		store.ErrBusy, time.Since(start).Round(time.Millisecond), s.slots.Limit)
}
