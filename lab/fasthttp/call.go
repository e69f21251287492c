// Package labfasthttp has what the applications of frameworks on fasthttp share. It knows
// fasthttp, and a framework by its interfaces.
package labfasthttp

import (
	"bufio"
	"bytes"
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

// Call is a [testapp.Call] in a framework, except for its errors.
type Call struct {
	Native Native
	Ctx    *fasthttp.RequestCtx
}

func (c *Call) Method() string   { return c.Native.Method() }
func (c *Call) RawPath() string  { return string(c.Ctx.URI().PathOriginal()) }
func (c *Call) RawQuery() string { return string(c.Ctx.URI().QueryString()) }
func (c *Call) Program() string  { return string(c.Ctx.Request.Header.Peek(adaptertest.ProgramHeader)) }

func (c *Call) Body() ([]byte, error) { return c.Ctx.Request.Body(), nil }

func (c *Call) AddHeader(name, value string) { c.Ctx.Response.Header.Add(name, value) }
func (c *Call) RemoveHeader(name string)     { c.Ctx.Response.Header.Del(name) }
func (c *Call) SetStatus(status int)         { c.Ctx.SetStatusCode(status) }

func (c *Call) SetStatusOnly(status int) error {
	c.Ctx.SetStatusCode(status)
	return nil
}

// Report is a no-op: the frameworks keep no list of errors.
func (c *Call) Report(error) {}

// Inform is a no-op: fasthttp sends no informational responses but 100.
func (c *Call) Inform(int, []adaptertest.Pair) {}

func (c *Call) Write(p []byte, how adaptertest.WriteMode) {
	switch how {
	case adaptertest.WriteString:
		_, _ = c.Native.WriteString(string(p))
	case adaptertest.WriteCopy:
		_, _ = io.Copy(c.Native, struct{ io.Reader }{bytes.NewReader(p)})
	default:
		_, _ = c.Native.Write(p)
	}
}

func (c *Call) Flush() {}

func (c *Call) Announce(trailers []string) {
	for _, name := range trailers {
		_ = c.Ctx.Response.Header.AddTrailer(name) // which refuses invalid names
	}
}

// SetTrailer makes the body a stream, because fasthttp sends trailers behind no other.
func (c *Call) SetTrailer(name, value string) {
	c.Ctx.Response.Header.Add(name, value)
	if !c.Ctx.Response.IsBodyStream() {
		_ = c.Native.SendStream(bytes.NewReader(bytes.Clone(c.Ctx.Response.Body()))) // which never fails
	}
}

// Stream lets produce run while fasthttp sends its output, which is after the handler.
func (c *Call) Stream(produce func(testapp.Output) adaptertest.Behaviour) {
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
	_ = c.Native.SendStream(body{r}) // which never fails
}

// Abort sends the output as a body that breaks off: there is no other way to end a
// connection of fasthttp.
func (c *Call) Abort() {
	written := bytes.Clone(c.Ctx.Response.Body())
	broken, w := io.Pipe()
	w.CloseWithError(errAborts)
	_ = c.Native.SendStream(io.MultiReader(bytes.NewReader(written), broken), len(written)+1) // which never fails
}

func (c *Call) Hijack(answer []byte) error {
	c.Ctx.HijackSetNoResponse(true)
	c.Ctx.Hijack(func(conn net.Conn) { _, _ = conn.Write(answer) })
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
