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

	single *pipeline // of a client that is not of a cluster

	mu     sync.Mutex
	closed bool
	nodes  map[*redis.Client]*pipeline
}

// New returns the pipelines for client, a *[redis.Client] or *[redis.ClusterClient]. It
// returns nil, on which all methods work, too, if the options of client rule pipelines
// out.
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

// allows reports whether the options of a client permit a connection that the client does
// not know. They do not if a Limiter has to see every command, if streamed credentials
// change on connections in use, or if sentinels may replace a primary that does not
// notice.
func allows(o *redis.Options) bool {
	return o.Limiter == nil && o.StreamingCredentialsProvider == nil && o.Addr != sentinelAddr
}

// sentinelAddr is the address in the options of a client that asks sentinels for it.
const sentinelAddr = "FailoverClient"

// Do makes a call to the server of node, in a batch of its pipeline, or by direct, which
// sends the call through the client and returns its error. It uses direct if few calls
// are on their way to the server, if there is no connection, if the options rule a
// pipeline out, and once a second.
//
// If pipelined is true, Do returned when the replies had arrived or when ctx ended.
// Unless the error matches [ErrUnsent], the call may have been executed. Errors that the
// server answered are replies.
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

// of returns the pipeline for a server, or nil after end or if the options of its client
// rule one out.
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

// forget removes a pipeline that is no longer used: a cluster client may have dropped its
// node.
func (p *Pipelines) forget(n *pipeline) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[n.node] == n {
		delete(p.nodes, n.node)
	}
}

// Close ends all connections once their calls have answers, and waits until all
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
