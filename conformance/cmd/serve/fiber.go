package serve

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
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/protocol"
)

// newFiber makes the server of the adapter for Fiber. Its first layer is the recovery, without which a panic ends the process.
func newFiber(a *app) native {
	router := fiber.New(fiber.Config{DisableStartupMessage: true, ReadBufferSize: 64 << 10}) // for programs, which come in a field
	router.Use(recover.New())
	if a.outer {
		router.Use(fiberOuter)
	}
	router.Get("/executions/*", func(c *fiber.Ctx) error {
		call := fiberCall{c: c}
		return c.Type("json").Send(a.runs.report(strings.TrimPrefix(call.rawPath(), "/executions/")))
	})
	router.Get("/healthz", func(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusOK) })

	protected := newGuarded(a, func(guard *protocol.Guard) fiber.Handler { return reprisefiber.Middleware(guard, fiberTenant) })
	protect := func(c *fiber.Ctx) error {
		call := fiberCall{c: c}
		return protected.of(call.method(), call.rawPath())(c)
	}
	router.Use("/u", protect)
	router.Use("/t", protect, func(c *fiber.Ctx) error {
		call := &fiberCall{c: c}
		return a.run(c.UserContext(), call, strings.TrimPrefix(call.rawPath(), "/t/"))
	})
	return &fiberServer{app: router}
}

func fiberTenant(c *fiber.Ctx) (string, error) {
	var lines []string
	for _, line := range c.Request().Header.PeekAll(conformance.TenantHeader) {
		lines = append(lines, string(line))
	}
	return tenantOf(lines)
}

// fiberOuter is a layer outside of the middleware.
func fiberOuter(c *fiber.Ctx) error {
	o := newOuter(c.Path(), c.Get(fiber.HeaderOrigin))
	for _, f := range o.fields {
		c.Set(f[0], f[1])
	}
	if o.status != 0 {
		c.Status(o.status)
	}
	return c.Next()
}

// fiberCall is a [call] in Fiber.
type fiberCall struct {
	c *fiber.Ctx
}

func (c *fiberCall) method() string   { return c.c.Method() }
func (c *fiberCall) rawPath() string  { return string(c.c.Request().URI().PathOriginal()) }
func (c *fiberCall) rawQuery() string { return string(c.c.Request().URI().QueryString()) }
func (c *fiberCall) program() string  { return c.c.Get(conformance.ProgramHeader) }

func (c *fiberCall) body() ([]byte, error) { return c.c.BodyRaw(), nil }

func (c *fiberCall) addHeader(name, value string) { c.c.Response().Header.Add(name, value) }
func (c *fiberCall) setStatus(status int)         { c.c.Status(status) }

// inform does nothing: fasthttp sends no informational responses but 100.
func (c *fiberCall) inform(int, []conformance.Pair) {}

func (c *fiberCall) write(p []byte, how conformance.WriteMode) {
	switch how {
	case conformance.WriteString:
		_, _ = c.c.WriteString(string(p))
	case conformance.WriteCopy:
		_, _ = io.Copy(c.c, struct{ io.Reader }{bytes.NewReader(p)})
	default:
		_, _ = c.c.Write(p)
	}
}

func (c *fiberCall) flush() {}

func (c *fiberCall) announce(trailers []string) {
	for _, name := range trailers {
		_ = c.c.Response().Header.AddTrailer(name) // which refuses what cannot be one
	}
}

// setTrailer makes the body a stream, because fasthttp sends trailers behind no other.
func (c *fiberCall) setTrailer(name, value string) {
	c.c.Response().Header.Add(name, value)
	if !c.c.Response().IsBodyStream() {
		_ = c.c.SendStream(bytes.NewReader(bytes.Clone(c.c.Response().Body()))) // which never fails
	}
}

// stream lets produce run while Fiber sends what it wrote, which is after the handler.
func (c *fiberCall) stream(produce func(output) conformance.Behaviour) {
	r, w := io.Pipe()
	go func() {
		out := fiberStream{bufio.NewWriter(w)}
		switch produce(out) {
		case conformance.Panics:
			w.CloseWithError(errPanics)
		case conformance.Aborts:
			w.CloseWithError(errAborts)
		default:
			out.flush()
			_ = w.Close() // which never fails
		}
	}()
	_ = c.c.SendStream(fiberBody{r}) // which never fails
}

func (c *fiberCall) fail(status int) error { return fiber.NewError(status) }

// abort sends what was written as a body that breaks off: there is no other way to end a connection of fasthttp.
func (c *fiberCall) abort() {
	written := bytes.Clone(c.c.Response().Body())
	broken, w := io.Pipe()
	w.CloseWithError(errAborts)
	_ = c.c.SendStream(io.MultiReader(bytes.NewReader(written), broken), len(written)+1) // which never fails
}

func (c *fiberCall) hijack(answer []byte) error {
	c.c.Context().HijackSetNoResponse(true)
	c.c.Context().Hijack(func(conn net.Conn) { _, _ = conn.Write(answer) })
	return nil
}

// How a stream ends that is not whole.
var (
	errPanics = errors.New("the stream panics")
	errAborts = errors.New("the stream breaks off")
)

// fiberBody is the body of a stream. fasthttp recovers a reader that panics, and closes the connection.
type fiberBody struct{ *io.PipeReader }

func (b fiberBody) Read(p []byte) (int, error) {
	n, err := b.PipeReader.Read(p)
	if errors.Is(err, errPanics) {
		panic(panicValue)
	}
	return n, err
}

// fiberStream is the output of a stream. The header is sent by then, and trailers belong to it.
type fiberStream struct{ w *bufio.Writer }

func (fiberStream) addHeader(string, string)  {}
func (fiberStream) setTrailer(string, string) {}

func (s fiberStream) write(p []byte, how conformance.WriteMode) {
	if how == conformance.WriteString {
		_, _ = s.w.WriteString(string(p))
		return
	}
	_, _ = io.Copy(s.w, struct{ io.Reader }{bytes.NewReader(p)})
}

func (s fiberStream) flush() { _ = s.w.Flush() }
