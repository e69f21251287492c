package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"strings"
	"sync"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
)

// errBodyClosed is the error of reading the request body once the exchange is over.
var errBodyClosed = errors.New("reprise: request body read after the request was answered")

// Body is the body of a keyed request, read in full and given to the handler as it was
// sent. It is safe for concurrent use, and empty once the exchange is closed.
type Body struct {
	mu     sync.Mutex
	data   []byte
	off    int
	closed bool
}

// Read implements [io.Reader].
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, errBodyClosed
	case b.off >= len(b.data):
		return 0, io.EOF
	}
	n := copy(p, b.data[b.off:])
	b.off += n
	return n, nil
}

// Bytes returns the whole body. It is valid until the exchange is closed, and must not be
// modified.
func (b *Body) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data
}

// Close implements [io.Closer]. Reading after it fails, as it does after a framework's
// own body was closed.
func (b *Body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// drop forgets the bytes, whose memory another request is about to use.
func (b *Body) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data, b.closed = nil, true
}

// readBody reads the body of a request, at most limit bytes, and returns the code of the
// problem with it (R26 to R28).
func (s *scratch) readBody(req *Request, limit int) (body []byte, problem Code, err error) {
	if req.Length > int64(limit) || len(req.Bytes) > limit {
		return nil, CodeRequestTooLarge, nil
	}
	switch {
	case req.message != nil:
		if body, err = req.message(); err != nil {
			return nil, CodeInternalError, err
		}
		if len(body) > limit {
			return nil, CodeRequestTooLarge, nil
		}
		return body, "", nil
	case req.Form != nil:
		s.request = s.request[:0]
		form, err := req.Form()
		if err != nil {
			return nil, CodeRequestInvalid, &unreadBody{err}
		}
		return s.useForm(req, form, limit)
	case req.Body == nil:
		return req.Bytes, "", nil
	}
	body, err = readAtMost(s.request[:0], req.Body, limit+1)
	s.request = body
	switch {
	case len(body) > limit:
		return nil, CodeRequestTooLarge, nil
	case err != nil && req.TooLarge != nil && req.TooLarge(err):
		return nil, CodeRequestTooLarge, err
	case err != nil:
		return nil, CodeRequestInvalid, &unreadBody{err}
	case req.isWhole(body):
		return body, "", nil
	default:
		return s.readParsed(req, limit)
	}
}

// isWhole reports whether body, which was read to its end, is known to be the whole body
// (R50). A layer outside may have consumed a part of it. That shows where the declared
// length is missed. Where no length is known, or a content coding changes it, a body of
// which only white space is left was consumed: a decoder of JSON leaves such a rest. If
// no byte is left, no length is known, and neither a Content-Type nor a coding says that
// there was a body, it is an empty one: proxies send those in chunks.
func (r *Request) isWhole(body []byte) bool {
	switch {
	case r.Length < 0 && len(body) == 0 && len(r.values("Content-Type")) == 0 && !r.isCoded():
		return !r.isKept()
	case r.Length > 0 && !r.isCoded():
		return int64(len(body)) >= r.Length
	case hasParts(r.parsedForm()):
		return false
	default:
		return r.Length == 0 || len(bytes.TrimLeft(body, " \t\r\n")) > 0
	}
}

// isCoded reports whether the body has a content coding, so that a layer outside that
// decoded it may have changed its length.
func (r *Request) isCoded() bool {
	for _, coding := range r.values("Content-Encoding") {
		if !strings.EqualFold(syntax.TrimSpace(coding), "identity") {
			return true
		}
	}
	return false
}

// isKept reports whether the framework keeps a form or the bytes of a body.
func (r *Request) isKept() bool {
	return r.Parsed != nil && (hasParts(r.Parsed.ParsedForm()) || len(r.Parsed.ParsedBytes()) > 0)
}

// parsedForm returns the form that another layer parsed, nil without one.
func (r *Request) parsedForm() *multipart.Form {
	if r.Parsed == nil {
		return nil
	}
	return r.Parsed.ParsedForm()
}

func hasParts(form *multipart.Form) bool { return form != nil && len(form.Value)+len(form.File) > 0 }

var errBodyGone = errors.New("protocol: a layer outside the middleware consumed the body, or a part of it, and kept neither its form nor its bytes")

// readParsed returns the substitute for a body that another layer, or the scope function,
// consumed before the middleware: the notation of the form that it parsed, or the bytes
// that the framework keeps. Without them the request cannot be compared, and is refused.
func (s *scratch) readParsed(req *Request, limit int) (body []byte, problem Code, err error) {
	if form := req.parsedForm(); hasParts(form) {
		return s.useForm(req, form, limit)
	}
	if req.Parsed == nil {
		return nil, CodeRequestInvalid, errBodyGone
	}
	switch kept := req.Parsed.ParsedBytes(); {
	case len(kept) > limit:
		return nil, CodeRequestTooLarge, nil
	case len(kept) == 0, !req.isWhole(kept):
		return nil, CodeRequestInvalid, errBodyGone
	default:
		return kept, "", nil
	}
}

// useForm returns the notation of a form, which only a fingerprint may take for the body.
// What was read of the body stays before it, for the handler.
func (s *scratch) useForm(req *Request, form *multipart.Form, limit int) (body []byte, problem Code, err error) {
	if canonical.FormSize(form) > int64(limit) {
		return nil, CodeRequestTooLarge, nil
	}
	read := len(s.request)
	s.request, err = canonical.AppendForm(s.request, form)
	if err != nil {
		return nil, CodeRequestInvalid, &unreadBody{err}
	}
	req.notation, req.rest = true, s.request[:read:read]
	return s.request[read:], "", nil
}

// bytesGone reports whether another layer parsed the body as a form, and left no bytes of
// it, or white space only.
func (r *Request) bytesGone() bool { return r.notation && len(bytes.TrimSpace(r.rest)) == 0 }

// forHandler returns the body that the handler reads: the one that is compared, except
// for the notation of a form.
func (r *Request) forHandler(body []byte) []byte {
	if r.notation {
		return r.rest
	}
	return body
}

// unreadBody says that the body of a request could not be read. Its text, which may be
// logged, has only the kind of the cause: parsers quote the client's input.
type unreadBody struct{ cause error }

// Error implements error.
func (e *unreadBody) Error() string {
	const what = "reprise: the body of the request could not be read"
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(e.cause, io.ErrUnexpectedEOF):
		return what + ": it ended early"
	case errors.As(e.cause, &timeout) && timeout.Timeout():
		return what + ": it did not arrive in time"
	default:
		return fmt.Sprintf("%s: it is malformed, or its connection broke (%T)", what, e.cause)
	}
}

// Unwrap returns the cause, whose text may have bytes of the request.
func (e *unreadBody) Unwrap() error { return e.cause }

// readAtMost appends bytes from r to buf until r ends, or buf has the length most.
func readAtMost(buf []byte, r io.Reader, most int) ([]byte, error) {
	for len(buf) < most {
		var err error
		buf, err = appendRead(buf, r, most)
		if err == io.EOF { //nolint:errorlint // a wrapped one is a failure, as for io.Copy
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// appendRead appends the bytes of one call of r.Read, until buf has the length most.
func appendRead(buf []byte, r io.Reader, most int) ([]byte, error) {
	if len(buf) == cap(buf) {
		buf = append(buf, 0)[:len(buf)]
	}
	n, err := r.Read(buf[len(buf):min(cap(buf), most)])
	return buf[:len(buf)+n], err
}
