package reprisefasthttp

import (
	"io"
	"strings"
	"sync"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// input is the protocol's view of a request: its header, and a body that was not
// read yet as an [io.Reader]. Its strings are views of fasthttp's buffers.
type input struct {
	req   *fasthttp.Request
	exact bool     // field names are as they were sent: Server.DisableHeaderNamesNormalizing
	lines []string // that all calls of Values returned
	n     int      // how many bytes of a stream were read
	body  source
	err   error // how reading the body ended
}

// source is where the body is.
type source uint8

const (
	inMemory source = iota
	inStream
	inForm
	missing  // in part or whole: the server gave up reading (R27)
	consumed // a layer outside took it (R50)
)

var inputs = sync.Pool{New: func() any { return new(input) }}

// read returns the input of a request. unread says that it may be one that fasthttp could
// not read to its end. If it is the first on its connection, it has no connection then:
// fasthttp sets that when it has read a request.
func read(ctx *fasthttp.RequestCtx, server *fasthttp.Server, unread bool) *input {
	in := inputs.Get().(*input)
	in.req, in.exact = &ctx.Request, server.DisableHeaderNamesNormalizing
	switch {
	case in.req.IsBodyStream():
		in.body = inStream
	case isParsed(&in.req.Header, server):
		in.body = inForm
	case in.req.Header.ContentLength() > 0 && len(in.req.Body()) == 0:
		in.body = consumed
	case unread && in.hasTrailers() && ctx.ConnID() == 0:
		in.body = missing
	default:
		in.body = inMemory
	}
	return in
}

// release ends the use of in, and of the strings that it returned.
func (in *input) release() {
	clear(in.lines)
	*in = input{lines: in.lines[:0]}
	inputs.Put(in)
}

func (in *input) request(method string) protocol.Request {
	r := in.req
	req := protocol.Request{
		Method: method, Target: view(r.Header.RequestURI()),
		Path: view(r.URI().PathOriginal()), RawQuery: view(r.URI().QueryString()),
		Host: view(r.Header.Host()), Header: in, Section: in.section(), HTTP10: !r.Header.IsHTTP11(),
	}
	switch in.body {
	case inForm:
		req.Form = r.MultipartForm
	case inStream:
		req.Body, req.Length = in, int64(r.Header.ContentLength())
	case missing:
		req.Body, req.Length = failure{io.ErrUnexpectedEOF}, -1
	case consumed:
		req.Body, req.Length = failure{io.EOF}, int64(r.Header.ContentLength())
	default:
		req.Bytes = r.Body() // as it was sent: Fiber's Body would decompress it
	}
	return req
}

// Values returns the value of every field line called name. Lines that a layer outside
// added count too.
func (in *input) Values(name string) []string {
	h := &in.req.Header
	start := len(in.lines)
	if in.exact { // PeekAll finds a field in one spelling only
		h.VisitAll(func(key, value []byte) {
			if strings.EqualFold(view(key), name) {
				in.lines = append(in.lines, view(value))
			}
		})
	} else {
		for _, line := range h.PeekAll(name) {
			in.lines = append(in.lines, view(line))
		}
	}
	end := len(in.lines)
	if end > start && in.hasTrailers() {
		end = min(end, start+in.section().Count(name)) // trailers are behind the fields before the body
	}
	return in.lines[start:end:end]
}

// Read implements [io.Reader] for a body that is not in memory.
func (in *input) Read(p []byte) (int, error) {
	if in.err != nil {
		return 0, in.err
	}
	n, err := in.req.BodyStream().Read(p)
	if in.n += n; err != nil && in.n < in.req.Header.ContentLength() {
		err = io.ErrUnexpectedEOF // fasthttp takes the end of the connection for that of the body
	}
	in.err = err
	return n, err
}

// putBack restores the body of a request that passes: body has the bytes that the
// protocol read of it, nil for none. A body in memory was never removed.
func (in *input) putBack(body *protocol.Body) {
	if body != nil && in.body == inStream {
		in.req.SetBodyRaw(body.Bytes())
	}
}

// discard reads the rest of a body stream, or reports that the connection has to be
// closed after the response: fasthttp would take the rest for the next request. A
// response that closes the connection anyway waits for no body.
func (in *input) discard(answer protocol.Response) (reusable bool) {
	if option, _ := answer.Header.Get(fasthttp.HeaderConnection); option == "close" {
		return true
	}
	return in.body != inStream || drain(in, int64(in.req.Header.ContentLength()))
}

// isParsed reports whether fasthttp parsed the body as a multipart form while it read it.
// The bytes are gone then, and Body writes the form in another order each time. The
// conditions are those of fasthttp.
func isParsed(h *fasthttp.RequestHeader, server *fasthttp.Server) bool {
	return len(h.MultipartFormBoundary()) > 0 && h.ContentLength() > 0 && len(h.ContentEncoding()) == 0 &&
		!server.DisablePreParseMultipartForm
}

// view returns b as a string that is valid as long as b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) } //nolint:gosec // the protocol copies the strings that it keeps
