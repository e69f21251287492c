package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/internal/batching"
)

// Limits of a pipeline.
const (
	// MaxPayload is the size in bytes of the largest payload of a call. A larger one would
	// delay others.
	MaxPayload = 64 << 10

	// MaxReply is the size in bytes of the largest reply to a command of a call. The replies
	// behind a larger one would wait for it.
	MaxReply = 64 << 10

	// largestInline is the size in bytes of the largest write that a caller makes itself, on
	// a connection with no call in flight. The operating system accepts that much without
	// blocking.
	largestInline = 4 << 10

	// fewCalls is up to how many calls on their way to a server go through the client. ADR
	// 10 has the measurements.
	fewCalls = 4

	// staysBusy is how many calls in a row have to find few others before calls go through
	// the client again.
	staysBusy = 64

	// yields is how often the goroutine that collects a batch lets others add their calls.
	yields = 2

	// AnswerWithin is how long a server may be silent where the client has no ReadTimeout.
	AnswerWithin = 3 * time.Second

	idleAfter   = 30 * time.Second // how long an unused connection stays open at most
	sampleEvery = time.Second      // how often a call goes through the client, to notice that it was closed

	firstRedial = 50 * time.Millisecond // the first pause after a failed dial; it doubles up to lastRedial
	lastRedial  = 2 * time.Second
)

// ErrUnsent is wrapped by the error of a call of which no byte was sent.
var ErrUnsent = errors.New("the call was not sent")

// errNotTaken is the error of a call that has to go through the client: because there is
// no connection, because the pipeline cannot encode it, or because it is the sample of
// this second.
var errNotTaken = errors.New("the pipeline does not take the call")

// Call is one or more commands of Redis that are written together.
type Call interface {
	// AppendTo appends the commands, see [AppendCommand], and returns the kinds of their
	// replies, a byte for each: '$' is a string or nil, '+' a status or nil, ':' a number.
	// The server may reply with an error instead of each. There are at most [MaxReplies]
	// replies, of at most [MaxReply] bytes. An empty text leaves the call to the client.
	AppendTo(b []byte) (out []byte, replies string)
}

// Answer is the answer to a call.
type Answer struct {
	Replies [MaxReplies]Reply
	Batch   int // how many calls were sent in the same write, this one included
}

// MaxReplies is the number of commands of the largest call.
const MaxReplies = 3

// pipeline sends the calls for one server on one connection: each batch is written
// without waiting for the answers to the one before. It dials in the background; while it
// has no connection, it takes no call. All methods are safe for concurrent use.
type pipeline struct {
	all    *Pipelines
	node   *redis.Client
	limits limits
	queue  *batching.Queue[queued]
	few    int64 // see begin

	active atomic.Int64         // calls between begin and end
	busy   atomic.Int64         // for how many more calls begin reports false; negative: none
	conn   atomic.Pointer[conn] // nil: none
	sample atomic.Bool          // the next call goes through the client

	sampled time.Time // when sample was last set; only the sender uses it

	mu      sync.Mutex
	dialing bool
	redial  time.Time // the earliest time of the next dial
	pause   time.Duration
}

// queued is a call in the queue. Its memory belongs to the queue, because a call may be
// written or answered after its caller has returned.
type queued struct {
	out  []byte
	want string // see Call
	Answer
}

func (p *Pipelines) newPipeline(node *redis.Client) *pipeline {
	o := node.Options()
	n := &pipeline{all: p, node: node, limits: limitsOf(o), few: int64(min(fewCalls, o.PoolSize/2))}
	n.queue = batching.New(batching.Config[queued]{
		Send: n.send, Later: true, Yields: yields, Inline: n.sendsInline,
		Large: 2 * MaxPayload, // a call is never sent outside of the lane
	})
	return n
}

