package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Addrs returns the host:port of each node.
func (c *RedisCluster) Addrs() []string { return addrs(c.Nodes) }

// Primary returns the node that is the primary for key, in the eyes of all nodes that run
// and are not paused. It waits while they do not agree.
func (c *RedisCluster) Primary(tb testing.TB, key string) *RedisServer {
	tb.Helper()
	return c.AwaitFailover(tb, key, nil)
}

// AwaitFailover waits until all nodes other than old agree that another one is the
// primary for key, and returns that.
func (c *RedisCluster) AwaitFailover(tb testing.TB, key string, old *RedisServer) (primary *RedisServer) {
	tb.Helper()
	must(tb, poll(func() (err error) {
		primary, err = c.owner(tb.Context(), key, old)
		return err
	}))
	return primary
}

// owner returns the node that all nodes that answer, but one, name for key.
func (c *RedisCluster) owner(ctx context.Context, key string, without *RedisServer) (*RedisServer, error) {
	var owner *RedisServer
	for _, node := range c.Nodes {
		if node == without || !node.process.responsive() {
			continue
		}
		named, err := c.redirect(ctx, node, key)
		if err != nil {
			return nil, err
		}
		if owner != nil && named != owner {
			return nil, fmt.Errorf("%s names %s for %q, others %s", node.addr, named.addr, key, owner.addr)
		}
		owner = named
	}
	if owner == nil || owner == without {
		return nil, errors.New("no failover yet")
	}
	return owner, nil
}

// redirect returns the node to which a node sends those who ask for key, which may be
// itself.
func (c *RedisCluster) redirect(ctx context.Context, node *RedisServer, key string) (*RedisServer, error) {
	_, err := node.Do(ctx, "EXISTS", key)
	if err == nil {
		return node, nil
	}
	var reply redisError
	if !errors.As(err, &reply) || !strings.HasPrefix(string(reply), "MOVED ") {
		return nil, err
	}
	for _, other := range c.Nodes {
		if strings.HasSuffix(string(reply), " "+other.addr) {
			return other, nil
		}
	}
	return nil, err
}
