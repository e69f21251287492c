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

	// MaxReply is the size in bytes of the largest reply that the commands of a call may
	// have: the replies behind a larger one would wait for it.
	MaxReply = 64 << 10

	// largestInline is the size in bytes of the largest write that a caller makes itself,
	// on a connection with no call in flight: the operating system takes it at once.
	largestInline = 4 << 10

	// fewCalls is how many calls, at most, are on their way to a server while all of them
	// go through the client. ADR 10 has the measurements.
	fewCalls = 4

	// staysBusy is how many calls in a row have to be few before the client gets them again.
	staysBusy = 64

	// yields is how often the goroutine that makes up a batch lets others add their calls.
	yields = 2

	// AnswerWithin is how long a server may be silent where the client has no ReadTimeout.
	AnswerWithin = 3 * time.Second

	idleAfter   = 30 * time.Second // how long an unused connection stays open at most
	sampleEvery = time.Second      // how often a call is left to the client

	firstRedial = 50 * time.Millisecond // the pause after a dial that failed, and its largest value
	lastRedial  = 2 * time.Second
)

// ErrUnsent is in the error of a call in a pipeline of which no byte was sent.
var ErrUnsent = errors.New("the call was not sent")

// errNotTaken is the error of a call that is left to the client: there is no connection,
// or it is the one a second that would notice that the client was closed.
var errNotTaken = errors.New("the pipeline does not take the call")

// Call is one write: commands of Redis.
type Call interface {
	// AppendTo appends the commands, see [AppendCommand], and returns the kinds of their
	// replies, a byte for each: '$' is a string or nil, '+' a status or nil, ':' a number.
	// An error may take the place of each. There are at most [MaxReplies], of at most
	// [MaxReply] bytes, and none for a call that is left to the client.
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
	busy   atomic.Int64         // how many more calls are not few; negative: none
	conn   atomic.Pointer[conn] // nil: none
	sample atomic.Bool          // the next call is left to the client

	sampled time.Time // of the sender

	mu      sync.Mutex
	dialing bool
	redial  time.Time // not before
	pause   time.Duration
}

// queued is a call in the queue. Its memory belongs to the queue, since a call may be
// written or answered after its caller left.
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

// begin counts a call on its way to the server, through the pipeline or the client, until
// end. It reports whether there are few of them, so that each does better on a connection
// of the client: a call that is alone in its batch saves no system call, and wakes two
// goroutines more. A small pool has fewer: half of its connections.
//
// The calls after one that was not few are not few either. Otherwise, part of the calls
// would always miss the batches of the others.
func (p *pipeline) begin() (few bool) {
	if p.active.Add(1) > p.few {
		p.busy.Store(staysBusy)
		return false
	}
	return p.busy.Add(-1) < 0
}

// end ends the count of a call.
func (p *pipeline) end() { p.active.Add(-1) }

// do sends c and returns when its replies are there, or when ctx ends. The error is
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

// sendsInline reports whether the write of a call that is alone cannot block: no call is
// in flight, and it is small.
func (p *pipeline) sendsInline(v *queued) bool {
	c := p.conn.Load()
	return c != nil && c.inFlight.Load() == 0 && len(v.out) <= largestInline
}

// retire makes c the connection of no further batch.
func (p *pipeline) retire(c *conn) {
	if c != nil {
		p.conn.CompareAndSwap(c, nil)
		c.retire()
	}
}

// connect dials in the background, unless there is a connection, or a dial is under way
// or failed just now. The server has just answered through the client.
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
