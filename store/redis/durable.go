package repriseredis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// confirms reports whether the writes of c have to be confirmed. A release that is lost
// is a claim that lapses.
func (s *Store) confirms(c *command) bool {
	return s.durability.level != async && c.script != record.ReleaseScript && c.script != record.InspectScript
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

// command returns the command that waits for the confirmation that d asks for: at most
// for timeout, and for less than is left of ctx, so that the caller still learns that the
// write was not confirmed.
func (d Durability) command(ctx context.Context, timeout time.Duration) *redis.Cmd {
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)*3/4)
	}
	ms := max(timeout, time.Millisecond).Milliseconds() // zero would wait for ever
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
