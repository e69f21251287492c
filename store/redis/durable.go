package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// errBusyConfirming is the cause of [store.ErrNotReplicated] for a write that found no
// free slot to wait in.
var errBusyConfirming = errors.New("too many connections already wait for replicas")

// errNotConfirmed is the error of a write whose confirmation was never requested or never
// came: a hook of the client panicked. It is made once, because every write holds it
// until it is confirmed.
var errNotConfirmed = fail(store.ErrNotReplicated, errors.New("the wait for replicas was aborted"))

// durable reports whether one of the commands may need a confirmation.
func (s *Store) durable(batch []*command) bool {
	return s.durability.level != async && slices.ContainsFunc(batch, func(c *command) bool { return c.wait })
}

// sendDurable sends commands to node, and returns a function that waits until those that
// wrote are confirmed, or nil when none wrote. WAIT has to follow on the connection that
// wrote. Commands that did not write are not waited for: a replay must not wait for a
// replica that is down.
//
// If once is true, node is a client for this attempt only, with its own pool and slots.
func (s *Store) sendDurable(ctx context.Context, node *redis.Client, once bool, batch []*command) (confirm func()) {
	var n *confirmNode
	if once {
		n = newConfirmNode(node)
		n.ready.Store(true) // no other call dials with it
	} else {
		n = s.confirmSlots.of(node)
	}
	if err := n.prepare(ctx, node); err != nil {
		for _, c := range batch {
			c.SetErr(unsent{err})
		}
		return nil
	}
	conn := node.Conn()
	kept := false
	defer func() { // also where a hook of the client panics
		if !kept {
			_ = conn.Close()
		}
	}()
	open := write(ctx, conn, batch)
	if len(open) == 0 {
		return nil
	}
	slots := n.slots
	select {
	case slots <- struct{}{}:
		kept = true
		return func() {
			defer func() { <-slots; _ = conn.Close() }()
			s.confirm(ctx, conn, open)
		}
	default: // return the connection to the pool, so that replays find one
		return func() { s.confirmLater(ctx, node, slots, open) }
	}
}

// confirmLater waits for a slot and then sends the commands again, because WAIT confirms
// only writes of the same connection. A command that its owner repeats writes again.
func (s *Store) confirmLater(ctx context.Context, node *redis.Client, slots chan struct{}, open []*command) {
	timer := time.NewTimer(s.durability.patience(ctx, s.ackTimeout))
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-timer.C:
		for _, c := range open {
			c.confirmed(fail(store.ErrNotReplicated, errBusyConfirming))
		}
		return
	}
	for _, c := range open {
		c.confirmed(nil)
		c.uncertain = true // it was executed
		c.rewind()
		c.useScript(ctx) // a native claim that finds itself does not write
	}
	conn := node.Conn()
	defer func() { _ = conn.Close() }()
	if open = write(ctx, conn, open); len(open) > 0 {
		s.confirm(ctx, conn, open)
	}
}

// confirm waits until the replicas have the writes of conn.
func (s *Store) confirm(ctx context.Context, conn *redis.Conn, open []*command) {
	wait := s.durability.command(ctx, s.ackTimeout)
	_ = conn.Process(ctx, wait)
	err := s.durability.met(wait)
	for _, c := range open {
		c.confirmed(err)
	}
}

// write sends commands through conn, and marks and returns those that wrote and have to
// be confirmed. A command counts as confirmed only after a call of confirmed, even if a
// hook of the client panics here or in the wait.
func write(ctx context.Context, conn *redis.Conn, batch []*command) (open []*command) {
	for _, c := range batch {
		if c.wait {
			c.ackErr = errNotConfirmed
		}
	}
	sendThrough(ctx, conn.Pipeline(), batch)
	for _, c := range batch {
		if c.wait && c.hasWritten() {
			c.unconfirmed = true
			open = append(open, c)
		}
	}
	return open
}

// confirmed ends the wait for the confirmation of c. A nil error means that it came.
func (c *command) confirmed(err error) { c.unconfirmed, c.ackErr = false, err }

// confirmSlots bounds the connections of each node that wait for replicas to half of its
// pool. While a replica is down, each of them waits for the AckTimeout, and replays need
// connections too.
type confirmSlots struct {
	mu     sync.Mutex
	byAddr map[string]*confirmNode
}

// confirmNode is a node whose writes are confirmed.
type confirmNode struct {
	client *redis.Client
	slots  chan struct{} // a semaphore: send to acquire, receive to release

	ready   atomic.Bool   // the client has dialled
	dialing chan struct{} // a mutex that a context can interrupt
}

func newConfirmNode(client *redis.Client) *confirmNode {
	return &confirmNode{
		client:  client,
		slots:   make(chan struct{}, max(client.Options().PoolSize/2, 1)),
		dialing: make(chan struct{}, 1),
	}
}

// of returns the slots of a node. A new client of the same node gets new ones: a cluster
// client may drop a node and later make another client for it, which has not dialled yet.
func (c *confirmSlots) of(node *redis.Client) *confirmNode {
	addr := node.Options().Addr
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byAddr[addr]
	if n == nil || n.client != node {
		n = newConfirmNode(node)
		if c.byAddr == nil {
			c.byAddr = make(map[string]*confirmNode, 1)
		}
		c.byAddr[addr] = n
	}
	return n
}

// prepare makes the client dial once before the first [redis.Client.Conn]. The first dial
// records in the client's options whether the server knows maintenance notifications, and
// the client synchronises only its own dials. A caller waits for the dial of another one
// until its context ends.
func (n *confirmNode) prepare(ctx context.Context, node *redis.Client) error {
	if n.ready.Load() {
		return nil
	}
	select {
	case n.dialing <- struct{}{}:
		defer func() { <-n.dialing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if n.ready.Load() {
		return nil
	}
	err := node.Ping(ctx).Err()
	var answered redis.Error
	if err != nil && !errors.As(err, &answered) {
		return err
	}
	n.ready.Store(true)
	return nil
}

// patience returns how long to wait for a confirmation: at most timeout, and less than is
// left of ctx, so that the caller still learns that the write was not confirmed.
func (d Durability) patience(ctx context.Context, timeout time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)*3/4)
	}
	return max(timeout, time.Millisecond) // zero would wait for ever
}

// command returns the command that waits for the confirmation that d asks for.
func (d Durability) command(ctx context.Context, timeout time.Duration) *redis.Cmd {
	ms := d.patience(ctx, timeout).Milliseconds()
	if d.level == fsynced {
		return redis.NewCmd(ctx, "waitaof", 1, d.replicas, ms)
	}
	return redis.NewCmd(ctx, "wait", d.replicas, ms)
}

// met returns nil when the answer to command confirms the write, and
// [store.ErrNotReplicated] otherwise, also when the server refused to wait: the write has
// happened and has to be undone.
func (d Durability) met(wait *redis.Cmd) error {
	answer, err := wait.Result()
	if err != nil {
		return fail(store.ErrNotReplicated, err)
	}
	local, replicas := int64(1), int64(0)
	switch answer := answer.(type) {
	case int64:
		replicas = answer
	case []any: // WAITAOF: on disk at the primary, and at how many replicas
		if len(answer) == 2 {
			local, _ = answer[0].(int64)
			replicas, _ = answer[1].(int64)
		}
	}
	switch {
	case local < 1:
		return fmt.Errorf("%w: redis: the write was not on the disk of the primary in time", store.ErrNotReplicated)
	case replicas < int64(d.replicas):
		return fmt.Errorf("%w: redis: %d of %d replicas confirmed the write in time", store.ErrNotReplicated, replicas, d.replicas)
	}
	return nil
}
