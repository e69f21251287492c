// Package reprisegin serves the Idempotency-Key header in Gin.
//
//	store, err := repriseredis.New(client, repriseredis.Config{})
//	engine, err := reprise.New(store, reprise.Config{})
//	guard, err := protocol.New(engine, protocol.Config{Required: true})
//	router.POST("/orders", reprisegin.Middleware(guard, tenantOf), createOrder)
//
// Recovery, authentication, rate limiting and timeouts belong before it in the chain; what comes after it runs once for each key. See
// the package protocol for what clients observe.
package reprisegin

import (
	"net/http"

	"github.com/gin-gonic/gin"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// Scope names the authenticated principal that a request's key belongs to: a tenant, an account, a user. An error, or an empty name, refuses
// the request with 403.
type Scope func(*gin.Context) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(*gin.Context) (string, error) { return "", protocol.ErrUnscoped }

// Middleware runs the handlers behind it once for each key. One guard may serve many routes and groups. Layers that make
// responses of c.Errors belong behind it, too: a chain that only reports errors, and neither writes nor sets a status, has
// made no response to keep, and ends like a panic does. It panics if guard or scope is nil.
func Middleware(guard *protocol.Guard, scope Scope) gin.HandlerFunc {
	if guard == nil || scope == nil {
		panic("reprisegin: Middleware needs a guard and a scope")
	}
	return func(c *gin.Context) {
		admission := guard.Admit(c.Request.Context(), request(c.Request), func() (string, error) { return scope(c) })
		switch {
		case admission.Pass:
			c.Next()
		case admission.Exchange != nil:
			run(c, admission.Exchange)
		default:
			protocol.WriteResponse(c.Writer.Header(), &wire{ResponseWriter: c.Writer, now: c.FullPath() == ""}, admission.Response)
			c.Abort()
		}
	}
}

// run runs the rest of the chain in an exchange.
func run(c *gin.Context, x *protocol.Exchange) {
	outer, request, reported := c.Writer, c.Request, len(c.Errors)
	started := outer.Written()
	w := newWriter(outer, x)
	outside, _ := c.Get(reprise.ContextKey)
	defer func() { // also where the chain panics: a recovery outside finds its own writer
		w.rec.Close()
		if x.Runs(c.Request.Context()) { //nolint:contextcheck // asks whose context it is
			if form := c.Request.MultipartForm; form != nil {
				request.MultipartForm = form // the server removes its files
			}
			c.Writer, c.Request = outer, request
			c.Set(reprise.ContextKey, outside)
		}
	}()
	c.Writer = w
	c.Request = request.WithContext(x.Context())
	c.Request.Body = x.Body()
	c.Set(reprise.ContextKey, x.Context())
	c.Next()
	switch {
	case !x.Runs(c.Request.Context()): // the chain outlived a timeout, and c serves another request
		w.rec.Cut()
		return
	case w.answered():
		if c.IsAborted() && len(c.Errors) > reported && w.Size() > 0 && w.Status() < http.StatusBadRequest {
			w.rec.Cut() // as Gin ends a response that could not be rendered to its end
		}
	case outer.Written() && !started: // HandleContext gave the chain Gin's own writer
		w.rec.Hijack()
	case len(c.Errors) > reported: // a layer outside makes the response
		w.rec.Cut()
		return
	}
	if c.FullPath() == "" && !w.Written() && w.Status() == outer.Status() {
		w.noRoute()
	}
	w.finish()
}

// request is what the protocol looks at of r.
func request(r *http.Request) protocol.Request {
	return protocol.Request{
		Method: r.Method, Target: r.RequestURI, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery,
		Header: r.Header, Body: r.Body, Length: r.ContentLength,
	}
}
