// Package repriseecho5 serves the Idempotency-Key header in Echo v5. Package repriseecho
// serves it in Echo v4.
//
//	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
//	e.POST("/orders", createOrder, repriseecho5.Middleware(guard, tenantOf))
//
// Handlers inside the middleware run once for each key. CORS, recovery, authentication
// and rate limits belong outside; docs/guides/middlewares.md has the order and the
// reasons. Package [github.com/reprise-go/reprise/core/protocol] describes the behaviour
// for clients.
//
// Do not wrap the net/http adapter with echo.WrapMiddleware instead: it cannot see the
// error that a handler of Echo returns, and keeps an empty 200 in its place.
//
// An [echo.Context] is not a context: a handler passes c.Request().Context() to
// [protocol.Keep], [protocol.Release], [protocol.OmitBody], [protocol.Unknown], and
// reprise.AttemptFrom.
//
// To know its own request again in a context that Echo reuses, the middleware keeps the
// context of the run in the store of the context, under store.ContextKey, which belongs
// to it.
//
// The tests here cover the peculiarities of Echo. Those of the protocol's rules, over
// every store, and of real middleware stacks are in lab/echo5.
package repriseecho5
