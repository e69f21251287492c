package repriseecho5

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/adapters/internal/stdhttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Scope returns the name of the authenticated principal that a request's key belongs to:
// a tenant, an account, a user. An empty name, one with a control byte, or an error
// refuses the request with 403; an error that wraps store.ErrUnavailable with 503, which
// clients retry.
type Scope func(*echo.Context) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(*echo.Context) (string, error) { return "", protocol.ErrUnscoped }

// Middleware runs the handlers inside it once for each key. One guard may serve many
// routes and groups. It panics if guard or scope is nil.
//
// The middleware turns the error that a handler returns into its response, with the error
// handler of the Echo instance, so that the response can be recorded: layers outside see
// the response and not the error. If a handler returns an error after it began its
// response, its client gets that response, which is kept like any other; the log has a
// warning.
func Middleware(guard *protocol.Guard, scope Scope) echo.MiddlewareFunc {
	if guard == nil || scope == nil {
		panic("repriseecho5: Middleware needs a guard and a scope")
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			admission := guard.Admit(c.Request().Context(), stdhttp.Request(c.Request(), tooLarge), func() (string, error) { return scope(c) })
			switch {
			case admission.Pass:
				stdhttp.PutBack(c.Request(), admission.Body)
				return next(c)
			case admission.Exchange != nil:
				run(c, admission.Exchange, next)
			default:
				admission.Response.Write(c.Response().Header(), c.Response())
			}
			return nil
		}
	}
}

// run runs the handler in an exchange, with a separate response: the hooks of outer
// layers belong to the outer response, and run when that is sent.
func run(c *echo.Context, x *protocol.Exchange, next echo.HandlerFunc) {
	outer, request, outside := c.Response(), c.Request(), c.Get(store.ContextKey)
	w := newWriter(c, x)
	defer func() { // also where the handler panics: a recovery outside finds its own response
		w.Close()
		if serves(c, x) {
			stdhttp.ReturnForm(request, c.Request())
			c.SetResponse(outer)
			c.SetRequest(request)
			c.Set(store.ContextKey, outside)
		}
	}()
	c.SetResponse(&w.response)
	c.SetRequest(stdhttp.Inner(request, x))
	c.Set(store.ContextKey, x.Context())
	err := next(c)
	switch {
	case !serves(c, x): // its later writes through c went to another request
		w.Cut()
		return
	case err != nil && w.Status() != 0:
		w.Report(err)
	}
	if err != nil {
		c.Echo().HTTPErrorHandler(c, err)
	}
	w.Finish()
}

// serves reports whether c still serves the request of the exchange, which a handler that
// outlived a layer outside may find replaced by another one. The run was put into both
// places that Echo clears for that: the store of c, and the context of its request.
func serves(c *echo.Context, x *protocol.Exchange) bool {
	return c.Get(store.ContextKey) == x.Context() || x.Runs(c.Request().Context())
}

// tooLarge reports whether BodyLimit, [http.MaxBytesHandler] or the like stopped the
// body.
func tooLarge(err error) bool {
	var coded echo.HTTPStatusCoder
	return stdhttp.TooLarge(err) || errors.As(err, &coded) && coded.StatusCode() == http.StatusRequestEntityTooLarge
}
