package pipeline

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/internal/batching"
)

// The errors of connections that ended, and of their calls.
var (
	errIdle     = errors.New("the connection was idle")
	errRetired  = errors.New("the connection was replaced")
	errSilence  = fmt.Errorf("the server did not answer in time: %w", context.DeadlineExceeded)
	errNoAnswer = errors.New("the connection ended before the answer")
)

// maxKept is the size of the largest buffer that is kept for the next use.
const maxKept = 64 << 10

// conn is a connection on which batches are written one after the other, without waiting
// for replies. One goroutine reads the replies.
type conn struct {
	net.Conn
	release func() // returns it to the client that dialled it
	born    time.Time
	limits  limits

	inFlight atomic.Int64 // calls that were written, or are being written
	retired  atomic.Bool  // no more is written

	out       []byte // used by the writer, like the next two
	starts    []int
	writeTill time.Time

	mu        sync.Mutex
	ended     bool
	written   []written // not yet taken by the reader
	lastWrite time.Time
	readTill  time.Time

	in       *bufio.Reader // used by the reader, like all fields that follow
	reading  []written     // calls taken from written; those from index answered on have no answer
	answered int
	arrived  bool      // bytes have arrived since the last tick
	heard    time.Time // the last tick at which arrived was true
}

// newConn takes over a connection from the client that dialled it.
func newConn(dialled net.Conn, l limits, release func()) (*conn, error) {
	now := time.Now()
	c := &conn{Conn: dialled, release: release, born: now, limits: l, lastWrite: now, readTill: now.Add(l.tick())}
	c.in = bufio.NewReaderSize(tickingReader{c}, 32<<10)
	if err := c.SetWriteDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return c, c.SetReadDeadline(c.readTill)
}

// limits are the time limits of a connection.
type limits struct {
	read, write time.Duration // how long the server may send no byte, or read none
	idle        time.Duration // how long an unused connection stays open
	lifetime    time.Duration // how long it is used; zero: no limit
}

// limitsOf returns the limits for a connection, from the options of its client.
func limitsOf(o *redis.Options) limits {
	l := limits{read: o.ReadTimeout, write: o.WriteTimeout, idle: idleAfter, lifetime: o.ConnMaxLifetime}
	if l.read <= 0 {
		l.read = AnswerWithin
	}
	if l.write <= 0 {
		l.write = l.read
	}
	if o.ConnMaxIdleTime > 0 {
		l.idle = min(l.idle, o.ConnMaxIdleTime)
	}
	return l
}

// tick is how often the reader checks whether the server still answers.
func (l limits) tick() time.Duration { return l.read / 4 }

// written is a call that waits for its replies.
type written struct {
	batching.Sent[queued]
	at time.Time // when it was written
}

// write writes a batch in one system call. The reader finishes its calls; write finishes
// those that were not written.
func (c *conn) write(now time.Time, batch []batching.Sent[queued]) {
	c.out, c.starts = c.out[:0], c.starts[:0]
	c.mu.Lock()
	if c.ended || c.retired.Load() {
		c.mu.Unlock()
		for _, s := range batch {
			s.Finish(errNotTaken)
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
		v.Batch = len(batch)
		c.out = append(c.out, v.out...)
		c.written = append(c.written, written{s, now})
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
			if c.starts[i] >= n { // no byte of it was written
				s.Finish(unsent{err})
			}
		}
		c.end()
	}
	if cap(c.out) > maxKept {
		c.out = nil
	}
}

// end closes the connection, which ends the reader.
func (c *conn) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	_ = c.Close()
}

// retire allows no further batch, and closes the connection when all replies have
// arrived.
func (c *conn) retire() {
	c.mu.Lock()
	c.retired.Store(true)
	c.mu.Unlock()
	if c.inFlight.Load() == 0 {
		c.end()
	}
}

// tick is called when the read deadline has passed. It returns an error when the server
// owes an answer and was silent for too long, or when the connection was idle for too
// long. A server that sends a long reply is not silent, however long that takes.
func (c *conn) tick(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arrived {
		c.arrived, c.heard = false, now
	}
	var oldest time.Time
	switch {
	case c.answered < len(c.reading):
		oldest = c.reading[c.answered].at
	case len(c.written) > 0:
		oldest = c.written[0].at
	case now.Sub(c.lastWrite) >= c.limits.idle:
		c.ended = true // no further batch is written
		return errIdle
	default:
		c.readTill = c.lastWrite.Add(c.limits.idle)
		return c.SetReadDeadline(c.readTill)
	}
	if now.Sub(oldest) >= c.limits.read && now.Sub(c.heard) >= c.limits.read {
		return errSilence
	}
	c.readTill = now.Add(c.limits.tick())
	return c.SetReadDeadline(c.readTill)
}
