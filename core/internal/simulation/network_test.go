package simulation

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// dice are the chances of one actor of a simulation. They are safe for concurrent use.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed, actor uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, actor))} }

// percent reports true n times in a hundred.
func (d *dice) percent(n int) bool { return d.below(100) < n }

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// upTo returns a duration from 0 to most.
func (d *dice) upTo(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(most) + 1))
}

// network is the way of one process to the store: slow, lossy, and closed while the
// process is paused.
// Requests and replies are lost in silence, as they are on a real one, and a request that
// is late arrives after its sender gave it up.
type network struct {
	store.Store
	seed   uint64        // of this process
	faulty *atomic.Bool  // shared: whether anything is lost at all
	lost   *atomic.Int64 // shared: the lost messages
	dead   chan struct{} // closed when the process is

	mu     sync.Mutex
	paused time.Time // the process is stopped until then
	late   sync.WaitGroup
}

// pause stops the process for d: its next action comes after awake.
func (n *network) pause(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paused = time.Now().Add(d)
}

// pauseLeft returns how long the process is still paused.
func (n *network) pauseLeft() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(time.Until(n.paused), 0)
}

// awake returns when the process is not paused, or is dead. No deadline ends the wait: a
// process that does not run does not notice one. Those who wait go on one after another,
// in an order that the dice decide.
func (n *network) awake(d *dice) {
	for left := n.pauseLeft(); left > 0; left = n.pauseLeft() {
		select {
		case <-time.After(left + d.upTo(10*time.Millisecond)):
		case <-n.dead:
			return
		}
	}
}

// isDead reports whether the process crashed.
func (n *network) isDead() bool {
	select {
	case <-n.dead:
		return true
	default:
		return false
	}
}

// pass waits for d, and reports false when ctx ends or the process dies before.
func (n *network) pass(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-n.dead:
	}
	return false
}

// lose waits until the caller gives up or, every other time, until the connection is
// reset.
func (n *network) lose(ctx context.Context, d *dice) error {
	n.lost.Add(1)
	var reset <-chan time.Time
	if d.percent(50) {
		timer := time.NewTimer(d.upTo(100 * time.Millisecond))
		defer timer.Stop()
		reset = timer.C
	}
	select {
	case <-reset:
	case <-ctx.Done():
	case <-n.dead:
	}
	return fmt.Errorf("%w: lost", store.ErrUnknown)
}

// of returns the dice of a call. They follow from the call and its instant, so that calls
// of one instant may come in any order.
func (n *network) of(kind byte, ids ...store.ID) *dice {
	call := uint64(kind) << 56
	for _, id := range ids {
		call ^= binary.BigEndian.Uint64(id[:])
	}
	return newDice(n.seed^call, uint64(time.Now().UnixNano()))
}

// send takes one request to the store and its reply back.
func (n *network) send(ctx context.Context, d *dice, do func(context.Context)) error {
	n.awake(d)
	if !n.pass(ctx, d.upTo(50*time.Millisecond)) {
		return fmt.Errorf("%w: not sent", store.ErrUnavailable)
	}
	faulty, chance := n.faulty.Load(), d.below(100)
	switch {
	case faulty && chance < 5:
		return n.lose(ctx, d)
	case faulty && chance < 10:
		delay := d.upTo(2 * budget)
		n.late.Go(func() {
			inTime(delay)
			do(context.WithoutCancel(ctx))
		})
		return n.lose(ctx, d)
	}
	do(context.WithoutCancel(ctx))
	if faulty && chance < 15 {
		return n.lose(ctx, d)
	}
	if !n.pass(ctx, d.upTo(50*time.Millisecond)) {
		return fmt.Errorf("%w: no reply in time", store.ErrUnknown)
	}
	return nil
}

// sent makes a call over n, and forgets its result where the reply is lost. The process
// looks at the result, or at the time, when it is awake.
func sent[T any](ctx context.Context, n *network, d *dice, do func(context.Context) (T, error)) (T, error) {
	type reply struct {
		value T
		err   error
	}
	replies := make(chan reply, 1)
	defer n.awake(d)
	if err := n.send(ctx, d, func(ctx context.Context) {
		value, err := do(ctx)
		replies <- reply{value, err}
	}); err != nil {
		var zero T
		return zero, err
	}
	got := <-replies
	return got.value, got.err
}

func (n *network) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	return sent(ctx, n, n.of('c', r.ID), func(ctx context.Context) (store.ClaimResult, error) { return n.Store.Claim(ctx, r) })
}

func (n *network) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	ids := make([]store.ID, len(rs))
	for i := range rs {
		ids[i] = rs[i].ID
	}
	return sent(ctx, n, n.of('r', ids...), func(ctx context.Context) ([]store.RenewStatus, error) { return n.Store.Renew(ctx, rs) })
}

func (n *network) Complete(ctx context.Context, r store.CompleteRequest) error {
	_, err := sent(ctx, n, n.of('e', r.ID), func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Store.Complete(ctx, r) })
	return err
}

func (n *network) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	_, err := sent(ctx, n, n.of('f', id), func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Store.Release(ctx, id, owner) })
	return err
}

func (n *network) Unknown(ctx context.Context, r store.UnknownRequest) error {
	_, err := sent(ctx, n, n.of('u', r.ID), func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Store.Unknown(ctx, r) })
	return err
}
