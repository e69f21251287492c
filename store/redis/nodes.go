package repriseredis

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/store/internal/parallel"
)

// sendByNode makes one attempt on commands, in one pipeline for each node. It returns a
// function that waits for the confirmation of the unconfirmed ones, or nil when there are
// none.
//
// It does not leave that to the cluster client, which gives up on all commands when one
// of them times out, and sends WAIT to any node.
func (s *Store) sendByNode(ctx context.Context, batch []*command) (confirm func()) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		node, _ := s.client.(*redis.Client)
		return s.sendTo(ctx, node, false, batch)
	}
	var redirected redirectClients
	defer func() {
		if confirm == nil {
			redirected.close()
		}
	}()
	groups := make(map[*redis.Client][]*command, 1)
	for _, c := range batch {
		node, err := cluster.MasterForKey(ctx, c.key)
		if err != nil {
			c.SetErr(unsent{err})
			continue
		}
		if c.redirect != "" && c.redirect != node.Options().Addr {
			node = redirected.to(ctx, c.redirect, cluster, node)
		}
		groups[node] = append(groups[node], c)
	}
	var mu sync.Mutex
	var confirms []func()
	var sending parallel.Group
	for node, group := range groups {
		sending.Go(func() {
			once := redirected[node.Options().Addr] == node
			if confirm := s.sendTo(ctx, node, once, group); confirm != nil {
				mu.Lock()
				defer mu.Unlock()
				confirms = append(confirms, confirm)
			}
		})
	}
	sending.Wait()
	if len(confirms) == 0 {
		return nil
	}
	return func() {
		defer redirected.close()
		var waiting parallel.Group
		for _, confirm := range confirms {
			waiting.Go(confirm)
		}
		waiting.Wait()
	}
}

// sendTo sends commands to one node. If once is true, node is a client for this attempt
// only. It returns what sendByNode returns.
func (s *Store) sendTo(ctx context.Context, node *redis.Client, once bool, group []*command) (confirm func()) {
	if s.durable(group) {
		return s.sendDurable(ctx, node, once, group)
	}
	sendThrough(ctx, node.Pipeline(), group)
	return nil
}

// sendThrough sends commands through one connection. Each command carries its error.
func sendThrough(ctx context.Context, pipe redis.Pipeliner, group []*command) {
	var first *command
	add := func(c *command) {
		if first == nil {
			first = c
		}
		c.first, c.sendErr = first, errUnanswered
		_ = pipe.Process(ctx, c) // queues
	}
	ask := func(c *command) {
		if c.asking {
			add(&command{StringCmd: redis.NewStringCmd(ctx, "asking")})
		}
	}
	for _, c := range group {
		ask(c)
		add(c)
		if c.tail != nil {
			ask(c)
			_ = pipe.Process(ctx, c.tail)
		}
	}
	_, err := pipe.Exec(ctx)
	for _, c := range group {
		// A server that refuses the connection, for example because of a wrong password,
		// answers no command, and go-redis sets the error of none.
		if errors.Is(c.sendErr, errUnanswered) {
			c.SetErr(cmp.Or(err, errUnanswered))
		}
	}
}

// errUnanswered is the error of a command in a pipeline before it has an answer.
var errUnanswered = errors.New("no answer")

// redirectClients are clients, for one attempt, of nodes that a cluster named in a
// redirect and that its client does not know yet, such as a node that imports its first
// slots.
type redirectClients map[string]*redis.Client

// to returns the cluster client's own client of the node at addr, or else a new one with
// the options of like. The cluster client may know the node in another role, for example
// as the replica that has since been promoted.
func (r *redirectClients) to(ctx context.Context, addr string, cluster *redis.ClusterClient, like *redis.Client) *redis.Client {
	var known atomic.Pointer[redis.Client]
	_ = cluster.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		if node.Options().Addr == addr {
			known.Store(node)
		}
		return nil
	})
	if node := known.Load(); node != nil {
		return node
	}
	if *r == nil {
		*r = make(redirectClients, 1)
	}
	node, ok := (*r)[addr]
	if !ok {
		o := *like.Options()
		o.Addr, o.PoolSize, o.MinIdleConns = addr, 1, 0
		node = redis.NewClient(&o)
		(*r)[addr] = node
	}
	return node
}

func (r *redirectClients) close() {
	for _, node := range *r {
		_ = node.Close()
	}
}

// noteRedirect notes which node a cluster named for the next attempt of c.
func (c *command) noteRedirect(err error) {
	if c.redirect, c.asking = redis.IsAskError(err); !c.asking {
		c.redirect, _ = redis.IsMovedError(err)
	}
	if strings.HasPrefix(c.redirect, ":") {
		c.redirect = "" // a node that does not know its own address
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
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		node, _ := s.client.(*redis.Client)
		return []*redis.Client{node}, nil
	}
	var mu sync.Mutex
	var nodes []*redis.Client
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	if err != nil {
		return nil, fail(classify(err).class, err)
	}
	return nodes, nil
}
