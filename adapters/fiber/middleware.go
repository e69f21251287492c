// Package reprisefiber serves the Idempotency-Key header in Fiber.
//
//	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
//	app.Post("/orders", reprisefiber.Middleware(guard, tenantOf), createOrder)
//
// Handlers after the middleware run once for each key. CORS, recovery, authentication,
// rate limits and timeouts belong before it in the chain; docs/guides/middlewares.md has
// the order and the reasons. Package [github.com/reprise-go/reprise/core/protocol]
// describes the behaviour for clients.
//
// The context of a run is c.UserContext(). [protocol.Keep], [protocol.Release],
// [protocol.OmitBody], [protocol.Unknown] and reprise.AttemptFrom also find the run in
// c.Context().
//
// A keyed request that two servers may read in different ways is refused, and the scope
// function sees no trailers. Some responses come from fasthttp before any handler runs:
// 413 for a body over Fiber's BodyLimit, 400 for a request that it cannot read, 100
// Continue. docs/guides/fiber.md describes the limits of the adapter.
//
// The tests here cover the peculiarities of Fiber. Those of the protocol's rules, over
// every store, of malformed requests and of real middleware stacks are in lab/fiber.
package reprisefiber

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	reprisefasthttp "github.com/reprise-go/reprise/adapters/internal/fasthttp"
	"github.com/reprise-go/reprise/core/protocol"
)

// Scope returns the name of the authenticated principal that a request's key belongs to:
// a tenant, an account, a user. An empty name, one with a control byte, or an error
// refuses the request with 403; an error that wraps store.ErrUnavailable with 503, which
// clients retry. The name may be a view of the request's bytes, as Fiber's getters
// return: it is not kept.
type Scope func(*fiber.Ctx) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(*fiber.Ctx) (string, error) { return "", protocol.ErrUnscoped }

// Middleware runs the handlers after it once for each key. One guard may serve many
// routes, groups and apps. It panics if guard or scope is nil.
//
// The middleware turns the error that a handler returns into its response, with the error
// handler of the app, so that the response can be recorded: layers outside see the
// response and not the error.
func Middleware(guard *protocol.Guard, scope Scope) fiber.Handler {
	if guard == nil || scope == nil {
		panic("reprisefiber: Middleware needs a guard and a scope")
	}
	return framework.Middleware(guard, scope)
}

// framework is Fiber v2.
var framework = reprisefasthttp.Framework[*fiber.Ctx]{
	Server:     func(c *fiber.Ctx) *fasthttp.Server { return c.App().Server() },
	RequestCtx: (*fiber.Ctx).Context,
	Method:     (*fiber.Ctx).Method,
	Context:    (*fiber.Ctx).UserContext,
	SetContext: (*fiber.Ctx).SetUserContext,
	Next:       (*fiber.Ctx).Next,
	Respond: func(c *fiber.Ctx, err error) {
		if c.App().ErrorHandler(c, err) != nil {
			_ = c.SendStatus(fiber.StatusInternalServerError) // which never fails
		}
	},
}
