package pipeline

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// read delivers replies until the connection ends, and then fails the remaining calls. It
// runs in the only goroutine of the connection.
func (c *conn) read() (err error) {
	defer func() {
		if r := recover(); r != nil { // otherwise the calls would never end
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
			if !r.fits(v.want[i]) { // out of step: it is the reply to another command
				return errProtocol
			}
			if r.Kind == Failure && outlived(r.Text) {
				c.retire()
			}
			v.Replies[i] = r
		}
		c.answered++
		call.Finish(nil)
		if c.inFlight.Add(-1) == 0 && c.retired.Load() {
			return errRetired
		}
	}
}

// outlived reports whether an error says that a new connection is needed: the server was
// demoted, and a new connection finds the new primary, or it requires authentication
// again.
func outlived(text string) bool {
	return strings.HasPrefix(text, "READONLY ") || strings.HasPrefix(text, "NOAUTH ")
}

// next waits for the next bytes, and returns the oldest call without an answer.
func (c *conn) next() (written, error) {
	for c.answered == len(c.reading) {
		first, err := c.in.Peek(1)
		if err != nil {
			return written{}, err
		}
		if c.takeWritten(); len(c.reading) > 0 {
			break
		}
		if first[0] != '>' { // a reply without a call
			return written{}, errProtocol
		}
		if err := skipReply(c.in); err != nil {
			return written{}, err
		}
	}
	return c.reading[c.answered], nil
}

// takeWritten takes over the calls that were written since the last time.
func (c *conn) takeWritten() {
	clear(c.reading)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading, c.written, c.answered = c.written, c.reading[:0], 0
}

// failRest ends the calls that have no answer.
func (c *conn) failRest(err error) {
	for range 2 { // those that were taken over, then the others
		for _, call := range c.reading[c.answered:] {
			call.Finish(fmt.Errorf("%w: %w", errNoAnswer, err))
			c.inFlight.Add(-1)
		}
		c.takeWritten()
	}
}

// tickingReader reads from a connection whose read deadline passes at every tick, which
// is not an error. To set a deadline for every reply would cost more than the reply.
type tickingReader struct{ c *conn }

func (r tickingReader) Read(p []byte) (int, error) {
	for {
		n, err := r.c.Conn.Read(p)
		if n > 0 {
			r.c.arrived = true
		}
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