// begin counts a call as on its way to the server, through the pipeline or the client,
// until end. It reports whether few calls are on their way, so that each is faster on a
// connection of the client: a call that is alone in its batch saves no system call, and
// wakes two more goroutines. For a small pool, few means half of its connections.
//
// After it has reported false, it does so for the next [staysBusy] calls as well.
// Otherwise, some calls would always miss the batches of the others.
func (p *pipeline) begin() (few bool) {
	if p.active.Add(1) > p.few {
		p.busy.Store(staysBusy)
		return false
	}
	return p.busy.Add(-1) < 0
}

// end undoes the count of begin.
func (p *pipeline) end() { p.active.Add(-1) }

// do sends c and returns when its replies have arrived, or when ctx ends. The error is
// errNotTaken, or one of [Pipelines.Do].
func (p *pipeline) do(ctx context.Context, c Call) (a Answer, err error) {
	if p.conn.Load() == nil || p.sample.Load() && p.sample.CompareAndSwap(true, false) {
		return a, errNotTaken
	}
	call := p.queue.Call()
	defer call.Release()
	v := &call.Value
	if cap(v.out) > maxKept {
		v.out = nil
	}
	if v.out, v.want = c.AppendTo(v.out[:0]); v.want == "" {
		return a, errNotTaken
	}
	call.Size = len(v.out)
	if err = p.queue.Do(ctx, call); err == nil {
		a, v.Answer = v.Answer, Answer{}
		return a, nil
	}
	var left *batching.Error // errors.As allocates
	switch {
	case !errors.As(err, &left):
		a.Batch = v.Batch
		return a, err
	case left.Sent: // the sender still uses v
		return a, left.Err
	default:
		return a, unsent{left.Err}
	}
}

// unsent is an error that matches [ErrUnsent].
type unsent struct{ error }

func (e unsent) Unwrap() []error { return []error{e.error, ErrUnsent} }

// send writes a batch.
func (p *pipeline) send(_ context.Context, batch []batching.Sent[queued]) {
	c := p.conn.Load()
	if c == nil {
		for _, s := range batch {
			s.Finish(errNotTaken)
		}
		return
	}
	now := time.Now()
	if now.Sub(p.sampled) >= sampleEvery {
		p.sampled = now
		p.sample.Store(true)
		if p.limits.lifetime > 0 && now.Sub(c.born) >= p.limits.lifetime {
			defer p.retire(c)
		}
	}
	c.write(now, batch)
	if c.retired.Load() {
		p.conn.CompareAndSwap(c, nil)
	}
}

// sendsInline reports whether the write of a single call cannot block, because no call is
// in flight and it is small.
func (p *pipeline) sendsInline(v *queued) bool {
	c := p.conn.Load()
	return c != nil && c.inFlight.Load() == 0 && len(v.out) <= largestInline
}

// retire stops the use of c for further batches.
func (p *pipeline) retire(c *conn) {
	if c != nil {
		p.conn.CompareAndSwap(c, nil)
		c.retire()
	}
}

// connect dials in the background, unless there is a connection, a dial is under way, or
// one failed a moment ago. The caller has just got an answer of the server through the
// client.
func (p *pipeline) connect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dialing || p.conn.Load() != nil || time.Now().Before(p.redial) {
		return
	}
	// The goroutine of the dial becomes the reader of the connection.
	p.dialing = p.all.run(func(ctx context.Context) {
		dialling, cancel := context.WithTimeout(ctx, p.node.Options().DialTimeout+p.limits.read)
		c, err := dial(dialling, p.node, p.limits)
		cancel()
		p.dialled(c, err)
		if err != nil {
			return
		}
		closing := context.AfterFunc(ctx, func() { p.retire(c) })
		defer closing()
		err = c.read()
		p.conn.CompareAndSwap(c, nil)
		if errors.Is(err, errIdle) {
			p.all.forget(p)
		}
	})
}

// dialled notes the end of a dial.
func (p *pipeline) dialled(c *conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing = false
	if err != nil {
		p.pause = min(max(2*p.pause, firstRedial), lastRedial)
		p.redial = time.Now().Add(p.pause)
		return
	}
	p.pause = 0
	p.conn.Store(c)
}
