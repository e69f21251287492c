package protocol

import "io"

// Capture collects a response body that the handler gives to its framework as an
// [io.Reader], and judges how it ended. It is not safe for concurrent use.
type Capture struct {
	x        *Exchange
	declared int64 // negative: not declared
	size     int64
	stopped  bool // reading stopped at the limit, so nobody knows how the body ends
}

// Capture returns the exchange's Capture, empty, for a body of the declared length; a
// negative one is not known. An exchange has one.
func (x *Exchange) Capture(declared int64) *Capture {
	x.capture = Capture{x: x, declared: max(declared, -1)}
	x.scratch.response = x.scratch.response[:0]
	return &x.capture
}

// HoldBack reports whether the body has to be read to its end before any of it is sent:
// it is known to be short enough to be kept, or its effects commit with it. Another body
// is sent as it is read.
func (c *Capture) HoldBack() bool {
	return c.x.Buffered() || 0 <= c.declared && c.declared <= c.limit()
}

// Write takes the next part of a body that is being sent. It never fails.
func (c *Capture) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	if s := c.x.scratch; c.Oversize() {
		s.response = s.response[:0]
	} else {
		s.response = append(s.response, p...)
	}
	return len(p), nil
}

// ReadFrom reads a body that is held back: to its end, or until it is longer than it was
// declared to be or can be kept. The error is that of src.
func (c *Capture) ReadFrom(src io.Reader) (int64, error) {
	most := c.limit() + 1
	if 0 <= c.declared {
		most = min(most, c.declared+1)
	}
	s := c.x.scratch
	for c.size < most { // what was read stays, also where src panics
		var err error
		s.response, err = appendRead(s.response, src, int(most))
		c.size = int64(len(s.response))
		if err == io.EOF { //nolint:errorlint // a wrapped one is a failure, as for io.Copy
			break
		}
		if err != nil {
			return c.size, err
		}
	}
	c.stopped = c.Oversize() && (c.declared < 0 || c.size <= c.declared)
	return c.size, nil
}

// Bytes returns what was read, which is valid until the exchange is closed. It is empty
// for a body over the limit that is sent as it is read.
func (c *Capture) Bytes() []byte { return c.x.scratch.response }

// Oversize reports whether the body is already too long to be kept. Nothing is gained
// then by reading it on for a client that has left.
func (c *Capture) Oversize() bool { return c.size > c.limit() }

// Whole reports whether the body is complete after a read that returned err: it has its
// declared length, or none was declared and its source ended.
func (c *Capture) Whole(err error) bool {
	if c.declared >= 0 {
		return c.size == c.declared
	}
	return err == io.EOF //nolint:errorlint // a wrapped one is a failure, as for io.Copy
}

// Captured returns what [Exchange.Finish] needs to know of a body whose source ended with
// err: nil and [io.EOF] are its end. A body that is not whole was cut short (R33).
func (c *Capture) Captured(status int, err error) Captured {
	if err == nil {
		err = io.EOF
	}
	return Captured{Status: status, Body: c.Bytes(), Oversize: c.Oversize(), Cut: !c.stopped && !c.Whole(err)}
}

func (c *Capture) limit() int64 { return int64(c.x.guard.cfg.MaxResponseBody) }
