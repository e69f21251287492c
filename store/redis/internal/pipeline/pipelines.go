package pipeline

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Pipelines has a pipeline for each server that a client knows. All methods are safe for
// concurrent use.
type Pipelines struct {
	working sync.WaitGroup // dials and readers
	ctx     context.Context
	cancel  context.CancelFunc

	single *Pipeline // of a client that is none of a cluster
	few    int64     // see Pipeline.Begin

	mu     sync.Mutex
	closed bool
	nodes  map[*redis.Client]*Pipeline
}

// New returns the pipelines for client, a *[redis.Client] or *[redis.ClusterClient], or
// nil where its options rule them out. For few, see [Pipeline.Begin].
func New(client redis.UniversalClient, few int) *Pipelines {
	p := &Pipelines{few: int64(few)}
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

// Of returns the pipeline for a server, and nil after Close or where the options of its
// client rule one out.
func (p *Pipelines) Of(node *redis.Client) *Pipeline {
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
			p.nodes = make(map[*redis.Client]*Pipeline, 1)
		}
		n = p.newPipeline(node)
		p.nodes[node] = n
	}
	return n
}

// forget removes a pipeline that is not used: a cluster client may have dropped its node.
func (p *Pipelines) forget(n *Pipeline) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[n.node] == n {
		delete(p.nodes, n.node)
	}
}

// Close ends all connections when their calls have answers. No call is taken afterwards.
func (p *Pipelines) Close() {
	if p == nil {
		return
	}
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.nodes = nil
	p.mu.Unlock()
}

// Wait waits, after Close, until all goroutines have ended.
func (p *Pipelines) Wait() {
	if p != nil {
		p.working.Wait()
	}
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
