package echo_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho" //nolint:staticcheck // deprecated, and what Echo's users have
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/otel/spans"
)

func TestSpansOfEcho(t *testing.T) {
	t.Parallel()
	spans.Run(t, func(guard *protocol.Guard, tracer *sdktrace.TracerProvider) http.Handler {
		router := echo.New()
		router.Use(otelecho.Middleware("orders", otelecho.WithTracerProvider(tracer)), repriseecho.Middleware(guard, repriseecho.Unscoped))
		router.POST("/orders", func(c echo.Context) error { return c.NoContent(http.StatusCreated) })
		return router
	})
}

func TestMain(m *testing.M) { labtest.Main(m) }
