package repriseredis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/parallel"
)

// node returns the node of a server. A new client of the same server gets a new node: a
// cluster client may drop a server, and make another client for it later.
func (s *Store) node(server *redis.Client) *node {
	addr := server.Options().Addr
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[addr]
	if n == nil || n.server != server {
		n = s.newNode(server)
		s.nodes[addr] = n
	}
	return n
}

// nodeOf returns the node for the next attempt on c, and nil where it is unknown: then c
// has the error. A cluster client follows redirects itself. It cannot send WAIT to a
// chosen node, so writes that have to be confirmed are sent to the node that the cluster
// named.
func (s *Store) nodeOf(ctx context.Context, c *command) *node {
	if s.cluster != nil && c.moved && !c.confirm {
		for i, arg := range c.args { // its client finds the slot of a key that is a string
			if arg == any(&c.key) {
				c.args[i] = c.key
			}
		}
		return &node{store: s, client: s.cluster}
	}
	server, err := s.serverFor(ctx, c.key)
	if s.cluster != nil && c.ask != "" {
		server, err = s.knownServer(ctx, c.ask)
	}
	if err != nil {
		c.sendErr = special{err, unsent}
		return nil
	}
	return s.node(server)
}

// knownServer returns the cluster client's client of the server at addr, in whatever role
// it knows that server.
func (s *Store) knownServer(ctx context.Context, addr string) (*redis.Client, error) {
	var known atomic.Pointer[redis.Client]
	_ = s.cluster.ForEachShard(ctx, func(_ context.Context, server *redis.Client) error {
		if server.Options().Addr == addr {
			known.Store(server)
		}
		return nil
	})
	if server := known.Load(); server != nil {
		return server, nil
	}
	return nil, fmt.Errorf("the cluster moves the key to %s, which has no slots yet", addr)
}

// send makes one attempt. Each command carries its error. If there is only one, it may
// be sent in a batch of others, and an error means that the batch may still use it.
// Several are sent in one pipeline for each node, and not by the cluster client, which
// gives up on all commands when one of them times out.
func (s *Store) send(ctx context.Context, open []*command) error {
	if len(open) == 1 {
		if n := s.nodeOf(ctx, open[0]); n != nil {
			return n.do(ctx, open[0])
		}
		return nil
	}
	groups := make(map[*node][]*command, 1)
	for _, c := range open {
		if n := s.nodeOf(ctx, c); n != nil {
			groups[n] = append(groups[n], c)
		}
	}
	var sending parallel.Group
	for n, group := range groups {
		sending.Go(func() { n.send(ctx, group...) })
	}
	sending.Wait()
	return nil
}

// send sends commands through one connection. Each command carries its error.
func (n *node) send(ctx context.Context, batch ...*command) {
	limit := 0
	if len(batch) > 1 {
		limit = min(maxFound, maxReplies/len(batch))
	}
	for _, c := range batch {
		c.make(ctx, limit)
	}
	if c := batch[0]; len(batch) == 1 && c.tail == nil && !c.confirm {
		_ = n.client.Process(ctx, c)
	} else {
		n.sendPipeline(ctx, batch)
	}
	for _, c := range batch {
		c.sendErr = n.explain(ctx, c)
	}
}

// explain returns the error of the last attempt on c. It says so if the pool had no
// connection, if the connection failed before c was written, as in a TLS handshake, or if
// the server closes the connection for a command of this size. A server may do that
// without an answer, so it is asked for its limits.
//
// When a context ends while the call waits for a connection of the pool, the client
// returns its bare error; for a command that was sent, and for a failed dial, it returns
// the error of the connection. It also returns the bare error when a new connection takes
// too long, but then the pool is not full.
func (n *node) explain(ctx context.Context, c *command) error {
	if c.sendErr == nil {
		return nil
	}
	f := classify(c.sendErr)
	switch {
	case (c.sendErr == context.DeadlineExceeded || c.sendErr == context.Canceled) && n.isExhausted(): //nolint:errorlint // a wrapped one may be of a connection
		return special{c.sendErr, exhausted}
	case !c.written && errors.Is(f.class, store.ErrUnknown):
		f.class = store.ErrUnavailable
		return special{c.sendErr, f}
	case n.server != nil && len(c.payload) > maxPayload && f == broken:
		if most, name := settings(ctx, n.server).payloadLimit(); int64(len(c.payload)) > most {
			return special{fmt.Errorf("%s of the server lets no payload of more than %d bytes pass, and this one has %d", name, most, len(c.payload)), full}
		}
	}
	return c.sendErr
}

// sendPipeline sends commands as a pipeline. WAIT follows on the connection that writes.
func (n *node) sendPipeline(ctx context.Context, batch []*command) {
	pipe := n.client.Pipeline()
	for _, c := range batch {
		if c.ask != "" {
			_ = pipe.Process(ctx, redis.NewCmd(ctx, "asking"))
		}
		c.first = batch[0]
		_ = pipe.Process(ctx, c) // queues
		if c.tail != nil {
			_ = pipe.Process(ctx, c.tail)
		}
		if c.found != nil {
			_ = pipe.Process(ctx, c.found)
		}
	}
	var wait *redis.Cmd
	if batch[0].confirm {
		wait = n.store.config.Durability.command(ctx, n.store.config.AckTimeout)
		_ = pipe.Process(ctx, wait)
	}
	_, err := pipe.Exec(ctx)
	for _, c := range batch {
		if wait != nil {
			c.ackErr = n.store.config.Durability.met(wait)
		}
		// A server that refuses the connection, for example because of a wrong password,
		// answers no command, and go-redis sets the error of none.
		if errors.Is(c.sendErr, errUnanswered) {
			c.SetErr(cmp.Or(err, errUnanswered))
		}
		if c.found != nil && c.sendErr == nil && !c.granted() {
			c.sendErr = c.found.Err()
		}
	}
}

// errUnanswered is the error of an attempt before it has an answer.
var errUnanswered = errors.New("no answer")

// isExhausted reports whether all connections of the server's pool are in use.
func (n *node) isExhausted() bool {
	return n.server != nil && inUse(n.server) >= int64(n.server.Options().PoolSize)
}

// inUse returns the number of connections of a client that are in use.
func inUse(client redis.UniversalClient) int64 {
	pool := client.PoolStats()
	return max(0, int64(pool.TotalConns)-int64(pool.IdleConns))
}

// noteRedirect notes which node a cluster named for the next attempt of c, and reports
// whether it named one.
func (c *command) noteRedirect(err error) bool {
	addr, asking := redis.IsAskError(err)
	if !asking {
		addr, _ = redis.IsMovedError(err)
	}
	// A node that does not know its own address names only a port.
	c.moved, c.ask = addr != "" && !strings.HasPrefix(addr, ":"), ""
	if c.moved && asking {
		c.ask = addr
	}
	return addr != ""
}

// serverFor returns the client of the server that has key.
func (s *Store) serverFor(ctx context.Context, key string) (*redis.Client, error) {
	if s.cluster == nil {
		return s.single, nil
	}
	return s.cluster.MasterForKey(ctx, key)
}

// primaries returns a client for each primary server.
func (s *Store) primaries(ctx context.Context) (servers []*redis.Client, err error) {
	if s.cluster == nil {
		return []*redis.Client{s.single}, nil
	}
	var mu sync.Mutex
	err = s.cluster.ForEachMaster(ctx, func(_ context.Context, server *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, server)
		return nil
	})
	if err != nil {
		return nil, readError(err)
	}
	return servers, nil
}
