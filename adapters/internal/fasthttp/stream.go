package reprisefasthttp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// Why a stream ended before its handler ended it.
var (
	errStreamPanic = errors.New("reprise: panic in a response stream")
	errStreamLong  = errors.New("reprise: a response stream is longer than its declared length")
	errClientLeft  = errors.New("reprise: the client left a response that cannot be kept")
)

// readStream reads a stream before any of it is sent. If the stream breaks off, the
// client gets the part that was read, and then the same break.
func (r *recording[C]) readStream(capture *protocol.Capture) protocol.Captured {
	size, err := r.resp.Header.ContentLength(), readAll(capture, r.resp.BodyStream())
	_ = r.resp.CloseBodyStream() // its end, or its failure, is known
	captured := capture.Captured(r.resp.StatusCode(), err)
	switch {
	case captured.Cut:
		r.resp.SetBodyStream(io.MultiReader(bytes.NewReader(bytes.Clone(captured.Body)), failure{cmp.Or(err, io.ErrUnexpectedEOF)}), size)
	case captured.Oversize: // another response takes its place
	case size >= 0:
		r.resp.SetBody(captured.Body)
	default: // in chunks, because of its trailers
		r.resp.SetBodyStream(bytes.NewReader(bytes.Clone(captured.Body)), size)
	}
	return captured
}

// sendHeld sends a body that was too long for memory, and breaks it off where the handler
// did.
func (r *recording[C]) sendHeld(reply protocol.Reply, cut bool) {
	if !cut {
		r.resp.SetBodyStream(reply.Stream, int(reply.Length))
		return
	}
	r.resp.SetBodyStream(brokenOff{io.MultiReader(reply.Stream, failure{io.ErrUnexpectedEOF}), reply.Stream}, r.resp.Header.ContentLength())
}

// brokenOff is a body that ends in an error.
type brokenOff struct {
	io.Reader
	io.Closer
}

// readAll reads a stream into its capture. A stream that panics fails, as it does in
// fasthttp.
func readAll(capture *protocol.Capture, stream io.Reader) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errStreamPanic, p)
		}
	}()
	_, err = capture.ReadFrom(stream)
	return err
}

// goLive sends the stream as the handler produces it, and records it on the way.
func (r *recording[C]) goLive(capture *protocol.Capture) {
	r.live = true
	s := &stream{x: r.x, capture: capture, from: new(fasthttp.Response)}
	move(s.from, r.resp) // fasthttp would close the stream if another one took its place
	s.from.Header.CopyTo(&r.resp.Header)
	r.resp.SkipBody, r.resp.ImmediateHeaderFlush, r.resp.StreamBody = s.from.SkipBody, s.from.ImmediateHeaderFlush, s.from.StreamBody
	r.x.After(fields(&s.from.Header, true))
	mark(&r.resp.Header, r.x.Mark())
	s.declared = s.from.Header.ContentLength()
	sent := &sending{s}
	runtime.AddCleanup(sent, (*stream).forget, s)
	r.resp.SetBodyStream(sent, s.declared)
}

// move copies src to dst, and empties src.
func move[T any](dst, src *T) {
	var empty T
	*dst, *src = *src, empty
}

// sending is a stream as its host has it. A host may forget it, neither read to its end
// nor closed: adaptor.FiberApp when the client leaves, fasthttp when a timeout outside
// answers in its place.
type sending struct{ *stream }

// stream is the body of a response that is recorded while it is sent. The goroutine that
// sends the response reads and closes it, and thereby finishes the exchange.
type stream struct {
	x        *protocol.Exchange
	capture  *protocol.Capture
	from     *fasthttp.Response // the handler's response
	declared int                // its length, negative if none was declared
	finished bool
	closed   bool
}

// forget closes a stream that its host forgot.
func (s *stream) forget() {
	if !s.closed {
		go s.Close() // it reads the rest, and waits for the store
	}
}

// Read implements [io.Reader]. The body is kept before the client gets the end of it.
func (s *stream) Read(p []byte) (n int, err error) {
	err = errStreamPanic // until the source returns; fasthttp recovers the panic
	defer func() {
		if err != nil {
			s.finish(err)
		}
	}()
	n, err = s.read(p)
	if err == nil && s.declared >= 0 && s.capture.Whole(nil) {
		err = s.readEnd()
	}
	return n, err
}

func (s *stream) read(p []byte) (int, error) {
	n, err := s.from.BodyStream().Read(p)
	_, _ = s.capture.Write(p[:n]) // which never fails
	return n, err
}

// readEnd finds out whether the source ends where its declared length does.
func (s *stream) readEnd() error {
	var more [1]byte
	for {
		switch n, err := s.read(more[:]); {
		case n > 0:
			return errStreamLong
		case err != nil:
			return err
		}
	}
}

// finish finishes the exchange of a stream that ended with err.
func (s *stream) finish(err error) {
	if s.finished {
		return
	}
	s.finished = true
	s.x.After(fields(&s.from.Header, true))
	if s.declared < 0 { // fasthttp sends trailers after chunks only
		s.x.Trailers(trailers(&s.from.Header))
	}
	captured := s.capture.Captured(s.from.StatusCode(), err)
	captured.Sent = true
	if err == errClientLeft { //nolint:errorlint // it is never wrapped
		captured.Cut = false // what the stream writes is a body, and no part of the operation (R35)
	}
	s.x.Finish(captured)
}

// Close implements [io.Closer]. If the client has left, the rest of the stream is read
// for the record (R23), unless it is too long to be kept: then it ends here, as it would
// without a record.
func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	defer s.x.Close()
	defer s.from.CloseBodyStream() //nolint:errcheck // the response is over
	var buf [4 << 10]byte
	for !s.finished && !s.capture.Oversize() {
		_, _ = s.Read(buf[:]) // an error finishes it
	}
	s.finish(errClientLeft)
	return nil
}
