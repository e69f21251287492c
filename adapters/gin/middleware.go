// Package reprisegin serves the Idempotency-Key header in Gin.
//
//	engine, err := reprise.New(repriseredis.New(client), reprise.Config{})
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

// Unscoped is the [Scope] of services whose clients may share one key space. Whoever knows another's key then gets its response.
func Unscoped(*gin.Context) (string, error) { return protocol.SharedScope, nil }

// Middleware runs the handlers behind it once for each key. One guard may serve many routes and groups. It panics if guard
// or scope is nil.
func Middleware(guard *protocol.Guard, scope Scope) gin.HandlerFunc {
	if guard == nil || scope == nil {
		panic("reprisegin: Middleware needs a guard and a scope")
	}
	return func(c *gin.Context) {
		verdict := guard.Admit(c.Request.Context(), request(c.Request), func() (string, error) { return scope(c) })
		switch {
		case verdict.Pass:
			c.Next()
		case verdict.Exchange != nil:
			run(c, verdict.Exchange)
		default:
			protocol.WriteResponse(c.Writer.Header(), wire{c.Writer}, verdict.Response)
			c.Abort()
		}
	}
}

// run runs the rest of the chain in an exchange.
func run(c *gin.Context, x *protocol.Exchange) {
	defer x.Close()
	behind, request := c.Writer, c.Request
	rec := x.Record(behind.Header(), wire{behind}, http.DetectContentType)
	w := &writer{ResponseWriter: behind, rec: rec, status: behind.Status(), size: notWritten}
	defer func() { // also where the chain panics: a recovery before this finds Gin's own writer
		rec.Abandon()
		c.Writer, c.Request = behind, request
	}()
	c.Writer = w
	c.Request = request.WithContext(x.Context())
	c.Request.Body = x.Body()
	c.Next()
	if c.FullPath() == "" && !w.Written() {
		w.noRoute()
	}
	w.WriteHeaderNow()
	rec.Finish()
}

// request is what the protocol looks at of r.
func request(r *http.Request) protocol.Request {
	return protocol.Request{
		Method: r.Method, Target: r.RequestURI, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery,
		Header: r.Header, Body: r.Body, Length: r.ContentLength,
	}
}
