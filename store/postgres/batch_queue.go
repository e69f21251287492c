package reprisepg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
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

	// mostCalls bounds the calls of a batch, because a failure of one undoes all.
	mostCalls = 64

	// largestCombined is the largest payload of a call in a batch. The function claims
	// has the same limit for the payloads that it returns.
	largestCombined = 64 << 10

	// leastPatience is how long a batch may hang, as one of a single call that waits for a
	// row, before another gets its lane, and what a call must have left to wait for a lane.
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
// again, alone in a statement.
var errAlone = fmt.Errorf("%w: the call needs a statement of its own", store.ErrBusy)

// newQueue returns the queue of t.
func newQueue(t *table) *batching.Queue[queuedCall] {
	t.maxUncombined = fewCalls
	lanes := mostLanes
	if _, limit := t.db.use(); limit > 0 {
		t.maxUncombined = max(1, min(t.maxUncombined, int64(limit/2)))
		lanes = max(1, min(lanes, limit/2))
	}
	return batching.New(batching.Config[queuedCall]{
		Send: t.sendQueued, Lanes: lanes, PerLane: perLane,
		MaxCalls: mostCalls, Patience: leastPatience,
	})
}

// Claim implements [sqlstore.Own]: it claims r alone or in a batch.
func (t *table) Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	defer t.active.Add(-1)
	if t.active.Add(1) <= t.maxUncombined {
		return t.ClaimAlone(ctx, r)
	}
	call := t.queue.Call()
	defer call.Release()
	call.Value.completes, call.Value.claim, call.Size = false, *r, 0
	err := t.queue.Do(ctx, call)
	switch {
	case errors.Is(err, errAlone):
		return t.ClaimAlone(ctx, r)
	case err != nil:
		return store.ClaimResult{}, t.Dialect.QueueError("claim", err)
	}
	result := call.Value.result
	call.Value.result = store.ClaimResult{} // the payload is the caller's
	return result, nil
}

// Complete implements [sqlstore.Own]: it completes r alone or in a batch.
func (t *table) Complete(ctx context.Context, r *store.CompleteRequest) error {
	defer t.active.Add(-1)
	if t.active.Add(1) <= t.maxUncombined || len(r.Payload) > largestCombined {
		return t.CompleteAlone(ctx, r)
	}
	call := t.queue.Call()
	defer call.Release()
	v := &call.Value
	v.completes, v.complete, call.Size = true, *r, len(r.Payload)
	v.payload = append(v.payload[:0], r.Payload...)
	v.complete.Payload = v.payload
	err := t.queue.Do(ctx, call)
	if errors.Is(err, errAlone) {
		return t.CompleteAlone(ctx, r)
	}
	return t.Dialect.QueueError("complete", err)
}

// sendQueued sends a batch of the queue in one round trip, which is one transaction. A
// batch of one is an ordinary call.
func (t *table) sendQueued(ctx context.Context, batch []batching.Sent[queuedCall]) {
	if len(batch) == 1 {
		v := batch[0].Value()
		var err error
		if v.completes {
			err = t.CompleteAlone(ctx, &v.complete)
		} else {
			v.result, err = t.ClaimAlone(ctx, &v.claim)
		}
		batch[0].Finish(err)
		return
	}
	b := newCallBatch(batch)
	b.finish(t.sendBatch(ctx, b))
}

// sendBatch sends a batch. If it returns nil, every call has its answer or needs a
// separate statement.
func (t *table) sendBatch(ctx context.Context, b *callBatch) error {
	return t.Write(ctx, "batch", func(ctx context.Context, on sqlstore.Conn) error {
		err := connectionOf(on).send(ctx, func() []statementCall { return b.statements(&t.statements, t.Recent.Common()) })
		var serverErr *pgconn.PgError
		if errors.As(err, &serverErr) && undone(serverErr) && serverErr.Code != codeReadOnly { // one of them may have caused it
			return errAlone
		}
		return t.Dialect.Executed(err)
	})
}
