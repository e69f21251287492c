package repriseecho5

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/adapters/internal/stdhttp"
	"github.com/reprise-go/reprise/core/protocol"
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
// response, the response is what its client gets, and it is kept like any other; the log
// has a warning.
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
	outer, request := c.Response(), c.Request()
	w := &writer{Writer: stdhttp.Writer{Behind: outer}, wire: wire{outer}}
	w.Start(x, outer.Header(), &w.wire, http.DetectContentType)
	response := echo.NewResponse(w, c.Logger())
	if preset, err := echo.UnwrapResponse(outer); err == nil {
		response.Status = preset.Status
	}
	defer func() { // also where the handler panics: a recovery outside finds its own response
		w.Close()
		if reused(c, x, response) {
			return
		}
		stdhttp.ReturnForm(request, c.Request())
		c.SetResponse(outer)
		c.SetRequest(request)
	}()
	c.SetResponse(response)
	c.SetRequest(stdhttp.Inner(request, x))
	err := next(c)
	switch {
	case reused(c, x, response):
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

// reused reports whether c serves another request: the handler outlived a layer outside
// that did not wait for it, and its later writes through c went to that request. A layer
// inside may leave its own response or its own request in c, such as Gzip and
// ContextTimeout do; it does not leave both without the context of the exchange.
func reused(c *echo.Context, x *protocol.Exchange, response http.ResponseWriter) bool {
	return c.Response() != response && !x.Runs(c.Request().Context())
}

// tooLarge reports whether BodyLimit, [http.MaxBytesHandler] or the like stopped the
// body.
func tooLarge(err error) bool {
	var coded echo.HTTPStatusCoder
	return stdhttp.TooLarge(err) || errors.As(err, &coded) && coded.StatusCode() == http.StatusRequestEntityTooLarge
}
