package repriseredis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/internal/batching"
)

// Limits of the pipelines.
const (
	// largestPipelined is the size in bytes of the largest payload that a pipeline sends.
	// A larger one would delay others.
	largestPipelined = 64 << 10

	// largestInline is the size in bytes of the largest write that a caller makes itself,
	// on a connection with nothing in flight: the operating system takes it at once.
	largestInline = 4 << 10

	// pipelineYields is how often the goroutine that makes up a batch lets others add
	// their calls.
	pipelineYields = 2

	pipelineIdle = 30 * time.Second // how long an unused connection stays open at most
	answerWithin = 3 * time.Second  // where the client has no ReadTimeout
	sampleEvery  = time.Second      // how often a call goes through the client

	firstRedial = 50 * time.Millisecond // the pause after a dial that failed, and what it grows to
	lastRedial  = 2 * time.Second
)

// errNoPipeline is the end of a call for which there is no connection: it was not sent.
var errNoPipeline = errors.New("no connection for a pipeline")

// pipelines has a pipeline for each server that a client of the store knows.
type pipelines struct {
	hook    func(context.Context, Pipelined)
	working sync.WaitGroup // dials and readers
	ctx     context.Context
	cancel  context.CancelFunc

	single *nodePipeline // of a client that is none of a cluster

	mu     sync.Mutex
	closed bool
	nodes  map[*redis.Client]*nodePipeline
}

// nodePipeline sends the calls for one server on one connection: each batch is written
// without waiting for the answers to the one before. It dials in the background; while it
// has no connection, it sends nothing.
type nodePipeline struct {
	all      *pipelines
	node     *redis.Client
	addr     string
	limits   pipelineLimits
	sentinel bool
	queue    *batching.Queue[pipelineCall]

	conn   atomic.Pointer[pipelineConn] // nil: none
	sample atomic.Bool                  // the next call goes through the client

	sampled time.Time // of the sender

	mu      sync.Mutex
	dialing bool
	redial  time.Time // not before
	pause   time.Duration
}

// Pipelined is a call that the store sent on a connection of its own, where hooks of the
// client do not see it. See Config.Hook.
type Pipelined struct {
	Server   string        // the address in the options of the client
	Command  string        // the name of the (first) command, in lower case
	Start    time.Time     // when the call was made
	Duration time.Duration // until the answer, including the time until the call was sent
	Batch    int           // how many calls were sent in one write, this one included; zero: unknown
	Err      error         // of the connection, of the context or of the server; redis.Nil is an answer
}

// newPipelines returns the pipelines for client, or nil where its options rule them out.
func newPipelines(client redis.UniversalClient, hook func(context.Context, Pipelined)) *pipelines {
	p := &pipelines{hook: hook}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if client, ok := client.(*redis.Client); ok {
		if !allowsPipelines(client.Options()) {
			return nil
		}
		p.single = p.newPipeline(client)
	}
	return p
}

// allowsPipelines reports whether the options of a client leave room for connections that
// it does not see: a Limiter has to see every command, and streamed credentials change on
// connections that are in use.
func allowsPipelines(o *redis.Options) bool {
	return o.Limiter == nil && o.StreamingCredentialsProvider == nil
}

func (p *pipelines) newPipeline(node *redis.Client) *nodePipeline {
	o := node.Options()
	l := pipelineLimits{read: o.ReadTimeout, write: o.WriteTimeout, idle: pipelineIdle, lifetime: o.ConnMaxLifetime}
	if l.read <= 0 {
		l.read = answerWithin
	}
	if l.write <= 0 {
		l.write = l.read
	}
	if o.ConnMaxIdleTime > 0 {
		l.idle = min(l.idle, o.ConnMaxIdleTime)
	}
	n := &nodePipeline{all: p, node: node, addr: o.Addr, limits: l, sentinel: o.Addr == "FailoverClient"}
	n.queue = batching.New(batching.Config[pipelineCall]{
		Send: n.send, Later: true, Yields: pipelineYields, Inline: n.sendsInline,
		Large: 2 * largestPipelined, // a call is never sent outside of the lane
	})
	return n
}

// of returns the pipeline for a server, and nil after close or where the options of its
// client rule one out.
func (p *pipelines) of(node *redis.Client) *nodePipeline {
	if p.single != nil {
		return p.single
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[node]
	if n == nil && !p.closed && allowsPipelines(node.Options()) {
		if p.nodes == nil {
			p.nodes = make(map[*redis.Client]*nodePipeline, 1)
		}
		n = p.newPipeline(node)
		p.nodes[node] = n
	}
	return n
}

// forget removes a pipeline that is not used: a cluster client may have dropped its node.
func (p *pipelines) forget(n *nodePipeline) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[n.node] == n {
		delete(p.nodes, n.node)
	}
}

// close ends all connections when their calls have answers. Calls go through the client
// afterwards.
func (p *pipelines) close() {
	if p == nil {
		return
	}
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.nodes = nil
	p.mu.Unlock()
}

// run starts a goroutine, unless the pipelines are closed.
func (p *pipelines) run(f func(context.Context)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.working.Go(func() { f(p.ctx) })
	return true
}

// do sends c, and reports false when it was not sent because there is no pipeline or no
// connection.
func (n *nodePipeline) do(ctx context.Context, c *command) bool {
	if n == nil || n.conn.Load() == nil || n.sample.Load() && n.sample.CompareAndSwap(true, false) {
		return false
	}
	call := n.queue.Call()
	defer call.Release()
	v := &call.Value
	if !v.encode(c) {
		return false
	}
	call.Size = len(v.out)
	var start time.Time
	if n.all.hook != nil {
		start = time.Now()
	}
	err := n.queue.Do(ctx, call)
	if errors.Is(err, errNoPipeline) {
		return false
	}
	batch := 0
	if c.receive(v, err) {
		batch = v.batch
	}
	if n.all.hook != nil {
		name, _ := c.Args()[0].(string)
		n.all.hook(ctx, Pipelined{Server: n.addr, Command: name, Start: start, Duration: time.Since(start), Batch: batch, Err: c.sendErr})
	}
	return true
}

