// Package reprisefiber3 serves the Idempotency-Key header in Fiber v3. Package
// reprisefiber serves it in Fiber v2.
//
//	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
//	app.Post("/orders", reprisefiber3.Middleware(guard, tenantOf), createOrder)
//
// Handlers after the middleware run once for each key. CORS, recovery, authentication and
// rate limits belong before it in the chain; docs/guides/middlewares.md has the order and
// the reasons. Package [github.com/reprise-go/reprise/core/protocol] describes the
// behaviour for clients.
//
// The context of a run is c.Context(). [protocol.Keep], [protocol.Release],
// [protocol.OmitBody], [protocol.Unknown] and reprise.AttemptFrom also find the run in c
// itself, and in c.RequestCtx().
//
// If Fiber's timeout middleware stands outside, and a handler outlives it, there is no
// response to record, because the timeout writes its own in the same place.
// docs/guides/fiber.md describes this and the other limits of the adapter.
//
// The tests here cover the differences from Fiber v2; the common part is tested there.
// Those of the protocol's rules, over every store, of malformed requests and of real
// middleware stacks are in lab/fiber3.
package reprisefiber3

import (
	"errors"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	reprisefasthttp "github.com/reprise-go/reprise/adapters/internal/fasthttp"
	"github.com/reprise-go/reprise/core/protocol"
)

// Scope returns the name of the authenticated principal that a request's key belongs to:
// a tenant, an account, a user. An empty name, one with a control byte, or an error
// refuses the request with 403; an error that wraps store.ErrUnavailable with 503, which
// clients retry. The name may be a view of the request's bytes, as Fiber's getters
// return: it is not kept.
type Scope func(fiber.Ctx) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(fiber.Ctx) (string, error) { return "", protocol.ErrUnscoped }

// Middleware runs the handlers after it once for each key. One guard may serve many
// routes, groups and apps. It panics if guard or scope is nil.
//
// The middleware turns the error that a handler returns into its response, with the error
// handler of the app, so that the response can be recorded: layers outside see the
// response and not the error.
func Middleware(guard *protocol.Guard, scope Scope) fiber.Handler {
	if guard == nil || scope == nil {
		panic("reprisefiber3: Middleware needs a guard and a scope")
	}
	return framework.Middleware(guard, scope)
}

// framework is Fiber v3.
var framework = reprisefasthttp.Framework[fiber.Ctx]{
	Server:     func(c fiber.Ctx) *fasthttp.Server { return c.App().Server() },
	RequestCtx: fiber.Ctx.RequestCtx,
	Method:     fiber.Ctx.Method,
	Context:    fiber.Ctx.Context,
	SetContext: fiber.Ctx.SetContext,
	Pooled:     true,
	Next:       fiber.Ctx.Next,
	Respond: func(c fiber.Ctx, err error) {
		if c.App().ErrorHandler(c, err) != nil {
			_ = c.SendStatus(fiber.StatusInternalServerError) // which never fails
		}
	},
	Abandoned: fiber.Ctx.IsAbandoned,
	Unrouted: func(c fiber.Ctx, err error) bool {
		return !c.Matched() && (err == nil || errors.Is(err, fiber.ErrNotFound) || errors.Is(err, fiber.ErrMethodNotAllowed))
	},
}
