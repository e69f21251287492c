package repriseredis

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// sendByNode makes one attempt on commands in one pipeline for each node. A cluster client would do so too, but it gives up on all of
// them when time runs out for one, and sends a wait for replicas to any node.
func (s *Store) sendByNode(ctx context.Context, open []*command) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		s.sendTo(ctx, s.client, open)
		return
	}
	var d detours
	defer d.close()
	groups := make(map[*redis.Client][]*command, 1)
	for _, c := range open {
		node, err := cluster.MasterForKey(ctx, c.key)
		if err != nil {
			c.SetErr(unsent{err})
			continue
		}
		if c.told != "" && c.told != node.Options().Addr {
			node = d.to(c.told, node)
		}
		groups[node] = append(groups[node], c)
	}
	var sending sync.WaitGroup
	for node, group := range groups {
		sending.Go(func() { s.sendTo(ctx, node, group) })
	}
	sending.Wait()
}

// sendTo sends commands through one connection, followed by the wait for their confirmation where they need one: a server
// confirms what the same connection wrote.
func (s *Store) sendTo(ctx context.Context, node redis.UniversalClient, group []*command) {
	pipe := node.Pipeline()
	for _, c := range group {
		if c.asking {
			_ = pipe.Do(ctx, "asking")
		}
		_ = pipe.Process(ctx, c)
	}
	if !s.durable(group) {
		_, _ = pipe.Exec(ctx) // each command carries its error
		return
	}
	confirm := s.durability.command(ctx, s.ackTimeout)
	_ = pipe.Process(ctx, confirm)
	_, _ = pipe.Exec(ctx)
	acks := s.durability.met(confirm)
	for _, c := range group {
		if c.wait {
			c.acks = acks
		}
	}
}

// detours are clients, for one attempt, of nodes that a cluster named and that the map of its client does not have in that place: the
// map follows later, and a node that imports its first slots is in no map.
type detours map[string]*redis.Client

// to returns a client of the node at addr that is configured as like is.
func (d *detours) to(addr string, like *redis.Client) *redis.Client {
	if *d == nil {
		*d = make(detours, 1)
	}
	node, ok := (*d)[addr]
	if !ok {
		o := *like.Options()
		o.Addr, o.PoolSize, o.MinIdleConns = addr, 1, 0
		node = redis.NewClient(&o)
		(*d)[addr] = node
	}
	return node
}

func (d *detours) close() {
	for _, node := range *d {
		_ = node.Close()
	}
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

// nodeFor returns the client of the server that has key.
func (s *Store) nodeFor(ctx context.Context, key string) (*redis.Client, error) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	node, _ := s.client.(*redis.Client)
	return node, nil
}

// primaries returns a client for each primary server.
func (s *Store) primaries(ctx context.Context) ([]*redis.Client, error) {
	switch client := s.client.(type) {
	case *redis.ClusterClient:
		var mu sync.Mutex
		var nodes []*redis.Client
		err := client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, node)
			return nil
		})
		if err != nil {
			return nil, fail(judge(err).class, err)
		}
		return nodes, nil
	case *redis.Client:
		return []*redis.Client{client}, nil
	default:
		return nil, nil
	}
}
