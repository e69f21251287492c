//go:build !without_gin

package otel_test

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/protocol"
)

func init() {
	frameworks["otelgin"] = func(guard *protocol.Guard, tracer *sdktrace.TracerProvider) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		router := gin.New()
		router.Use(otelgin.Middleware("orders", otelgin.WithTracerProvider(tracer)), reprisegin.Middleware(guard, reprisegin.Unscoped))
		router.POST("/orders", func(c *gin.Context) { c.Status(http.StatusCreated) })
		return router
	}
}
