// Package labfiber serves the application of the adapter suite natively with Fiber.
package labfiber

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/protocol"
)

// New makes the server of the adapter for Fiber. Its first layer is the recovery, without
// which a panic ends the process.
func New(a *testapp.App) testapp.Server {
	router := newRouter(a)
	router.Use(recover.New())
	if a.Outer {
		router.Use(fiberOuter)
	}
	if a.Reads {
		router.Use(func(c *fiber.Ctx) error {
			_ = c.BodyParser(new(any)) // which leaves the body in memory
			return c.Next()
		})
	}
	router.Get("/executions/*", func(c *fiber.Ctx) error {
		call := fiberCall{c: c}
		return c.Type("json").Send(a.Report(strings.TrimPrefix(call.RawPath(), "/executions/")))
	})
	router.Get("/healthz", func(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusOK) })

	protected := testapp.NewGuarded(a, func(guard *protocol.Guard) fiber.Handler { return reprisefiber.Middleware(guard, fiberTenant) })
	protect := func(c *fiber.Ctx) error {
		call := fiberCall{c: c}
		return protected.Of(call.Method(), call.RawPath())(c)
	}
	router.Use("/u", protect)
	if a.Inner == nil {
		return serve(a, router, protect)
	}
	return serve(a, router, protect, reprisefiber.Middleware(a.Inner, fiberTenant))
}

// NewBare makes a server without the adapter, which benchmarks compare with.
func NewBare(a *testapp.App) testapp.Server {
	router := newRouter(a)
	router.Use(recover.New())
	return serve(a, router)
}

func newRouter(a *testapp.App) *fiber.App {
	return fiber.New(fiber.Config{
		DisableStartupMessage: true, BodyLimit: a.Limit, // 0: Fiber's own
		ReadBufferSize: 64 << 10, // for programs, which come in a field
	})
}

// serve adds the handler behind layers.
func serve(a *testapp.App, router *fiber.App, layers ...any) testapp.Server {
	router.Use(append(append([]any{"/t"}, layers...), func(c *fiber.Ctx) error {
		call := &fiberCall{c: c}
		return a.Run(c.UserContext(), call, strings.TrimPrefix(call.RawPath(), "/t/"))
	})...)
	return &fiberServer{app: router}
}

func fiberTenant(c *fiber.Ctx) (string, error) {
	var lines []string
	for _, line := range c.Request().Header.PeekAll(adaptertest.TenantHeader) {
		lines = append(lines, string(line))
	}
	return testapp.TenantOf(lines)
}

// fiberOuter is a layer outside of the middleware.
func fiberOuter(c *fiber.Ctx) error {
	o := testapp.NewOuter(c.Path(), c.Get(fiber.HeaderOrigin))
	for _, f := range o.Fields {
		c.Set(f[0], f[1])
	}
	if o.Status != 0 {
		c.Status(o.Status)
	}
	return c.Next()
}

// fiberCall is a [testapp.Call] in Fiber.
type fiberCall struct {
	c *fiber.Ctx
}

func (c *fiberCall) Method() string   { return c.c.Method() }
func (c *fiberCall) RawPath() string  { return string(c.c.Request().URI().PathOriginal()) }
func (c *fiberCall) RawQuery() string { return string(c.c.Request().URI().QueryString()) }
func (c *fiberCall) Program() string  { return c.c.Get(adaptertest.ProgramHeader) }

func (c *fiberCall) Body() ([]byte, error) { return c.c.Request().Body(), nil }

func (c *fiberCall) AddHeader(name, value string) { c.c.Response().Header.Add(name, value) }
func (c *fiberCall) RemoveHeader(name string)     { c.c.Response().Header.Del(name) }
func (c *fiberCall) SetStatus(status int)         { c.c.Status(status) }

func (c *fiberCall) SetStatusOnly(status int) error {
	c.c.Status(status)
	return nil
}

// Report is a no-op: Fiber keeps no list of errors.
func (c *fiberCall) Report(error) {}

// Inform is a no-op: fasthttp sends no informational responses but 100.
func (c *fiberCall) Inform(int, []adaptertest.Pair) {}

func (c *fiberCall) Write(p []byte, how adaptertest.WriteMode) {
	switch how {
	case adaptertest.WriteString:
		_, _ = c.c.WriteString(string(p))
	case adaptertest.WriteCopy:
		_, _ = io.Copy(c.c, struct{ io.Reader }{bytes.NewReader(p)})
	default:
		_, _ = c.c.Write(p)
	}
}

func (c *fiberCall) Flush() {}

func (c *fiberCall) Announce(trailers []string) {
	for _, name := range trailers {
		_ = c.c.Response().Header.AddTrailer(name) // which refuses invalid names
	}
}

// SetTrailer makes the body a stream, because fasthttp sends trailers behind no other.
func (c *fiberCall) SetTrailer(name, value string) {
	c.c.Response().Header.Add(name, value)
	if !c.c.Response().IsBodyStream() {
		_ = c.c.SendStream(bytes.NewReader(bytes.Clone(c.c.Response().Body()))) // which never fails
	}
}

// Stream lets produce run while Fiber sends its output, which is after the handler.
func (c *fiberCall) Stream(produce func(testapp.Output) adaptertest.Behaviour) {
	r, w := io.Pipe()
	go func() {
		out := fiberStream{bufio.NewWriter(w)}
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
	_ = c.c.SendStream(fiberBody{r}) // which never fails
}

func (c *fiberCall) Fail(status int) error { return fiber.NewError(status) }

// Abort sends the output as a body that breaks off: there is no other way to end a
// connection of fasthttp.
func (c *fiberCall) Abort() {
	written := bytes.Clone(c.c.Response().Body())
	broken, w := io.Pipe()
	w.CloseWithError(errAborts)
	_ = c.c.SendStream(io.MultiReader(bytes.NewReader(written), broken), len(written)+1) // which never fails
}

func (c *fiberCall) Hijack(answer []byte) error {
	c.c.Context().HijackSetNoResponse(true)
	c.c.Context().Hijack(func(conn net.Conn) { _, _ = conn.Write(answer) })
	return nil
}

// How a stream ends that is not whole.
var (
	errPanics = errors.New("the stream panics")
	errAborts = errors.New("the stream breaks off")
)

// fiberBody is the body of a stream. fasthttp recovers a reader that panics, and closes
// the connection.
type fiberBody struct{ *io.PipeReader }

func (b fiberBody) Read(p []byte) (int, error) {
	n, err := b.PipeReader.Read(p)
	if errors.Is(err, errPanics) {
		panic(testapp.PanicValue)
	}
	return n, err
}

// fiberStream is the output of a stream. The header is sent by then, and trailers belong
// to it.
type fiberStream struct{ w *bufio.Writer }

func (fiberStream) AddHeader(string, string)  {}
func (fiberStream) SetTrailer(string, string) {}

func (s fiberStream) Write(p []byte, how adaptertest.WriteMode) {
	if how == adaptertest.WriteString {
		_, _ = s.w.WriteString(string(p))
		return
	}
	_, _ = io.Copy(s.w, struct{ io.Reader }{bytes.NewReader(p)})
}

func (s fiberStream) Flush() { _ = s.w.Flush() }
