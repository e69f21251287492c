package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// durable says whether one of the commands has to be confirmed.
func (s *Store) durable(group []*command) bool {
	return s.durability.level != async && slices.ContainsFunc(group, func(c *command) bool { return c.wait })
}

// command returns the command that waits for what d asks, at most timeout and less than is left of ctx: the answer that it was not
// confirmed is worth more than none.
func (d Durability) command(ctx context.Context, timeout time.Duration) *redis.Cmd {
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)*3/4)
	}
	ms := max(timeout.Milliseconds(), 1) // zero would wait for ever
	if d.level == fsynced {
		return redis.NewCmd(ctx, "waitaof", 1, d.replicas, ms)
	}
	return redis.NewCmd(ctx, "wait", d.replicas, ms)
}

// met returns nil when the answer to command says that what d asks is there, and the failure otherwise.
func (d Durability) met(confirm *redis.Cmd) error {
	answer, err := confirm.Result()
	if err != nil {
		if v := judge(err); errors.Is(v.class, reprise.ErrMisconfigured) {
			return fail(v.class, err)
		}
		return fail(reprise.ErrNotReplicated, err)
	}
	local, replicas := int64(1), int64(0)
	switch answer := answer.(type) {
	case int64:
		replicas = answer
	case []any: // on disk here, on disk at replicas
		if len(answer) == 2 {
			local, _ = answer[0].(int64)
			replicas, _ = answer[1].(int64)
		}
	}
	switch {
	case local < 1:
		return fmt.Errorf("%w: redis: not on disk at the primary in time", reprise.ErrNotReplicated)
	case replicas < int64(d.replicas):
		return fmt.Errorf("%w: redis: %d of %d replicas in time", reprise.ErrNotReplicated, replicas, d.replicas)
	}
	return nil
}
