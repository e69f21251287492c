package pipeline

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Pipelines has a pipeline for each server that a client knows. All methods are safe for
// concurrent use.
type Pipelines struct {
	working sync.WaitGroup // dials and readers
	ctx     context.Context
	cancel  context.CancelFunc

	single *pipeline // of a client that is none of a cluster

	mu     sync.Mutex
	closed bool
	nodes  map[*redis.Client]*pipeline
}

// New returns the pipelines for client, a *[redis.Client] or *[redis.ClusterClient], or
// nil, which is as usable, where its options rule them out.
func New(client redis.UniversalClient) *Pipelines {
	p := &Pipelines{}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if client, ok := client.(*redis.Client); ok {
		if !allows(client.Options()) {
			return nil
		}
		p.single = p.newPipeline(client)
	}
	return p
}

// allows reports whether the options of a client leave room for a connection that it does
// not see: a Limiter has to see every command, streamed credentials change on connections
// that are in use, and sentinels may replace a primary that does not notice.
func allows(o *redis.Options) bool {
	return o.Limiter == nil && o.StreamingCredentialsProvider == nil && o.Addr != sentinelAddr
}

// sentinelAddr is the address that go-redis gives a client that asks sentinels for it.
const sentinelAddr = "FailoverClient"

// Do makes a call of the server that node is a client of, in a batch of its pipeline or
// by calling direct, which sends the call through the client and returns its error. It
// calls direct where there are few calls on their way to the server, no connection, or
// options that rule a pipeline out, and once a second.
//
// With a pipeline, it returns when the replies are there or when ctx ends. The error
// matches [ErrUnsent], or the call may have been executed. Errors that the server
// answered are replies.
func (p *Pipelines) Do(ctx context.Context, node *redis.Client, c Call, direct func() error) (a Answer, pipelined bool, err error) {
	n := p.of(node)
	if n == nil {
		_ = direct()
		return a, false, nil
	}
	few := n.begin()
	defer n.end()
	if !few {
		if a, err = n.do(ctx, c); !errors.Is(err, errNotTaken) {
			return a, true, err
		}
	}
	switch err := direct(); {
	case errors.Is(err, redis.ErrClosed):
		p.end()
	case !few && (err == nil || isReply(err)):
		n.connect()
	}
	return a, false, nil
}

func isReply(err error) bool {
	var answered redis.Error
	return errors.As(err, &answered)
}

// of returns the pipeline for a server, and nil after the end or where the options of its
// client rule one out.
func (p *Pipelines) of(node *redis.Client) *pipeline {
	if p == nil {
		return nil
	}
	if p.single != nil {
		return p.single
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[node]
	if n == nil && !p.closed && allows(node.Options()) {
		if p.nodes == nil {
			p.nodes = make(map[*redis.Client]*pipeline, 1)
		}
		n = p.newPipeline(node)
		p.nodes[node] = n
	}
	return n
}

// forget removes a pipeline that is not used: a cluster client may have dropped its node.
func (p *Pipelines) forget(n *pipeline) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[n.node] == n {
		delete(p.nodes, n.node)
	}
}

// Close ends all connections when their calls have answers, and waits until all
// goroutines have ended. Later calls go through the client.
func (p *Pipelines) Close() {
	if p != nil {
		p.end()
		p.working.Wait()
	}
}

// end is Close without waiting.
func (p *Pipelines) end() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.nodes = nil
	p.mu.Unlock()
}

// run starts a goroutine, unless the pipelines are closed.
func (p *Pipelines) run(f func(context.Context)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.working.Go(func() { f(p.ctx) })
	return true
}
