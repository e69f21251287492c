package repriseredis

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// A command that a broken connection or a server in transition kept from being executed is repeated this often, after pauses
// that start at firstPause and grow fourfold. What takes longer is the business of the caller, who knows the budget.
const (
	repeats    = 3
	firstPause = 8 * time.Millisecond
)

// errOdd is the failure of a command whose answer is none that a script gives.
var errOdd = errors.New("unexpected answer")

// run sends commands until each of them has an answer or has failed; the answers and failures are in the commands.
// It uses up the slice.
func (s *Store) run(ctx context.Context, open []*command) {
	if err := ctx.Err(); err != nil {
		for _, c := range open {
			c.err = fail(reprise.ErrUnavailable, err) // nothing was sent
		}
		return
	}
	for attempt := 0; ; {
		s.send(ctx, open)
		var transient bool
		open, transient = s.sift(open)
		if len(open) == 0 {
			return
		}
		if !transient {
			continue // a script that is not known was refused; with its source it is not
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
	if len(open) == 1 && s.combiner.takes(open[0]) {
		s.combiner.send(ctx, open)
		return
	}
	s.transmit(ctx, open)
}

// transmit sends commands together, in one pipeline for each node.
func (s *Store) transmit(ctx context.Context, open []*command) {
	if len(open) == 1 && !s.durable(open) {
		_ = s.client.Process(ctx, open[0])
		return
	}
	s.sendByNode(ctx, open)
}

// sift settles each command after an attempt, and returns those to send again and whether one of them needs a pause before.
func (s *Store) sift(open []*command) (rest []*command, transient bool) {
	rest = open[:0]
	for _, c := range open {
		again, wait := s.settle(c)
		if again {
			rest = append(rest, c)
			transient = transient || wait
		}
	}
	return rest, transient
}

// settle decides what the last attempt of c means, whether there has to be another one, and whether that has to wait.
func (s *Store) settle(c *command) (again, wait bool) {
	err := c.Err()
	if err == nil {
		c.err = c.refusal()
		return false, false
	}
	v := judge(err)
	if v.unknownScript && c.args[0] == "eval" {
		v = verdict{class: reprise.ErrUnknown} // no server says so of a source
	}
	if v.moved && !s.options.clusterClient {
		v = verdict{class: reprise.ErrMisconfigured} // a cluster, and the client does not know
	}
	if c.uncertain && !errors.Is(v.class, reprise.ErrMisconfigured) && !errors.Is(v.class, reprise.ErrCorrupt) {
		v.class = reprise.ErrUnknown // an earlier attempt may have been executed
	}
	c.uncertain = errors.Is(v.class, reprise.ErrUnknown)
	c.err = fail(v.class, err)
	c.follow(err)
	if v.again {
		c.rewind()
	}
	if v.unknownScript {
		c.withSource()
	}
	return v.again, !v.unknownScript
}

// refusal returns why an answer is not one to rely on, and nil when it is.
func (c *command) refusal() error {
	answer := c.reply()
	switch {
	case len(answer) == 0:
		return fail(reprise.ErrUnknown, errOdd)
	case answer[0] == tagCorrupt:
		return fail(reprise.ErrCorrupt, errLayout)
	case wrote(answer[0]):
		return c.acks
	default:
		return nil
	}
}

// rewind makes c ready for another attempt. Its failure stays until there is an answer.
func (c *command) rewind() {
	c.SetErr(nil)
	c.SetVal("")
	c.acks = nil
}

// pause waits before the next attempt, and reports false when ctx ended first.
func pause(ctx context.Context, attempt int) bool {
	d := firstPause << (2 * attempt)
	timer := time.NewTimer(d/2 + rand.N(d)) //nolint:gosec // spreads load, guards nothing
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refresh makes a cluster client look for the nodes again, in the background of the client: one of them may have been replaced.
func (s *Store) refresh(ctx context.Context) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}
