package reprisefiber

import (
	"io"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/reprise-go/reprise/core/protocol"
)

// input is the protocol's view of a request: its header, and a body that was not
// read yet as an [io.Reader]. Its strings are views of fasthttp's buffers.
type input struct {
	c     *fiber.Ctx
	lines []string // of all calls of Values
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
)

var inputs = sync.Pool{New: func() any { return new(input) }}

func read(c *fiber.Ctx) *input {
	in := inputs.Get().(*input)
	in.c = c
	switch r := c.Request(); {
	case r.IsBodyStream():
		in.body = inStream
	case isParsed(c):
		in.body = inForm
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

func (in *input) request() protocol.Request {
	r := in.c.Request()
	req := protocol.Request{
		Method: in.c.Method(), Target: utils.UnsafeString(r.Header.RequestURI()),
		Path: utils.UnsafeString(r.URI().PathOriginal()), RawQuery: utils.UnsafeString(r.URI().QueryString()),
		Host: utils.UnsafeString(r.Header.Host()), Header: in, Section: in.section(), HTTP10: !r.Header.IsHTTP11(),
	}
	switch in.body {
	case inForm:
		req.Form = r.MultipartForm
	case inStream:
		req.Body, req.Length = in, int64(r.Header.ContentLength())
	default:
		req.Bytes = r.Body() // as it was sent: c.Body would decompress it
	}
	return req
}

// Values returns the value of every field line called name. Lines that a layer outside
// added count too.
func (in *input) Values(name string) []string {
	h := &in.c.Request().Header
	start := len(in.lines)
	if in.c.App().Server().DisableHeaderNamesNormalizing { // PeekAll finds a field in one spelling only
		h.VisitAll(func(key, value []byte) {
			if strings.EqualFold(utils.UnsafeString(key), name) {
				in.lines = append(in.lines, utils.UnsafeString(value))
			}
		})
	} else {
		for _, line := range h.PeekAll(name) {
			in.lines = append(in.lines, utils.UnsafeString(line))
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
	r := in.c.Request()
	n, err := r.BodyStream().Read(p)
	if in.n += n; err != nil && in.n < r.Header.ContentLength() {
		err = io.ErrUnexpectedEOF // fasthttp takes the end of the connection for that of the body
	}
	in.err = err
	return n, err
}

// putBack gives a request that passes the body that the protocol read, nil for none. A
// body in memory is still there.
func (in *input) putBack(body *protocol.Body) {
	if body != nil && in.body == inStream {
		in.c.Request().SetBodyRaw(body.Bytes())
	}
}

// discard reads the rest of a body stream, or closes the connection after the response:
// fasthttp would take the rest for the next request. A response that closes the
// connection anyway waits for no body.
func (in *input) discard(answer protocol.Response) {
	if option, _ := answer.Header.Get(fiber.HeaderConnection); option == "close" {
		return
	}
	if in.body == inStream && !drain(in, int64(in.c.Request().Header.ContentLength())) {
		in.c.Context().SetConnectionClose()
	}
}

// isParsed reports whether fasthttp parsed the body as a multipart form while it read it.
// The bytes are gone then, and Body writes the form in another order each time. The
// conditions are those of fasthttp.
func isParsed(c *fiber.Ctx) bool {
	h := &c.Request().Header
	return len(h.MultipartFormBoundary()) > 0 && h.ContentLength() > 0 && len(h.ContentEncoding()) == 0 &&
		!c.App().Server().DisablePreParseMultipartForm
}
