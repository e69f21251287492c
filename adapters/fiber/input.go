package reprisefiber

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/reprise-go/reprise/core/protocol"
)

// input is what the protocol looks at of a request: its header as a [protocol.HeaderValues], and a body that is still to be read
// as an [io.Reader]. Its strings are views into the buffers of fasthttp.
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

// release ends the use of in, and of the strings that it handed out.
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
		Header: in,
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

// Values implements [protocol.HeaderValues].
func (in *input) Values(name string) []string {
	h := &in.c.Request().Header
	start := len(in.lines)
	if in.c.App().Server().DisableHeaderNamesNormalizing { // then fasthttp finds a field in one spelling only
		h.VisitAllInOrder(func(key, value []byte) {
			if strings.EqualFold(utils.UnsafeString(key), name) {
				in.lines = append(in.lines, utils.UnsafeString(value))
			}
		})
		return in.lines[start:len(in.lines):len(in.lines)]
	}
	lines := h.PeekAll(name)
	if len(lines) > 0 && h.ContentLength() <= 0 { // it may be chunked
		if sent, chunked := countRaw(h.RawHeaders(), name); chunked {
			lines = lines[:min(len(lines), sent)] // what follows came as a trailer, which fasthttp puts behind the header (R7)
		}
	}
	for _, line := range lines {
		in.lines = append(in.lines, utils.UnsafeString(line))
	}
	return in.lines[start:len(in.lines):len(in.lines)]
}

// countRaw counts the lines of a header section called name, and tells whether one is about the transfer coding, without which
// there is no trailer section.
func countRaw(raw []byte, name string) (lines int, coded bool) {
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		key, _, _ := bytes.Cut(line, []byte(":"))
		if strings.EqualFold(utils.UnsafeString(key), name) {
			lines++
		}
		coded = coded || strings.EqualFold(utils.UnsafeString(key), fiber.HeaderTransferEncoding)
	}
	return lines, coded
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

// discard reads the rest of a body stream, or makes the connection close: fasthttp would take it for the next request.
func (in *input) discard() {
	if in.body == inStream && !protocol.Drain(in, int64(in.c.Request().Header.ContentLength())) {
		in.c.Context().SetConnectionClose()
	}
}

// isParsed reports whether fasthttp parsed the body as a multipart form while it read it, under the conditions of its own.
// Its bytes are gone then, and what Body makes of the form has another order each time.
func isParsed(c *fiber.Ctx) bool {
	h := &c.Request().Header
	return len(h.MultipartFormBoundary()) > 0 && h.ContentLength() > 0 && len(h.ContentEncoding()) == 0 &&
		!c.App().Server().DisablePreParseMultipartForm
}
