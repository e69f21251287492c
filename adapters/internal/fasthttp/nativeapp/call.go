// Package nativeapp has the common parts of the applications of frameworks on fasthttp.
// It knows fasthttp, and a framework by its interfaces.
package nativeapp

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
)

// Native has the methods of a framework's context by which its handlers respond.
type Native interface {
	io.Writer
	io.StringWriter

	Method(override ...string) string
	SendStream(body io.Reader, size ...int) error
}

// Tenant returns the tenant of a request.
func Tenant(ctx *fasthttp.RequestCtx) (string, error) {
	var lines []string
	for _, line := range ctx.Request.Header.PeekAll(adaptertest.TenantHeader) {
		lines = append(lines, string(line))
	}
	return testapp.TenantOf(lines)
}

// NewCall returns the call of a handler. fail makes the framework's own error of a
// status.
func NewCall(native Native, ctx *fasthttp.RequestCtx, fail func(status int) error) testapp.Call {
	return &call{native, ctx, fail}
}

// call is a [testapp.Call] in a framework.
type call struct {
	native Native
	ctx    *fasthttp.RequestCtx
	fail   func(status int) error
}

func (c *call) Method() string   { return c.native.Method() }
func (c *call) RawPath() string  { return string(c.ctx.URI().PathOriginal()) }
func (c *call) RawQuery() string { return string(c.ctx.URI().QueryString()) }
func (c *call) Program() string  { return string(c.ctx.Request.Header.Peek(adaptertest.ProgramHeader)) }

func (c *call) Body() ([]byte, error) { return c.ctx.Request.Body(), nil }

func (c *call) AddHeader(name, value string) { c.ctx.Response.Header.Add(name, value) }
func (c *call) RemoveHeader(name string)     { c.ctx.Response.Header.Del(name) }
func (c *call) SetStatus(status int)         { c.ctx.SetStatusCode(status) }

func (c *call) SetStatusOnly(status int) error {
	c.ctx.SetStatusCode(status)
	return nil
}

// Report is a no-op: the frameworks keep no list of errors.
func (c *call) Report(error) {}

// Inform is a no-op: fasthttp sends no informational responses but 100.
func (c *call) Inform(int, []adaptertest.Pair) {}

func (c *call) Write(p []byte, how adaptertest.WriteMode) {
	switch how {
	case adaptertest.WriteString:
		_, _ = c.native.WriteString(string(p))
	case adaptertest.WriteCopy:
		_, _ = io.Copy(c.native, struct{ io.Reader }{bytes.NewReader(p)})
	default:
		_, _ = c.native.Write(p)
	}
}

func (c *call) Flush() {}

func (c *call) Announce(trailers []string) {
	for _, name := range trailers {
		_ = c.ctx.Response.Header.AddTrailer(name) // which refuses invalid names
	}
}

// SetTrailer makes the body a stream, because fasthttp sends trailers behind no other.
func (c *call) SetTrailer(name, value string) {
	c.ctx.Response.Header.Add(name, value)
	if !c.ctx.Response.IsBodyStream() {
		_ = c.native.SendStream(bytes.NewReader(bytes.Clone(c.ctx.Response.Body()))) // which never fails
	}
}

// Stream lets produce run while fasthttp sends its output, which is after the handler.
func (c *call) Stream(produce func(testapp.Output) adaptertest.Behaviour) {
	r, w := io.Pipe()
	go func() {
		out := stream{bufio.NewWriter(w)}
		switch produce(out) {
		case adaptertest.Panics:
			w.CloseWithError(errPanics)
		case adaptertest.Aborts:
			w.CloseWithError(errAborts)
		default:
			out.Flush()
			_ = w.Close() // which never fails
		}
	}()
	_ = c.native.SendStream(body{r}, cmp.Or(c.ctx.Response.Header.ContentLength(), -1)) // as declared, and never fails
}

func (c *call) Fail(status int) error { return c.fail(status) }

// Abort sends the output as a body that breaks off: there is no other way to end a
// connection of fasthttp.
func (c *call) Abort() {
	written := bytes.Clone(c.ctx.Response.Body())
	broken, w := io.Pipe()
	w.CloseWithError(errAborts)
	_ = c.native.SendStream(io.MultiReader(bytes.NewReader(written), broken), len(written)+1) // which never fails
}

func (c *call) Hijack(answer []byte) error {
	c.ctx.HijackSetNoResponse(true)
	c.ctx.Hijack(func(conn net.Conn) { _, _ = conn.Write(answer) })
	return nil
}

// How a stream ends that is not whole.
var (
	errPanics = errors.New("the stream panics")
	errAborts = errors.New("the stream breaks off")
)

// body is the body of a stream. fasthttp recovers a reader that panics, and closes
// the connection.
type body struct{ *io.PipeReader }

func (b body) Read(p []byte) (int, error) {
	n, err := b.PipeReader.Read(p)
	if errors.Is(err, errPanics) {
		panic(testapp.PanicValue)
	}
	return n, err
}

// stream is the output of a stream. The header is sent by then, and trailers belong
// to it.
type stream struct{ w *bufio.Writer }

func (stream) AddHeader(string, string)  {}
func (stream) SetTrailer(string, string) {}

func (s stream) Write(p []byte, how adaptertest.WriteMode) {
	if how == adaptertest.WriteString {
		_, _ = s.w.WriteString(string(p))
		return
	}
	_, _ = io.Copy(s.w, struct{ io.Reader }{bytes.NewReader(p)})
}

func (s stream) Flush() { _ = s.w.Flush() }
