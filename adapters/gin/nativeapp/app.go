// Package nativeapp serves the application of the adapter suite natively with Gin.
package nativeapp

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/protocol"
)

// Gin prints no debug lines in this mode, which must not change while one of its engines
// is used.
func init() { gin.SetMode(gin.ReleaseMode) }

// New makes the server of the adapter for Gin.
func New(a *testapp.App) testapp.Server {
	engine := gin.New()
	if a.Outer {
		engine.Use(ginOuter)
	}
	if a.OuterBody != "" {
		engine.Use(func(c *gin.Context) { a.ReadBody(c.Request.Body, func() { ginBind(c) }) })
	}
	engine.GET("/executions/*op", func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json", a.Report(strings.TrimPrefix(c.Request.URL.EscapedPath(), "/executions/")))
	})
	engine.GET("/healthz", func(*gin.Context) {})

	protected := testapp.NewGuarded(a, func(guard *protocol.Guard) gin.HandlerFunc { return reprisegin.Middleware(guard, ginTenant) })
	engine.Use(func(c *gin.Context) { protected.Of(c.Request.Method, c.Request.URL.EscapedPath())(c) })
	if a.Inner != nil {
		engine.Use(reprisegin.Middleware(a.Inner, ginTenant))
	}
	return serve(a, engine)
}

// NewBare makes a server without the adapter, which benchmarks compare with.
func NewBare(a *testapp.App) testapp.Server { return serve(a, gin.New()) }

// serve adds the handler.
func serve(a *testapp.App, engine *gin.Engine) testapp.Server {
	engine.Any("/t/*op", func(c *gin.Context) {
		call := &ginCall{testapp.NetHTTPCall{W: c.Writer, R: c.Request}, c}
		if err := a.Run(c.Request.Context(), call, strings.TrimPrefix(call.RawPath(), "/t/")); err != nil {
			_ = c.AbortWithError(http.StatusInternalServerError, err)
		}
	})
	return testapp.NetHTTPServer{HTTP: &http.Server{
		Handler: a.Limited(engine.Handler()), ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelError),
	}}
}

func ginTenant(c *gin.Context) (string, error) {
	return testapp.TenantOf(c.Request.Header.Values(adaptertest.TenantHeader))
}

// ginBind binds a body as layers of Gin do that leave it to the handler. Of a form only
// its fields are left.
func ginBind(c *gin.Context) {
	if b, ok := binding.Default(c.Request.Method, c.ContentType()).(binding.BindingBody); ok {
		_ = c.ShouldBindBodyWith(new(any), b)
		return
	}
	_ = c.ShouldBind(new(struct{}))
}

// ginOuter is a layer outside of the middleware. Gin holds a status until something is
// written.
func ginOuter(c *gin.Context) {
	o := testapp.NewOuter(c.Request.URL.Path, c.GetHeader("Origin"))
	for _, f := range o.Fields {
		c.Header(f[0], f[1])
	}
	if o.Status != 0 {
		c.Status(o.Status)
	}
}

// ginCall is a [testapp.Call] in Gin. The embedded call has the methods that Gin leaves
// to net/http.
type ginCall struct {
	testapp.NetHTTPCall // method, rawPath, rawQuery, program, body; addHeader, inform, announce, setTrailer; abort

	c *gin.Context
}

// Inform sends an informational response past Gin's writers, whose final status would be
// 200 after one.
func (g *ginCall) Inform(status int, fields []adaptertest.Pair) {
	behind := g.W
	for {
		w, own := behind.(interface {
			gin.ResponseWriter
			Unwrap() http.ResponseWriter
		})
		if !own {
			break
		}
		behind = w.Unwrap()
	}
	call := testapp.NetHTTPCall{W: behind, R: g.R}
	call.Inform(status, fields)
}

func (g *ginCall) SetStatus(status int) { g.c.Status(status) }

func (g *ginCall) SetStatusOnly(status int) error {
	g.c.Status(status)
	return nil
}

func (g *ginCall) Report(err error) { _ = g.c.Error(err) }

func (g *ginCall) Write(p []byte, how adaptertest.WriteMode) {
	switch how {
	case adaptertest.WriteString:
		_, _ = g.c.Writer.WriteString(string(p))
	case adaptertest.WriteCopy:
		_, _ = io.Copy(g.c.Writer, struct{ io.Reader }{bytes.NewReader(p)})
	default:
		_, _ = g.c.Writer.Write(p)
	}
}

func (g *ginCall) Flush() { g.c.Writer.Flush() }

func (g *ginCall) Stream(produce func(testapp.Output) adaptertest.Behaviour) {
	end := adaptertest.Returns
	g.c.Stream(func(io.Writer) bool {
		end = produce(g)
		return false
	})
	switch end {
	case adaptertest.Panics:
		panic(testapp.PanicValue)
	case adaptertest.Aborts:
		g.Abort()
	default:
	}
}

// Fail reports the error to Gin, whose handlers return none.
func (g *ginCall) Fail(status int) error {
	_ = g.c.AbortWithError(status, errors.New(http.StatusText(status)))
	return nil
}

func (g *ginCall) Hijack(answer []byte) error {
	conn, rw, err := g.c.Writer.Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = rw.Write(answer)
	_ = rw.Flush()
	return nil
}
