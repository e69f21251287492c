// Package nativeapp serves the application of the adapter suite natively with Fiber v3.
package nativeapp

import (
	"bytes"
	"net"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	shared "github.com/reprise-go/reprise/adapters/internal/fasthttp/nativeapp"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/protocol"
)

// New makes the server of the adapter for Fiber v3. Its first layer is the recovery,
// without which a panic ends the process.
func New(a *testapp.App) testapp.Server {
	router := newRouter(a)
	router.Use(recover.New())
	if a.Outer {
		router.Use(outer)
	}
	if a.OuterBody != "" {
		router.Use(func(c fiber.Ctx) error { // which leaves the body in memory
			a.ReadBody(bytes.NewReader(c.Request().Body()), func() { _ = c.Bind().Body(new(map[string]any)) })
			return c.Next()
		})
	}
	router.Get("/healthz", func(c fiber.Ctx) error { return c.SendStatus(fiber.StatusOK) })

	protected := testapp.NewGuarded(a, func(guard *protocol.Guard) fiber.Handler { return reprisefiber3.Middleware(guard, tenant) })
	protect := func(c fiber.Ctx) error { // without a call, which benchmarks would count as the middleware's
		return protected.Of(c.Method(), string(c.RequestCtx().URI().PathOriginal()))(c)
	}
	router.Use("/u", protect)
	if a.Inner == nil {
		return serve(a, router, protect)
	}
	return serve(a, router, protect, reprisefiber3.Middleware(a.Inner, tenant))
}

// NewBare makes a server without the adapter, which benchmarks compare with.
func NewBare(a *testapp.App) testapp.Server { return NewBehind(a) }

// NewBehind makes a server without the adapter, behind other layers.
func NewBehind(a *testapp.App, layers ...any) testapp.Server {
	router := newRouter(a)
	router.Use(recover.New())
	return serve(a, router, layers...)
}

func newRouter(a *testapp.App) *fiber.App {
	router := fiber.New(fiber.Config{
		BodyLimit:      a.Limit,  // 0: Fiber's own
		ReadBufferSize: 64 << 10, // for programs, which come in a field
	})
	router.Get("/executions/*", func(c fiber.Ctx) error {
		return c.Type("json").Send(a.Report(strings.TrimPrefix(newCall(c).RawPath(), "/executions/")))
	})
	return router
}

// serve adds the handler behind layers.
func serve(a *testapp.App, router *fiber.App, layers ...any) testapp.Server {
	router.Use(append(append([]any{"/t"}, layers...), func(c fiber.Ctx) error {
		call := newCall(c)
		return a.Run(c.Context(), call, strings.TrimPrefix(call.RawPath(), "/t/"))
	})...)
	return shared.NewServer(func(ln net.Listener) error {
		return router.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
	}, router.ShutdownWithContext)
}

func tenant(c fiber.Ctx) (string, error) { return shared.Tenant(c.RequestCtx()) }

// outer is a layer outside of the middleware.
func outer(c fiber.Ctx) error {
	o := testapp.NewOuter(c.Path(), c.Get(fiber.HeaderOrigin))
	for _, f := range o.Fields {
		c.Set(f[0], f[1])
	}
	if o.Status != 0 {
		c.Status(o.Status)
	}
	return c.Next()
}

func newCall(c fiber.Ctx) testapp.Call {
	return shared.NewCall(c, c.RequestCtx(), func(status int) error { return fiber.NewError(status) })
}
