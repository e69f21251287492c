package protocol

import "io"

// Capture collects a response body that the handler gives to its framework as an
// [io.Reader], and judges how it ended. It is not safe for concurrent use.
type Capture struct {
	x        *Exchange
	limit    int64 // of the memory
	declared int64 // negative: not declared
	size     int64
	stopped  bool // reading stopped at the limit, so the end of the body is unknown
	overflew bool // the body has left the memory
}

// Capture returns the exchange's Capture, empty, for a body of the declared length; a
// negative one is not known. An exchange has one.
func (x *Exchange) Capture(declared int64) *Capture {
	x.capture = Capture{x: x, limit: int64(x.guard.cfg.Limits.ResponseBody), declared: max(declared, -1)}
	x.scratch.response = x.scratch.response[:0]
	return &x.capture
}

// HoldBack reports whether the body has to be read to its end before any of it is sent:
// it is known to be short enough to be kept, or its effects commit with it. Another body
// is sent as it is read.
func (c *Capture) HoldBack() bool {
	return c.x.Buffered() || 0 <= c.declared && c.declared <= c.limit
}

// Write takes the next part of a body that is being sent. It never fails.
func (c *Capture) Write(p []byte) (int, error) {
	take(c, p)
	return len(p), nil
}

// take is Write, also for strings.
func take[T []byte | string](c *Capture, p T) {
	c.size += int64(len(p))
	if c.over() {
		c.overflow()
		c.x.spoolMore([]byte(p))
	} else {
		s := c.x.scratch
		s.response = append(c.x.guard.room(s.response, len(p)), p...)
	}
}

// overflow moves the captured bytes out of memory, once.
func (c *Capture) overflow() {
	if c.overflew {
		return
	}
	c.overflew = true
	s := c.x.scratch
	c.x.startSpool()
	c.x.spoolMore(s.response)
	s.response = again(s.response)
}

// ReadFrom reads a body that is held back: to its end, or until it is longer than it was
// declared to be or can be kept. The error is that of src.
func (c *Capture) ReadFrom(src io.Reader) (int64, error) {
	most := c.limit + 1
	if 0 <= c.declared {
		most = min(most, c.declared+1)
	}
	err := c.readMemory(src, most)
	if err == nil && c.over() {
		c.overflow()
		err = c.readSpool(src)
	}
	if err == io.EOF { //nolint:errorlint // a wrapped one is a failure, as for io.Copy
		err = nil
	}
	c.stopped = err == nil && c.Oversize() && (c.declared < 0 || c.size <= c.declared)
	return c.size, err
}

// readMemory reads until most bytes are in memory. The error is that of src, [io.EOF] at
// its end.
func (c *Capture) readMemory(src io.Reader, most int64) error {
	s := c.x.scratch
	for c.size < most { // the captured bytes stay, also where src panics
		var err error
		s.response, err = appendRead(s.response, src, int(most))
		c.size = int64(len(s.response))
		if err != nil {
			return err
		}
	}
	return nil
}

// readSpool is readMemory for the rest, as long as it can be kept.
func (c *Capture) readSpool(src io.Reader) error {
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(buf)
	for !c.Oversize() && (c.declared < 0 || c.size <= c.declared) {
		n, err := src.Read(buf[:])
		c.size += int64(n)
		c.x.spoolMore(buf[:n])
		if err != nil {
			return err
		}
	}
	return nil
}

// Bytes returns the captured body, which is valid until the exchange is closed. It is
// empty for a body over the limit. One that was held back is then in the [Reply], unless
// another response takes its place.
func (c *Capture) Bytes() []byte { return c.x.scratch.response }

// Oversize reports whether the body is already too long to be kept. Then it is useless to
// read on for a client that has left: the adapter finishes the exchange, with Cut false,
// because the operation was done (R35).
func (c *Capture) Oversize() bool { return c.over() && c.x.spool == nil }

// over reports whether the body is too long for memory.
func (c *Capture) over() bool { return c.size > c.limit }

// Whole reports whether the body is complete after a read that returned err: it has its
// declared length, or none was declared and its source ended. A stream is finished before
// the bytes of that read leave, because its client may then retry at once.
func (c *Capture) Whole(err error) bool {
	if c.declared >= 0 {
		return c.size == c.declared
	}
	return err == io.EOF //nolint:errorlint // a wrapped one is a failure, as for io.Copy
}

// Captured describes, for [Exchange.Finish], a body whose source ended with err: nil and
// [io.EOF] are its end. A body that is not whole was cut short (R33). The caller sets
// Sent and Reported.
func (c *Capture) Captured(status int, err error) Captured {
	if err == nil {
		err = io.EOF
	}
	return Captured{Status: status, Body: c.Bytes(), Oversize: c.over(), Cut: !c.stopped && !c.Whole(err)}
}
