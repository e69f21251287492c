package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// sendDurably makes one attempt on commands that have to be confirmed. The server confirms what one connection wrote, so the
// commands for a node and the wait for its replicas go out in one pipeline, to that node. Inside a script a wait does not
// work, and a cluster client would send it anywhere.
func (s *Store) sendDurably(ctx context.Context, open []*command) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		s.sendTo(ctx, s.client, open)
		return
	}
	groups := make(map[*redis.Client][]*command, 1)
	for _, c := range open {
		node, err := nodeOf(ctx, cluster, c)
		if err != nil {
			c.SetErr(unsent{err})
			continue
		}
		groups[node] = append(groups[node], c)
	}
	var sending sync.WaitGroup
	for node, group := range groups {
		sending.Go(func() {
			s.sendTo(ctx, node, group)
			if group[0].detour {
				_ = node.Close()
			}
		})
	}
	sending.Wait()
}

// nodeOf returns the client of the node that c has to go to. Where the last attempt was told of a node that the client's map does
// not have in that place, it takes a detour through a client of its own, which the caller closes: the map follows later, and
// a node that is importing its first slots is in no map.
func nodeOf(ctx context.Context, cluster *redis.ClusterClient, c *command) (*redis.Client, error) {
	node, err := cluster.MasterForKey(ctx, c.key)
	c.detour = err == nil && c.told != "" && c.told != node.Options().Addr
	if !c.detour {
		return node, err
	}
	o := *node.Options()
	o.Addr, o.PoolSize, o.MinIdleConns = c.told, 1, 0
	return redis.NewClient(&o), nil
}

// follow notes where a cluster says that c has to go next.
func (c *command) follow(err error) {
	if c.told, c.asking = redis.IsAskError(err); !c.asking {
		c.told, _ = redis.IsMovedError(err)
	}
	if strings.HasPrefix(c.told, ":") {
		c.told = "" // a node that does not know its own address
	}
}

// sendTo sends commands and the wait for their confirmation through one connection.
func (s *Store) sendTo(ctx context.Context, node redis.UniversalClient, group []*command) {
	pipe := node.Pipeline()
	for _, c := range group {
		if c.asking {
			_ = pipe.Do(ctx, "asking")
		}
		_ = pipe.Process(ctx, c)
	}
	confirm := s.durability.command(ctx, s.ackTimeout)
	_ = pipe.Process(ctx, confirm)
	_, _ = pipe.Exec(ctx) // each command carries its error
	acks := s.durability.met(confirm)
	for _, c := range group {
		c.acks = acks
	}
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

// unsent marks an error that came before anything was sent.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }
