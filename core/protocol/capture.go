package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/protocol/internal/spool"
	"github.com/reprise-go/reprise/core/store"
)

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

// A body that has outgrown the memory goes through a spool while it streams, and from
// there to the blob store, before the record is completed (R35).

// startSpool begins to spool a body that has outgrown its limit in memory, if the policy
// offloads it. All of the body follows by spoolMore.
func (x *Exchange) startSpool() {
	switch {
	case !x.guard.offloads, x.attempt.Unprotected(), x.request.isCall():
		return
	case x.omits() && !x.Buffered(): // one that is held back has to be somewhere
		return
	}
	var err error
	if x.spool, err = x.guard.spools.New(x.guard.cfg.Offload.MaxBody); err != nil {
		x.blobFailed(err)
		return
	}
	if x.guard.seals {
		x.spool.Encrypt()
	}
}

// room returns a body with room for n more bytes. A body that may outgrow the memory
// grows in few steps, so that it leaves little to collect.
func (g *Guard) room(body []byte, n int) []byte {
	size := len(body) + n
	if !g.offloads || size <= cap(body) || size <= copyBuffer/8 {
		return body
	}
	return slices.Grow(body, max(size, min(8*size, g.cfg.Limits.ResponseBody))-len(body))
}

// spoolMore adds the next part of the body.
func (x *Exchange) spoolMore(p []byte) {
	x.keepHead(p)
	if x.spool == nil {
		return
	}
	if _, err := x.spool.Write(p); err != nil {
		x.spool = nil
		x.blobFailed(err)
	}
}

// canOffload reports whether a body over the limit may be kept whole. One with trailers
// may not: they leave no way to tell a client that a body broke off. The message of a
// call has to be whole in memory.
func (x *Exchange) canOffload(c *Captured) bool {
	long := x.spool != nil || len(c.Body) > x.guard.cfg.Limits.ResponseBody
	return x.guard.offloads && long && !x.request.isCall() && len(x.scratch.trailers) == 0
}

// dropSpool removes the spool.
func (x *Exchange) dropSpool() {
	if x.spool != nil {
		x.spool.Close()
		x.spool = nil
	}
}

// flushSpool completes the spool of a handler that returned.
func (x *Exchange) flushSpool() {
	if x.spool == nil {
		return
	}
	if _, err := x.spool.Ref(); err != nil {
		x.spool = nil
		x.blobFailed(err)
	}
}

// offload writes the body to the blob store: the spooled one, or the one that the
// framework has in memory.
func (x *Exchange) offload(c *Captured) (ref record.Blob, ok bool) {
	if x.spool == nil {
		x.startSpool()
		x.spoolMore(c.Body)
		x.flushSpool()
		defer x.dropSpool() // the framework sends its copy
	}
	if x.spool == nil {
		return record.Blob{}, false
	}
	ref, err := x.spool.Ref()
	if err == nil {
		err = x.guard.putBlob(x.Context(), ref, x.spool)
	}
	if err != nil {
		x.blobFailed(err)
		return record.Blob{}, false
	}
	x.guard.counts.offloaded.Add(1)
	return ref, true
}

// blobFailed counts and reports a body that is not kept.
func (x *Exchange) blobFailed(err error) {
	x.unkept = err
	x.guard.counts.notOffloaded.Add(1)
	x.guard.reportBlob(x.Context(), x.attempt.ID(), fmt.Errorf("the body of a response is not kept: %w", err))
}

// blobNotWritten is instead for effects that were rolled back because the body could not
// be kept. If it may be kept later, the client waits as long as for a store.
func (x *Exchange) blobNotWritten() Reply {
	if x.unkept == nil || errors.Is(x.unkept, spool.ErrLimit) {
		return x.instead(CodeResponseTooLarge)
	}
	p := x.guard.problems.of(CodeNotApplied)
	p.RetryAfter = retryStore
	return Reply{Replace: true, Response: x.guard.write(x.Context(), x.request, p)}
}

// putBlob writes a spool to the blob store.
func (g *Guard) putBlob(ctx context.Context, ref record.Blob, s *spool.Spool) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Offload.Timeout) // the completion reports a lost lease
	defer cancel()
	defer recovered("Config.Offload.Blobs.Put", &err)
	return g.cfg.Offload.Blobs.Put(ctx, ref.Name(), s.Section(ctx))
}

// reportBlob notifies the observer of a failure of the blob store.
func (g *Guard) reportBlob(ctx context.Context, id store.ID, err error) {
	g.report(ctx, reprise.Event{Kind: EventBlobError, ID: id, Err: err})
}
