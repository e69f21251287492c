package gin_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/otel/spans"
)

func TestSpansOfGin(t *testing.T) {
	t.Parallel()
	spans.Run(t, func(guard *protocol.Guard, tracer *sdktrace.TracerProvider) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		router := gin.New()
		router.Use(otelgin.Middleware("orders", otelgin.WithTracerProvider(tracer)), reprisegin.Middleware(guard, reprisegin.Unscoped))
		router.POST("/orders", func(c *gin.Context) { c.Status(http.StatusCreated) })
		return router
	})
}

func TestMain(m *testing.M) { labtest.Main(m) }
