//go:build !without_echo

package otel_test

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho" //nolint:staticcheck // deprecated, and what Echo's users have
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/core/protocol"
)

func init() {
	frameworks["otelecho"] = func(guard *protocol.Guard, tracer *sdktrace.TracerProvider) http.Handler {
		router := echo.New()
		router.Use(otelecho.Middleware("orders", otelecho.WithTracerProvider(tracer)), repriseecho.Middleware(guard, repriseecho.Unscoped))
		router.POST("/orders", func(c echo.Context) error { return c.NoContent(http.StatusCreated) })
		return router
	}
}
