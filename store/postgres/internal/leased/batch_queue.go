package leased

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Limits of batches.
const (
	// fewCalls is how many calls may be on their way at once before calls are combined: a
	// batch of so few would cost the server as much, and make callers wait for each other.
	// Each call needs a connection, so the limit is at most half of the pool.
	fewCalls = 8

	// mostLanes bounds the batches that are on their way at once, as does half of the pool.
	// Fewer lanes make larger batches, which cost less.
	mostLanes = 2

	// perLane is how many calls have to wait for each busy lane before another lane is used.
	perLane = 8

	// mostCalls bounds the calls of a batch. Each may take a lock of the server, which by
	// default has room for 64 per transaction (max_locks_per_transaction).
	mostCalls = 64

	// largestCombined is the largest payload of a call in a batch. The function claims
	// has the same limit for the payloads that it returns.
	largestCombined = 64 << 10

	// leastPatience is how much time a call must have left to wait for a lane.
	leastPatience = 100 * time.Millisecond
)

// queuedCall is a claim or a completion on its way through the queue. It refers to no
// memory of the caller, which may return before the call is sent.
type queuedCall struct {
	completes bool
	claim     store.ClaimRequest
	complete  store.CompleteRequest
	payload   []byte // the memory of complete.Payload

	result store.ClaimResult
}

func (c *queuedCall) id() *store.ID {
	if c.completes {
		return &c.complete.ID
	}
	return &c.claim.ID
}

// errAlone is the result of a call on which its batch had no effect: the caller sends it
// again, in a statement of its own.
var errAlone = errors.New("the call needs a statement of its own")

// newQueue returns the queue of s, or nil where calls are not combined.
func newQueue(s *Store) *batching.Queue[queuedCall] {
	if s.table.Options.NoCombining || s.table.Options.Mode == pgx.QueryExecModeSimpleProtocol {
		return nil
	}
	s.maxUncombined = fewCalls
	lanes := mostLanes
	if limit := s.table.Db.Use().Limit; limit > 0 {
		s.maxUncombined = max(1, min(s.maxUncombined, int64(limit/2)))
		lanes = max(1, min(lanes, limit/2))
	}
	return batching.New(batching.Config[queuedCall]{
		Send: s.sendQueued, Lanes: lanes, PerLane: perLane,
		MaxCalls: mostCalls, Large: largestCombined, Patience: leastPatience,
	})
}

// claimCombined claims r alone or in a batch.
func (s *Store) claimCombined(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	defer s.active.Add(-1)
	if s.active.Add(1) <= s.maxUncombined {
		return s.claimAlone(ctx, r)
	}
	call := s.queue.Call()
	defer call.Release()
	call.Value.completes, call.Value.claim, call.Size = false, *r, 0
	err := s.queue.Do(ctx, call)
	switch {
	case errors.Is(err, errAlone):
		return s.claimAlone(ctx, r)
	case err != nil:
		return store.ClaimResult{}, queueError("claim", err)
	}
	result := call.Value.result
	call.Value.result = store.ClaimResult{} // the payload is the caller's
	return result, nil
}

// completeCombined completes r alone or in a batch.
func (s *Store) completeCombined(ctx context.Context, r *store.CompleteRequest) error {
	defer s.active.Add(-1)
	if s.active.Add(1) <= s.maxUncombined || len(r.Payload) > largestCombined {
		return s.table.Complete(ctx, r)
	}
	call := s.queue.Call()
	defer call.Release()
	v := &call.Value
	v.completes, v.complete, call.Size = true, *r, len(r.Payload)
	v.payload = append(v.payload[:0], r.Payload...)
	v.complete.Payload = v.payload
	err := s.queue.Do(ctx, call)
	if errors.Is(err, errAlone) {
		return s.table.Complete(ctx, r)
	}
	return queueError("complete", err)
}

// queueError returns the store's error for a call that the queue ended. Other errors are
// returned as they are.
func queueError(op string, err error) error {
	var ended *batching.Error
	if !errors.As(err, &ended) {
		return err
	}
	sentinel := store.ErrUnavailable
	switch {
	case ended.Sent:
		sentinel = store.ErrUnknown
	case errors.Is(ended, context.DeadlineExceeded), errors.Is(ended, context.Canceled): // it waited for a lane
		sentinel = store.ErrBusy
	}
	return fmt.Errorf("%w: postgres: %s: %s", sentinel, op, ended.Error())
}

// sendQueued sends a batch of the queue in one round trip, which is one transaction. A
// batch of one is an ordinary call.
func (s *Store) sendQueued(ctx context.Context, batch []batching.Sent[queuedCall]) {
	if len(batch) == 1 {
		v := batch[0].Value()
		var err error
		if v.completes {
			err = s.table.Complete(ctx, &v.complete)
		} else {
			v.result, err = s.claimAlone(ctx, &v.claim)
		}
		batch[0].Finish(err)
		return
	}
	b := newCallBatch(batch)
	defer b.release()
	b.finish(s.sendBatch(ctx, b))
}

// sendBatch sends a batch. If it returns nil, every call has its answer or needs a
// statement of its own.
func (s *Store) sendBatch(ctx context.Context, b *callBatch) error {
	session, err := s.table.Db.Acquire(ctx, "batch")
	if err != nil {
		return err
	}
	defer session.Release()
	return session.Do(func(conn *pgx.Conn) error {
		wire.Unconfirmed(conn) // forget the mark of earlier statements
		prepared := s.table.Sender.On(conn) == wire.Prepared
		err := wire.Send(ctx, conn, prepared, b.statements(&s.statements, s.recent.ReplaysCommon())...)
		if prepared && wire.NotPrepared(err) {
			s.table.Sender.Lost(ctx, conn, err)
			err = wire.Send(ctx, conn, false, b.statements(&s.statements, s.recent.ReplaysCommon())...)
		}
		var serverErr *pgconn.PgError
		switch {
		case wire.Unconfirmed(conn): // one transaction: it concerns every call
			return table.NotReplicated("batch")
		case errors.As(err, &serverErr) && wire.Undone(serverErr): // one of them may have caused it
			return errAlone
		case err != nil:
			return wire.Fail("batch", err)
		}
		return nil
	})
}
