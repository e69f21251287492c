// Package reprisefiber serves the Idempotency-Key header in Fiber.
//
//	store, err := repriseredis.New(client, repriseredis.Config{})
//	engine, err := reprise.New(store, reprise.Config{})
//	guard, err := protocol.New(engine, protocol.Config{Required: true})
//	app.Post("/orders", reprisefiber.Middleware(guard, tenantOf), createOrder)
//
// Recovery, authentication, rate limiting and timeouts belong before it in the chain; what comes after it runs once for each key.
// The context of a run is c.UserContext(), which is also what [protocol.Keep] and its like take. See the package protocol for what
// clients observe.
//
// Some answers are given by fasthttp before any handler runs: 413 for a body over Fiber's BodyLimit, 400 for a request that it cannot
// read, 100 Continue. Of a multipart form that Fiber parses in advance the parts count, in any order of their names, because the bytes
// are gone; fiber.Config.DisablePreParseMultipartForm keeps them. With fiber.Config.StreamRequestBody a chunked body that breaks off
// between two chunks cannot be told from a whole one.
package reprisefiber

import (
	"github.com/gofiber/fiber/v2"

	"github.com/reprise-go/reprise/core/protocol"
)

// Scope names the authenticated principal that a request's key belongs to: a tenant, an account, a user. An error, or an empty name, refuses
// the request with 403. The name may be a part of the request: it is not kept.
type Scope func(*fiber.Ctx) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(*fiber.Ctx) (string, error) { return "", protocol.ErrUnscoped }

// Middleware runs the handlers behind it once for each key. One guard may serve many routes, groups and apps. An error that a
// handler returns becomes its response here, by the error handler of the app, because that response is what is
// kept; layers outside see the response and not the error. It panics if guard or scope is nil.
func Middleware(guard *protocol.Guard, scope Scope) fiber.Handler {
	if guard == nil || scope == nil {
		panic("reprisefiber: Middleware needs a guard and a scope")
	}
	return func(c *fiber.Ctx) error {
		in := read(c)
		defer in.release() // a problem that takes the place of a response may look at the request
		admission := guard.Admit(c.UserContext(), in.request(), func() (string, error) { return in.principal(scope) })
		if !admission.Pass && admission.Exchange == nil {
			in.discard(admission.Response)
		}
		switch {
		case admission.Pass:
			return c.Next()
		case admission.Exchange != nil:
			return run(c, admission.Exchange)
		default:
			write(c.Response(), admission.Response)
			return nil
		}
	}
}
