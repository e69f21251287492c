package repriseredis

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

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

// run sends commands until each of them has an answer or has failed, and leaves the
// answers and failures in the commands. It overwrites the slice.
func (s *Store) run(ctx context.Context, open []*command) {
	if err := ctx.Err(); err != nil {
		for _, c := range open {
			c.err = fail(store.ErrUnavailable, err) // it was not sent
		}
		return
	}
	// A claim may not write at all, and a replay must not wait for a replica that is away.
	// So a claim asks for the confirmation only when it has been granted, by a repetition:
	// WAIT confirms only the writes of its connection.
	for _, c := range open {
		c.confirm = s.confirms(c) && c.script != record.ClaimScript
	}
	for attempt := 0; len(open) > 0; {
		if err := s.send(ctx, open); err != nil {
			class := classify(err).class
			if open[0].uncertain {
				class = store.ErrUnknown // an earlier attempt may have been executed
			}
			open[0].err = fail(class, err)
			return
		}
		rest, transient := open[:0], false
		for _, c := range open {
			if again, wait := s.evaluate(c); again {
				rest = append(rest, c)
				transient = transient || wait
			}
		}
		if open = rest; !transient {
			continue // the next attempt differs: a script or its source, or another key
		}
		if attempt == repeats || !pause(ctx, attempt) {
			return
		}
		attempt++
		if s.cluster != nil {
			s.cluster.ReloadState(ctx) // in the background: one of its nodes may have been replaced
		}
	}
}

// runOne is run for one command. It returns the answer, which is never empty.
func (s *Store) runOne(ctx context.Context, c *command) ([]byte, error) {
	c.alone[0] = c
	if s.run(ctx, c.alone[:]); c.err != nil {
		return nil, c.err // a batch may still use the answer
	}
	return c.reply(), nil
}

// runScript is runOne for a call of a script: see callScript.
func (s *Store) runScript(ctx context.Context, c *command, args ...any) ([]byte, error) {
	c.callScript(args...)
	return s.runOne(ctx, c)
}

// runAll is run for n commands, which prepare makes calls.
func (s *Store) runAll(ctx context.Context, n int, prepare func(c *command, i int)) []command {
	commands := make([]command, n)
	open := make([]*command, n)
	for i := range commands {
		open[i] = &commands[i]
		prepare(open[i], i)
	}
	s.run(ctx, open)
	return commands
}

// evaluate returns the meaning of the last attempt of c, whether to make another one, and
// whether that needs a pause.
func (s *Store) evaluate(c *command) (again, wait bool) {
	if c.claim != nil {
		switch {
		case c.sendErr == nil && c.decide():
			return c.claim.result.Outcome == store.Claimed && s.repeatConfirmed(c), false
		case c.sendErr == nil, refusesWrites(c.sendErr): // there may be something to replay
			c.useScript()
			return true, false
		}
	}
	if c.sendErr == nil {
		if answer := c.reply(); !c.bothKeys && len(answer) == 1 && answer[0] == record.TagBothKeys {
			args := c.args
			c.bothKeys = true
			c.callScript(args[4:c.n]...)
			return true, false
		}
		c.err = c.refusal()
		return c.err == nil && c.reply()[0] == record.TagClaimed && s.repeatConfirmed(c), false
	}
	f := classify(c.sendErr)
	if f.unknownScript && c.args[0] == "eval" {
		f = failure{class: store.ErrUnknown} // it got the source: the server is broken
	}
	if c.noteRedirect(c.sendErr) && s.cluster == nil {
		f = misconfigures // a client of a single server is connected to a cluster
	}
	if c.uncertain && !errors.Is(f.class, store.ErrCorrupt) {
		f.class = store.ErrUnknown // an earlier attempt may have been executed
	}
	c.uncertain = errors.Is(f.class, store.ErrUnknown)
	c.err = fail(f.class, c.sendErr)
	if f.unknownScript {
		c.args[0], c.args[1] = "eval", c.script.Source
	}
	return f.again, !f.unknownScript
}

// refusal returns why an answer cannot be used, and nil when it can.
func (c *command) refusal() error {
	answer := c.reply()
	switch {
	case len(answer) == 0:
		return errUnexpected
	case answer[0] == record.TagCorrupt:
		return errUnreadable
	case !c.script.Answers(answer[0]):
		return errUnexpected
	case answer[0] == record.TagLost:
		return store.ErrLeaseLost
	case record.Wrote(answer[0]):
		return c.ackErr
	default:
		return nil
	}
}

// pause waits before the next attempt, and reports false when ctx ended first.
func pause(ctx context.Context, attempt int) bool {
	d := firstPause << (2 * attempt)
	select {
	case <-time.After(d/2 + rand.N(d)): //nolint:gosec // jitter, not a secret
		return true
	case <-ctx.Done():
		return false
	}
}

// confirms reports whether the writes of c have to be confirmed. A release that is lost
// is a claim that lapses.
func (s *Store) confirms(c *command) bool {
	return s.config.Durability.level != async && c.script != record.ReleaseScript && c.script != record.InspectScript
}

// repeatConfirmed makes c the confirmed repetition of a claim that was granted, and
// reports whether there has to be one.
func (s *Store) repeatConfirmed(c *command) bool {
	if c.confirm || !s.confirms(c) {
		return false
	}
	c.confirm, c.uncertain = true, true // it was executed
	c.useScript()
	return true
}
