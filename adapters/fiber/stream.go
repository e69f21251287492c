package reprisefiber

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// isShort reports whether the stream is read before anything is sent: it has a length that can be kept, or the effects commit with the
// response.
func (r *recording) isShort() bool {
	size := r.resp.Header.ContentLength()
	return r.x.Buffered() || 0 <= size && size <= r.x.MaxResponseBody()
}

// readStream reads the stream as far as it can be kept. One that fails, or is shorter than it says, goes out as far as it came, and is cut
// there.
func (r *recording) readStream(captured *protocol.Captured) {
	size, most := r.resp.Header.ContentLength(), r.x.MaxResponseBody()
	limit := most + 1
	if 0 <= size && size <= most {
		limit = size
	}
	n, err := r.copyStream(int64(limit))
	if err == nil && n < min(int64(size), int64(limit)) {
		err = io.ErrUnexpectedEOF
	}
	_ = r.resp.CloseBodyStream() // what it had was read, or failed
	body := r.spare.Body()
	switch {
	case err == nil && len(body) > most:
		captured.Oversize = true
	case err == nil && size >= 0:
		captured.Body = body
		r.resp.SetBody(body)
	default: // in chunks, because of its trailers, or cut
		captured.Body, captured.Cut = body, err != nil
		r.resp.SetBodyStream(io.MultiReader(bytes.NewReader(bytes.Clone(body)), failure{err}), size)
	}
}

// copyStream reads up to limit bytes of the stream. A stream that panics fails, as it does in fasthttp.
func (r *recording) copyStream(limit int64) (n int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reprisefiber: panic in a response stream: %v", p)
		}
	}()
	return io.Copy(r.spare.BodyWriter(), io.LimitReader(r.resp.BodyStream(), limit))
}

// failure is a reader that only fails, or ends where there is no error.
type failure struct{ err error }

func (f failure) Read([]byte) (int, error) { return 0, cmp.Or(f.err, io.EOF) }

// goLive lets the stream leave as it comes, and records it on the way.
func (r *recording) goLive() {
	r.live = true
	s := &stream{x: r.x, from: new(fasthttp.Response), kept: r.spare}
	move(s.from, r.resp) // fasthttp would close the stream if another one took its place
	s.from.Header.CopyTo(&r.resp.Header)
	r.resp.SkipBody, r.resp.ImmediateHeaderFlush, r.resp.StreamBody = s.from.SkipBody, s.from.ImmediateHeaderFlush, s.from.StreamBody
	if mark := r.x.Mark(); mark.Name != "" {
		r.resp.Header.Set(mark.Name, mark.Value)
	}
	s.size = s.from.Header.ContentLength()
	r.resp.SetBodyStream(s, s.size)
}

// move makes dst what src was, and src empty.
func move[T any](dst, src *T) {
	var empty T
	*dst, *src = *src, empty
}

// stream is the body of a response that is recorded while it is sent. The goroutine that sends the response reads and closes it, and
// thereby ends the exchange.
type stream struct {
	x     *protocol.Exchange
	from  *fasthttp.Response // what the handler made
	kept  *fasthttp.Response // its body is what is kept; nil once the exchange is closed
	size  int                // what the handler said, negative if nothing
	n     int
	ended bool
}

// Read implements [io.Reader]. Before the client gets the end of the body, it is kept.
func (s *stream) Read(p []byte) (n int, err error) {
	cut := true
	defer func() {
		if cut {
			s.end(true) // a panic, too, which fasthttp recovers
		}
	}()
	n, err = s.from.BodyStream().Read(p)
	s.n += n
	if s.n <= s.x.MaxResponseBody() {
		s.kept.AppendBody(p[:n])
	}
	whole := err == io.EOF && s.size < 0 || s.n == s.size
	if whole {
		s.end(false)
	}
	cut = err != nil && !whole
	return n, err
}

// end settles the exchange.
func (s *stream) end(cut bool) {
	if s.ended {
		return
	}
	s.ended = true
	s.x.After(fields(&s.from.Header, true))
	s.x.Finish(protocol.Captured{
		Status: s.from.StatusCode(), Body: s.kept.Body(), Oversize: s.n > s.x.MaxResponseBody(), Sent: true, Cut: cut,
	})
}

// Close implements [io.Closer]. Where the client is gone the stream is read to its end all the same (R23).
func (s *stream) Close() error {
	if s.kept == nil {
		return nil
	}
	if !s.ended {
		_, _ = io.Copy(io.Discard, s)
	}
	err := s.from.CloseBodyStream()
	s.x.Close()
	fasthttp.ReleaseResponse(s.kept)
	s.kept = nil
	return err
}