// send writes a batch.
func (n *nodePipeline) send(_ context.Context, batch []batching.Sent[pipelineCall]) {
	conn := n.conn.Load()
	if conn == nil {
		for _, s := range batch {
			s.Finish(errNoPipeline)
		}
		return
	}
	now := time.Now()
	if now.Sub(n.sampled) >= sampleEvery {
		n.sampled = now
		n.sample.Store(true)
		if n.sentinel {
			n.all.run(func(ctx context.Context) { n.verify(ctx, conn) })
		}
		if n.limits.lifetime > 0 && now.Sub(conn.born) >= n.limits.lifetime {
			defer n.retire(conn)
		}
	}
	conn.write(now, batch)
	if conn.retired.Load() {
		n.conn.CompareAndSwap(conn, nil)
	}
}

// sendsInline reports whether the write of a call that is alone cannot block: nothing is
// in flight, and it is small.
func (n *nodePipeline) sendsInline(v *pipelineCall) bool {
	conn := n.conn.Load()
	return conn != nil && conn.inFlight.Load() == 0 && len(v.out) <= largestInline
}

// retire makes conn the connection of no further batch.
func (n *nodePipeline) retire(conn *pipelineConn) {
	if conn != nil {
		n.conn.CompareAndSwap(conn, nil)
		conn.retire()
	}
}

// connect dials, unless there is a connection, or a dial is under way or failed just now.
// The goroutine of a dial becomes the reader of its connection.
func (n *nodePipeline) connect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dialing || n.conn.Load() != nil || time.Now().Before(n.redial) {
		return
	}
	n.dialing = n.all.run(func(ctx context.Context) {
		dialling, cancel := context.WithTimeout(ctx, n.node.Options().DialTimeout+n.limits.read)
		conn, err := dialPipeline(dialling, n.node, n.limits)
		cancel()
		n.dialled(conn, err)
		if err != nil {
			return
		}
		closing := context.AfterFunc(ctx, func() { n.retire(conn) })
		defer closing()
		err = conn.read()
		n.conn.CompareAndSwap(conn, nil)
		if errors.Is(err, errIdle) {
			n.all.forget(n)
		}
	})
}

// dialled notes the end of a dial.
func (n *nodePipeline) dialled(conn *pipelineConn, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialing = false
	if err != nil {
		n.pause = min(max(2*n.pause, firstRedial), lastRedial)
		n.redial = time.Now().Add(n.pause)
		return
	}
	n.pause = 0
	n.conn.Store(conn)
}

// verify ends a connection to a server that is not the primary any more. A primary that
// was cut off from its sentinels does not know.
func (n *nodePipeline) verify(ctx context.Context, conn *pipelineConn) {
	o := n.node.Options()
	ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
	defer cancel()
	probe, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return
	}
	defer func() { _ = probe.Close() }()
	if probe.RemoteAddr().String() != conn.RemoteAddr().String() {
		n.conn.CompareAndSwap(conn, nil)
		conn.end()
	}
}

// encode makes v the call of c, and reports whether a pipeline sends such calls.
func (v *pipelineCall) encode(c *command) (ok bool) {
	if cap(v.out) > maxKept {
		v.out = nil
	}
	if len(c.payload) > largestPipelined {
		return false
	}
	v.want = 1
	v.out, ok = appendCommand(v.out[:0], c.Args())
	for next := range c.following {
		if ok {
			v.want++
			v.out, ok = appendCommand(v.out, next.Args())
		}
	}
	return ok
}

// receive gives c the replies of v, or the error of its queue. It reports whether v was
// finished, and is not used by a sender any more.
func (c *command) receive(v *pipelineCall, err error) (finished bool) {
	finished = true
	if err != nil {
		finished = c.fail(err)
	} else {
		setText(c, &v.replies[0])
		if c.tail != nil {
			setNumber(c.tail, &v.replies[1])
		}
		if c.validity != nil {
			setNumber(c.validity.left, &v.replies[2])
			setText(c.validity.head, &v.replies[3])
		}
		v.replies = [mostReplies]reply{}
	}
	c.viaClient = c.sendErr != nil && !errors.Is(c.sendErr, redis.Nil)
	return finished
}

// fail gives c the error of its call, and reports whether the call was finished with it.
func (c *command) fail(err error) (finished bool) {
	var e *batching.Error
	switch finished = !errors.As(err, &e); {
	case finished:
		c.SetErr(err)
	case e.Sent:
		c.SetErr(e.Err)
	default:
		c.SetErr(unsent{e.Err})
	}
	return finished
}

// textCommand is a command of Redis that is answered with a string.
type textCommand interface {
	SetVal(text string)
	SetErr(err error)
}

// setText gives a command its reply.
func setText(c textCommand, r *reply) {
	switch r.kind {
	case replyText:
		c.SetVal(r.text)
	case replyNil:
		c.SetErr(redis.Nil)
	case replyError:
		c.SetErr(serverError(r.text))
	default:
		c.SetErr(errUnexpected)
	}
}

// setNumber gives a command that is answered with a number its reply.
func setNumber(c *redis.IntCmd, r *reply) {
	switch r.kind {
	case replyNumber:
		c.SetVal(r.number)
	case replyError:
		c.SetErr(serverError(r.text))
	default:
		c.SetErr(errUnexpected)
	}
}
