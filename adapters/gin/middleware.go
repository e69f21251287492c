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
			protocol.WriteResponse(c.Writer.Header(), &wire{ResponseWriter: c.Writer}, admission.Response)
			c.Abort()
		}
	}
}

// run runs the rest of the chain in an exchange.
func run(c *gin.Context, x *protocol.Exchange) {
	behind, request, status, errors := c.Writer, c.Request, c.Writer.Status(), len(c.Errors)
	w := &writer{ResponseWriter: behind, ctx: x.Context(), status: status, size: notWritten}
	w.wire.ResponseWriter = behind
	w.rec.Start(x, behind.Header(), &w.wire, http.DetectContentType)
	defer func() { // also where the chain panics: a recovery before this finds Gin's own writer
		w.rec.Close()
		request.MultipartForm = c.Request.MultipartForm // the server removes its files
		c.Writer, c.Request = behind, request
	}()
	started := behind.Written()
	c.Writer = w
	c.Request = request.WithContext(x.Context())
	c.Request.Body = x.Body()
	c.Next()
	switch {
	case behind.Written() && !started && !w.wire.sent:
		w.rec.Hijack() // HandleContext gave the chain Gin's own writer
	case w.Written():
	case len(c.Errors) > errors && w.status == status:
		return
	case c.FullPath() == "":
		w.noRoute()
	}
	w.WriteHeaderNow()
	w.rec.Finish()
}

// request is what the protocol looks at of r.
func request(r *http.Request) protocol.Request {
	return protocol.Request{
		Method: r.Method, Target: r.RequestURI, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery,
		Header: r.Header, Body: r.Body, Length: r.ContentLength,
	}
}
