// Package repriseecho serves the Idempotency-Key header in Echo.
//
//	engine, err := reprise.New(reprisepg.New(pool), reprise.Config{})
//	guard, err := protocol.New(engine, protocol.Config{Required: true})
//	e.POST("/orders", createOrder, repriseecho.Middleware(guard, tenantOf))
//
// Recovery, authentication, rate limiting and timeouts belong outside of it; what is inside runs once for each key. See the package
// protocol for what clients observe.
package repriseecho

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/core/protocol"
)

// Scope names the authenticated principal that a request's key belongs to: a tenant, an account, a user. An error, or an empty name, refuses
// the request with 403.
type Scope func(echo.Context) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(echo.Context) (string, error) { return "", protocol.ErrUnscoped }

// Middleware runs the handlers behind it once for each key. One guard may serve many routes and groups. An error that a
// handler returns becomes its response here, by the error handler of the Echo instance, because that response is what
// is kept; layers outside see the response and not the error. It panics if guard or scope is nil.
func Middleware(guard *protocol.Guard, scope Scope) echo.MiddlewareFunc {
	if guard == nil || scope == nil {
		panic("repriseecho: Middleware needs a guard and a scope")
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			admission := guard.Admit(c.Request().Context(), request(c.Request()), func() (string, error) { return scope(c) })
			switch {
			case admission.Pass:
				return next(c)
			case admission.Exchange != nil:
				run(c, admission.Exchange, next)
			default:
				protocol.WriteResponse(c.Response().Header(), c.Response(), admission.Response)
			}
			return nil
		}
	}
}

// run runs the handler in an exchange, with a response of its own: the hooks of outer layers
// belong to theirs, and run when it is sent.
func run(c echo.Context, x *protocol.Exchange, next echo.HandlerFunc) {
	outer, request := c.Response(), c.Request()
	w := &writer{behind: outer.Writer}
	w.Start(x, outer.Header(), wire{outer}, http.DetectContentType)
	defer func() { // also where the handler panics: a recovery outside finds its own response
		w.Close()
		if !x.Runs(c.Request().Context()) { //nolint:contextcheck // asks whose context it is
			return
		}
		if form := c.Request().MultipartForm; form != nil {
			request.MultipartForm = form // the server removes its files
		}
		c.SetResponse(outer)
		c.SetRequest(request)
	}()
	response := echo.NewResponse(w, c.Echo())
	response.Status = outer.Status
	c.SetResponse(response)
	inner := request.WithContext(x.Context())
	inner.Body = x.Body()
	c.SetRequest(inner)
	err := next(c)
	switch {
	case !x.Runs(c.Request().Context()): // the handler outlived a timeout, and c serves another request
		w.Cut()
		return
	case err != nil && w.Status() != 0 && w.Status() < http.StatusBadRequest: // a stream broke off
		w.Cut()
	}
	if err != nil {
		c.Error(err)
	}
	w.Finish()
}

// request is what the protocol looks at of r.
func request(r *http.Request) protocol.Request {
	return protocol.Request{
		Method: r.Method, Target: r.RequestURI, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery,
		Header: r.Header, Body: r.Body, Length: r.ContentLength,
	}
}
