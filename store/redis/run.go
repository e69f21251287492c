package repriseredis

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// A command that failed because of a broken connection or a failover is repeated this
// often, after pauses that start at firstPause and grow fourfold. Longer outages are left
// to the caller, who knows how much time is left.
const (
	repeats    = 3
	firstPause = 8 * time.Millisecond
)

// errUnexpected is the failure of a command whose answer is not one of its script.
var errUnexpected = errors.New("unexpected answer")

// run sends commands until each of them has an answer or has failed, and leaves the
// answers and failures in the commands. It overwrites the slice.
func (s *Store) run(ctx context.Context, open []*command) {
	if err := ctx.Err(); err != nil {
		for _, c := range open {
			c.err = fail(store.ErrUnavailable, err) // it was not sent
		}
		return
	}
	for attempt := 0; ; {
		stamp(open)
		s.send(ctx, open)
		var transient bool
		open, transient = s.evaluateAll(ctx, open)
		if len(open) == 0 {
			return
		}
		if !transient {
			continue // the next attempt differs: a script or its source, or another key
		}
		if attempt == repeats || !pause(ctx, attempt) {
			return
		}
		attempt++
		s.refresh(ctx)
	}
}

// runOne is run for one command. It returns the answer, which is never empty.
func (s *Store) runOne(ctx context.Context, c *command) ([]byte, error) {
	c.alone[0] = c
	s.run(ctx, c.alone[:])
	return c.reply(), c.err
}

// send makes one attempt. Each command carries its error.
func (s *Store) send(ctx context.Context, open []*command) {
	if len(open) == 1 && s.mayPipeline(open[0]) {
		if node, err := s.nodeFor(ctx, open[0].key); err == nil {
			s.sendPipelined(ctx, node, open)
			return
		}
	}
	s.sendByClient(ctx, open)
}

// sendByClient makes one attempt through the client.
func (s *Store) sendByClient(ctx context.Context, open []*command) {
	if len(open) == 1 && s.combiner.combines(open[0]) {
		s.combiner.send(ctx, open[0])
		return
	}
	if confirm := s.transmit(ctx, open); confirm != nil {
		confirm()
	}
	for _, c := range open {
		if s.lacksConnection(c.sendErr) {
			c.sendErr = exhausted{c.sendErr}
		}
	}
}

// transmit sends commands together, in one pipeline for each node. It returns what
// sendByNode returns.
func (s *Store) transmit(ctx context.Context, open []*command) (confirm func()) {
	if len(open) == 1 && open[0].tail == nil && !s.durable(open) {
		_ = s.client.Process(ctx, open[0])
		return nil
	}
	return s.sendByNode(ctx, open)
}

// lacksConnection reports whether the context of a call ended while the call waited for a
// connection of the client's pool. The client then returns the bare error of the context;
// for a command that was sent, and for a failed dial, it returns the error of the
// connection. It also returns the bare error when a new connection takes too long, but
// then the pool is not full.
func (s *Store) lacksConnection(err error) bool {
	if err != context.DeadlineExceeded && err != context.Canceled { //nolint:errorlint // a wrapped one may be of a connection
		return false
	}
	size := 0
	switch client := s.client.(type) {
	case *redis.Client:
		size = client.Options().PoolSize
	case *redis.ClusterClient:
		size = client.Options().PoolSize // of each node
	}
	return size > 0 && s.Usage()[0].Used >= int64(size)
}

// evaluateAll evaluates the last attempt of each command, and returns the commands to
// send again and whether one of them needs a pause before.
func (s *Store) evaluateAll(ctx context.Context, open []*command) (rest []*command, transient bool) {
	rest = open[:0]
	for _, c := range open {
		again, wait := s.evaluate(ctx, c)
		if again {
			rest = append(rest, c)
			transient = transient || wait
		}
	}
	return rest, transient
}

// evaluate returns the meaning of the last attempt of c, whether to make another one, and
// whether that needs a pause.
func (s *Store) evaluate(ctx context.Context, c *command) (again, wait bool) {
	if c.claim != nil {
		switch c.decide() {
		case decided:
			return false, false
		case undecided:
			c.rewind()
			c.useScript(ctx)
			return true, false
		case unread:
			c.rewind()
			c.viaClient = true
			return true, false
		case failed:
		}
	}
	if c.sendErr == nil {
		if answer := c.reply(); !c.bothKeys && len(answer) == 1 && answer[0] == record.TagBothKeys {
			c.bothKeys = true
			args := c.Args()[4:]
			c.rewind()
			c.callScript(ctx, args...)
			return true, false
		}
		c.err = c.refusal()
		return false, false
	}
	f := classify(c.sendErr)
	if f.unknownScript && c.args[0] == "eval" {
		f = failure{class: store.ErrUnknown} // it got the source: the server is broken
	}
	if f.moved && !s.options.clusterClient {
		f = failure{class: store.ErrMisconfigured} // a client of a single server is connected to a cluster
	}
	if c.uncertain && !errors.Is(f.class, store.ErrCorrupt) {
		f.class = store.ErrUnknown // an earlier attempt may have been executed
	}
	c.uncertain = errors.Is(f.class, store.ErrUnknown)
	c.err = fail(f.class, c.sendErr)
	c.noteRedirect(c.sendErr)
	if f.again {
		c.rewind()
	}
	if f.unknownScript {
		c.withSource()
	}
	return f.again, !f.unknownScript
}

// refusal returns why an answer cannot be used, and nil when it can.
func (c *command) refusal() error {
	answer := c.reply()
	switch {
	case len(answer) == 0:
		return fail(store.ErrUnknown, errUnexpected)
	case answer[0] == record.TagCorrupt:
		return errUnreadable
	case record.Wrote(answer[0]):
		return c.ackErr
	default:
		return nil
	}
}

// rewind prepares c for another attempt. c.err stays until there is an answer.
func (c *command) rewind() {
	c.first, c.granted, c.partial = nil, false, false
	c.SetErr(nil)
	c.SetVal("")
	c.ackErr = nil
	if c.tail != nil {
		c.tail.SetErr(nil)
		c.tail.SetVal(0)
	}
}

// pause waits before the next attempt, and reports false when ctx ended first.
func pause(ctx context.Context, attempt int) bool {
	d := firstPause << (2 * attempt)
	timer := time.NewTimer(d/2 + rand.N(d)) //nolint:gosec // jitter, not a secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refresh makes a cluster client look up its nodes again, in the background, because one
// of them may have been replaced.
func (s *Store) refresh(ctx context.Context) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}
