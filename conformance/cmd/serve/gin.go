package serve

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/protocol"
)

// newGin makes the server of the adapter for Gin.
func newGin(a *app) native {
	gin.SetMode(gin.ReleaseMode) // it says nothing on standard output
	engine := gin.New()
	if a.outer {
		engine.Use(ginOuter)
	}
	engine.GET("/executions/*op", func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json", a.runs.report(strings.TrimPrefix(c.Request.URL.EscapedPath(), "/executions/")))
	})
	engine.GET("/healthz", func(*gin.Context) {})

	protected := newGuarded(a, func(guard *protocol.Guard) gin.HandlerFunc { return reprisegin.Middleware(guard, ginTenant) })
	engine.Use(func(c *gin.Context) { protected.of(c.Request.Method, c.Request.URL.EscapedPath())(c) })
	engine.Any("/t/*op", func(c *gin.Context) {
		call := &ginCall{netHTTPCall{c.Writer, c.Request}, c}
		if err := a.run(c.Request.Context(), call, strings.TrimPrefix(call.rawPath(), "/t/")); err != nil {
			_ = c.AbortWithError(http.StatusInternalServerError, err)
		}
	})
	return netHTTPServer{&http.Server{
		Handler: engine.Handler(), ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelError),
	}}
}

func ginTenant(c *gin.Context) (string, error) {
	return tenantOf(c.Request.Header.Values(conformance.TenantHeader))
}

// ginOuter is a layer outside of the middleware. Gin holds a status until something is written.
func ginOuter(c *gin.Context) {
	o := newOuter(c.Request.URL.Path, c.GetHeader("Origin"))
	for _, f := range o.fields {
		c.Header(f[0], f[1])
	}
	if o.status != 0 {
		c.Status(o.status)
	}
}

// ginCall is a [call] in Gin. What Gin leaves to net/http is the embedded call's.
type ginCall struct {
	netHTTPCall // method, rawPath, rawQuery, program, body; addHeader, inform, announce, setTrailer; abort

	c *gin.Context
}

func (g *ginCall) setStatus(status int) { g.c.Status(status) }

func (g *ginCall) write(p []byte, how conformance.WriteMode) {
	switch how {
	case conformance.WriteString:
		_, _ = g.c.Writer.WriteString(string(p))
	case conformance.WriteCopy:
		_, _ = io.Copy(g.c.Writer, struct{ io.Reader }{bytes.NewReader(p)})
	default:
		_, _ = g.c.Writer.Write(p)
	}
}

func (g *ginCall) flush() { g.c.Writer.Flush() }

func (g *ginCall) stream(produce func(output) conformance.Behaviour) {
	end := conformance.Returns
	g.c.Stream(func(io.Writer) bool {
		end = produce(g)
		return false
	})
	switch end {
	case conformance.Panics:
		panic(panicValue)
	case conformance.Aborts:
		g.abort()
	default:
	}
}

// fail reports the error to Gin, whose handlers return none.
func (g *ginCall) fail(status int) error {
	_ = g.c.AbortWithError(status, errors.New(http.StatusText(status)))
	return nil
}

func (g *ginCall) hijack(answer []byte) error {
	conn, rw, err := g.c.Writer.Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = rw.Write(answer)
	_ = rw.Flush()
	return nil
}
