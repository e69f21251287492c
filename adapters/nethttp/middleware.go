// Package reprisehttp serves the Idempotency-Key header in net/http and in everything
// built on http.Handler: chi, gorilla/mux, connect-go and the standard ServeMux.
//
//	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
//	mux.Handle("POST /orders", reprisehttp.Middleware(guard, tenantOf)(createOrder))
//
// Authentication, rate limiting and timeouts belong outside the middleware. The handler
// inside runs once for each key. Neither a client that disconnects nor a timeout outside
// cancels the context of a run; reprise.Config.MaxRun bounds it. Package
// [github.com/reprise-go/reprise/core/protocol] describes the behaviour for clients.
//
// Tests with routers and other middlewares are in lab/nethttp/stacks, those with RPC in
// lab/edges.
package reprisehttp

import (
	"net/http"

	"github.com/reprise-go/reprise/adapters/internal/stdhttp"
	"github.com/reprise-go/reprise/core/protocol"
)

// Scope returns the name of the authenticated principal that a request's key belongs to:
// a tenant, an account, a user. An empty name, one with a control byte, or an error
// refuses the request with 403; an error that wraps store.ErrUnavailable with 503, which
// clients retry.
type Scope func(*http.Request) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(*http.Request) (string, error) { return "", protocol.ErrUnscoped }

// Middleware runs the handlers inside it once for each key. Many routes may share a
// guard. It panics if guard or scope is nil.
//
// Do not wrap it around handlers of Gin, Echo or Fiber, which have separate adapters: in
// a chain made by echo.WrapMiddleware or by Fiber's adaptor.HTTPMiddleware, and around a
// handler of Gin that writes to c.Writer, it sees no response, which is an empty 200, and
// retries get that. It may protect an http.Handler below a framework (echo.WrapHandler,
// gin.WrapH, adaptor.HTTPHandler), or a whole Echo or Gin instance, which is an
// http.Handler.
func Middleware(guard *protocol.Guard, scope Scope) func(http.Handler) http.Handler {
	if guard == nil || scope == nil {
		panic("reprisehttp: Middleware needs a guard and a scope")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admission := guard.Admit(r.Context(), stdhttp.Request(r, stdhttp.TooLarge), func() (string, error) { return scope(r) })
			switch {
			case admission.Pass:
				stdhttp.PutBack(r, admission.Body)
				next.ServeHTTP(w, r)
			case admission.Exchange != nil:
				run(w, r, admission.Exchange, next)
			default:
				admission.Response.Write(w.Header(), w)
			}
		})
	}
}

// run runs the handler in an exchange.
func run(w http.ResponseWriter, r *http.Request, x *protocol.Exchange, next http.Handler) {
	rec := &stdhttp.Writer{Behind: w}
	rec.Start(x, w.Header(), w, http.DetectContentType)
	defer rec.Close() // also if next panics
	inner := stdhttp.Inner(r, x)
	defer copyBack(r, inner)
	next.ServeHTTP(rec, inner)
	rec.Finish()
}

// copyBack gives the layers outside the pattern and path values that a router set inside,
// as they would see them without the middleware, and gives the server the parsed form,
// whose files it removes.
func copyBack(r, inner *http.Request) {
	stdhttp.ReturnForm(r, inner)
	if r.Pattern != inner.Pattern { // the path values come with it
		body := r.Body
		*r = *inner.WithContext(r.Context())
		r.Body = body
	}
}
