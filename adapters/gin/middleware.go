// Package reprisegin serves the Idempotency-Key header in Gin.
//
//	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
//	router.POST("/orders", reprisegin.Middleware(guard, tenantOf), createOrder)
//
// Handlers after the middleware run once for each key. CORS, recovery, authentication,
// rate limits and timeouts belong before it in the chain; docs/guides/middlewares.md has
// the order and the reasons. Package [github.com/reprise-go/reprise/core/protocol]
// describes the behaviour for clients.
//
// A handler may pass its gin.Context wherever Reprise takes a context: to
// [protocol.Keep], [protocol.Release], [protocol.OmitBody], [protocol.Unknown], and
// [reprise.AttemptFrom]. For that, and to know its own request again in a context that
// Gin reuses, the middleware keeps the context of the run in c.Keys, under
// [store.ContextKey], which belongs to it.
//
// The tests here cover the peculiarities of Gin. Those of the protocol's rules, over
// every store, and of real middleware stacks are in lab/gin.
package reprisegin

import (
	"mime/multipart"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/adapters/internal/stdhttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Scope returns the name of the authenticated principal that a request's key belongs to:
// a tenant, an account, a user. An empty name, one with a control byte, or an error
// refuses the request with 403; an error that wraps store.ErrUnavailable with 503, which
// clients retry.
type Scope func(*gin.Context) (string, error)

// Unscoped is the [Scope] of services whose clients may share one key space. Anyone who
// learns another client's key can then replay its response.
func Unscoped(*gin.Context) (string, error) { return "", protocol.ErrUnscoped }

// Middleware runs the handlers after it once for each key. One guard may serve many
// routes and groups. It panics if guard or scope is nil.
//
// A layer that turns c.Errors into a response belongs after the middleware. If it stands
// before it, a chain that only calls c.Error, and neither writes nor sets a status, has
// no response to record: the first client gets that layer's answer, and the key is
// released, or, with AtMostOnce, a retry gets 409 result-unavailable.
func Middleware(guard *protocol.Guard, scope Scope) gin.HandlerFunc {
	if guard == nil || scope == nil {
		panic("reprisegin: Middleware needs a guard and a scope")
	}
	return func(c *gin.Context) {
		request := stdhttp.Request(c.Request, stdhttp.TooLarge)
		request.Parsed = (*parsed)(c)
		admission := guard.Admit(c.Request.Context(), request, func() (string, error) { return scope(c) })
		switch {
		case admission.Pass:
			stdhttp.PutBack(c.Request, admission.Body)
			c.Next()
		case admission.Exchange != nil:
			run(c, admission.Exchange)
		default:
			admission.Response.Write(c.Writer.Header(), &wire{ResponseWriter: c.Writer})
			if c.FullPath() == "" {
				c.Writer.WriteHeaderNow() // or Gin adds its own body to an empty one
			}
			c.Abort()
		}
	}
}

// parsed gives the protocol the form that a layer outside has parsed, and the bytes that
// ShouldBindBodyWith kept.
type parsed gin.Context

// ParsedForm returns the form, nil where none was parsed.
func (p *parsed) ParsedForm() *multipart.Form { return (*stdhttp.Parsed)(p.Request).ParsedForm() }

// ParsedBytes returns the bytes, nil where none were kept.
func (p *parsed) ParsedBytes() []byte {
	kept, _ := (*gin.Context)(p).Get(gin.BodyBytesKey)
	body, _ := kept.([]byte)
	return body
}

// run runs the rest of the chain in an exchange.
func run(c *gin.Context, x *protocol.Exchange) {
	outer, request, reported := c.Writer, c.Request, len(c.Errors)
	started := outer.Written()
	w := newWriter(outer, x)
	outside, _ := c.Get(store.ContextKey)
	defer func() { // also where the chain panics: a recovery outside finds its own writer
		w.rec.Close()
		if serves(c, x) {
			stdhttp.ReturnForm(request, c.Request)
			c.Writer, c.Request = outer, request
			c.Set(store.ContextKey, outside)
		}
	}()
	c.Writer = w
	c.Request = stdhttp.Inner(request, x)
	c.Set(store.ContextKey, x.Context())
	c.Next()
	switch {
	case !serves(c, x): // its later writes through c went to another request
		w.rec.Cut()
		return
	case w.answered():
		if len(c.Errors) > reported {
			w.rec.Report(c.Errors[reported])
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

// serves reports whether c still serves the request of the exchange, which a chain that
// outlived a timeout outside may find replaced by another one. The run was put into both
// places that Gin clears for that: the keys of c, which handlers seldom replace, and the
// context of its request, which stays where [gin.Engine.HandleContext] drops the keys.
func serves(c *gin.Context, x *protocol.Exchange) bool {
	run, _ := c.Get(store.ContextKey)
	return run == x.Context() || x.Runs(c.Request.Context())
}
