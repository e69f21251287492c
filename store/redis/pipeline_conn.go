package repriseredis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/reprise-go/reprise/store/internal/batching"
)

// Why a connection ended that did not fail.
var (
	errIdle     = errors.New("the connection was idle")
	errRetired  = errors.New("the connection was replaced")
	errSilence  = fmt.Errorf("the server did not answer in time: %w", context.DeadlineExceeded)
	errNoAnswer = errors.New("the connection ended before the answer")
)

// pipelineConn is a connection on which batches are written one after the other, without
// waiting for their replies, which one goroutine reads.
type pipelineConn struct {
	net.Conn
	release func() // gives it back to the client that dialled it
	born    time.Time
	limits  pipelineLimits

	inFlight atomic.Int64 // calls that were written, or are being written
	retired  atomic.Bool  // no more is written

	out       []byte // of the writer
	starts    []int
	writeTill time.Time

	mu        sync.Mutex
	ended     bool
	written   []writtenCall // not yet taken by the reader
	lastWrite time.Time
	readTill  time.Time

	in       *bufio.Reader // of the reader, like all that follows
	reading  []writtenCall // those from answered on have no answer
	answered int
	progress bool // there was a reply since the last tick
}

// pipelineLimits are the times of a [pipelineConn].
type pipelineLimits struct {
	read, write time.Duration // how long the server may not answer, or not read
	idle        time.Duration // how long an unused connection stays open
	lifetime    time.Duration // how long it is used; zero: no limit
}

// writtenCall is a call that waits for its replies.
type writtenCall struct {
	batching.Sent[pipelineCall]
	at time.Time // when it was written
}

// mostReplies is the number of commands of the largest call: a native claim that asks for
// the validity.
const mostReplies = 4

// pipelineCall is a call of a pipeline: one command or more in one write, and as many
// replies. Its memory belongs to the queue, since a call may be written or answered after
// its caller left.
type pipelineCall struct {
	out     []byte
	want    int
	replies [mostReplies]reply
	batch   int // the number of calls of its write
}

// dialPipeline dials a connection like those of node: with the same options, in the same
// way, by a client for this connection only. The client keeps it taken, and does not
// touch it again until release.
func dialPipeline(ctx context.Context, node *redis.Client, limits pipelineLimits) (*pipelineConn, error) {
	o := *node.Options()
	d := &pipelineDial{ctx: ctx, dial: o.Dialer}
	defer d.end()
	o.Dialer = d.run
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 1, 0, 0, 0
	o.MaxRetries, o.DialerRetries = -1, 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(&o)
	sticky := client.Conn()
	release := func() { _, _ = sticky.Close(), client.Close() }
	// Also a refusal of PING ends it: where a password is refused, go-redis leaves the
	// connection open, and it would be that of the server's default user.
	if err := sticky.Ping(ctx).Err(); err != nil {
		release()
		return nil, err
	}
	c := &pipelineConn{Conn: d.end(), release: release, born: time.Now(), limits: limits}
	c.lastWrite = c.born
	c.readTill = c.born.Add(limits.tick())
	if err := c.start(); err != nil {
		release()
		return nil, err
	}
	c.in = bufio.NewReaderSize(tickingReader{c}, 32<<10)
	return c, nil
}

// start takes the connection over from the client that dialled it.
func (c *pipelineConn) start() error {
	if err := c.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	return c.SetReadDeadline(c.readTill)
}

// pipelineDial is the dialer of the client of a pipeline. The client dials in a goroutine
// of its own, in a context of its own, and may go on when nobody waits for it: the dialer
// uses the context of the pipeline, and ends with it.
type pipelineDial struct {
	ctx  context.Context
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu   sync.Mutex // held while it dials
	over bool
	conn net.Conn
}

func (d *pipelineDial) run(_ context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil, errRetired
	}
	conn, err := d.dial(d.ctx, network, addr) //nolint:contextcheck // see above
	d.conn = conn
	return conn, err
}

// end waits for the dial, and returns the last connection.
func (d *pipelineDial) end() net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	return d.conn
}

func isReply(err error) bool {
	var answered redis.Error
	return errors.As(err, &answered)
}

// write writes a batch in one write. Its calls are finished by the reader, or here where
// they were not written.
func (c *pipelineConn) write(now time.Time, batch []batching.Sent[pipelineCall]) {
	c.out, c.starts = c.out[:0], c.starts[:0]
	c.mu.Lock()
	if c.ended || c.retired.Load() {
		c.mu.Unlock()
		for _, s := range batch {
			s.Finish(errNoPipeline)
		}
		return
	}
	for _, s := range batch {
		c.starts = append(c.starts, len(c.out))
		if s.Abandoned() {
			s.Finish(nil)
			continue
		}
		v := s.Value()
		v.batch = len(batch)
		c.out = append(c.out, v.out...)
		c.written = append(c.written, writtenCall{s, now})
		c.inFlight.Add(1)
	}
	c.lastWrite = now
	if tick := now.Add(c.limits.tick()); c.readTill.After(tick) {
		c.readTill = tick
		_ = c.SetReadDeadline(tick)
	}
	c.mu.Unlock()

	if c.writeTill.Before(now.Add(c.limits.write)) {
		c.writeTill = now.Add(c.limits.write * 5 / 4)
		_ = c.SetWriteDeadline(c.writeTill)
	}
	n, err := c.Write(c.out)
	if err != nil {
		for i, s := range batch {
			if c.starts[i] >= n { // not a byte of it
				s.Finish(unsent{err})
			}
		}
		c.end()
	}
	if cap(c.out) > maxKept {
		c.out = nil
	}
}

// maxKept is the size of the largest buffer that is kept for the next use.
const maxKept = 64 << 10

// end closes the connection, which ends the reader.
func (c *pipelineConn) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	_ = c.Close()
}

// retire makes this batch the last, and closes the connection when all replies are there.
func (c *pipelineConn) retire() {
	c.mu.Lock()
	c.retired.Store(true)
	c.mu.Unlock()
	if c.inFlight.Load() == 0 {
		c.end()
	}
}

// read delivers replies until the connection ends, and then fails what is left. It is the
// only goroutine of the connection.
func (c *pipelineConn) read() (err error) {
	defer func() {
		if r := recover(); r != nil { // nobody else would answer
			err = fmt.Errorf("reading replies: %v", r)
		}
		c.end()
		c.failRest(err)
		c.release()
	}()
	for {
		call, err := c.next()
		if err != nil {
			return err
		}
		v := call.Value()
		for i := range v.want {
			r, err := readReply(c.in)
			if err != nil {
				return err
			}
			if !r.answers(i) { // it is one too many, and what follows is that of another call
				return errProtocol
			}
			if r.kind == replyError && outlived(r.text) {
				c.retire()
			}
			v.replies[i] = r
		}
		c.progress = true
		c.answered++
		call.Finish(nil)
		if c.inFlight.Add(-1) == 0 && c.retired.Load() {
			return errRetired
		}
	}
}

// answers reports whether r can be the reply to a command of a call: strings are the
// answers to the first and the last, and numbers those to the two between.
func (r reply) answers(command int) bool {
	number := command == 1 || command == 2
	switch r.kind {
	case replyError:
		return true
	case replyNumber:
		return number
	case replyText, replyNil:
		return !number
	default:
		return false
	}
}

// outlived reports whether an error says that another connection would do better: the
// server was demoted, and a new connection finds its successor, or it wants to know again
// who is there.
func outlived(text string) bool {
	return strings.HasPrefix(text, "READONLY ") || strings.HasPrefix(text, "NOAUTH ")
}

// next returns the oldest call without an answer, when something arrives for it.
func (c *pipelineConn) next() (writtenCall, error) {
	for c.answered == len(c.reading) {
		first, err := c.in.Peek(1)
		if err != nil {
			return writtenCall{}, err
		}
		if c.takeWritten(); len(c.reading) > 0 {
			break
		}
		if first[0] != '>' { // nobody asked
			return writtenCall{}, errProtocol
		}
		if err := skipReply(c.in); err != nil {
			return writtenCall{}, err
		}
	}
	return c.reading[c.answered], nil
}

// takeWritten takes over the calls that were written since the last time.
func (c *pipelineConn) takeWritten() {
	clear(c.reading)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading, c.written, c.answered = c.written, c.reading[:0], 0
}

// failRest ends the calls that have no answer.
func (c *pipelineConn) failRest(err error) {
	for range 2 { // those that were taken over, and the others
		for _, call := range c.reading[c.answered:] {
			call.Finish(fmt.Errorf("%w: %w", errNoAnswer, err))
			c.inFlight.Add(-1)
		}
		c.takeWritten()
	}
}

// tick is how often the reader looks whether the server still answers.
func (l pipelineLimits) tick() time.Duration { return l.read / 4 }

// tickingReader reads from a connection. Its deadline passes at every tick, which is no
// error: a deadline for every reply would cost more than the reply.
type tickingReader struct{ c *pipelineConn }

func (r tickingReader) Read(p []byte) (int, error) {
	for {
		n, err := r.c.Conn.Read(p)
		if err == nil || n > 0 { // errors.As allocates
			return n, err
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			return n, err
		}
		if err := r.c.tick(time.Now()); err != nil {
			return 0, err
		}
	}
}

// tick is called when the read deadline has passed. It returns an error when the server
// owes an answer for too long, or the connection was not used for too long.
func (c *pipelineConn) tick(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	progress := c.progress
	c.progress = false
	var oldest time.Time
	switch {
	case c.answered < len(c.reading):
		oldest = c.reading[c.answered].at
	case len(c.written) > 0:
		oldest = c.written[0].at
	case now.Sub(c.lastWrite) >= c.limits.idle:
		c.ended = true // no batch is written any more
		return errIdle
	default:
		c.readTill = c.lastWrite.Add(c.limits.idle)
		return c.SetReadDeadline(c.readTill)
	}
	if !progress && now.Sub(oldest) >= c.limits.read {
		return errSilence
	}
	c.readTill = now.Add(c.limits.tick())
	return c.SetReadDeadline(c.readTill)
}
