package otel_test

import (
	"net/http"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/otel/spans"
)

func TestSpansOfNetHTTP(t *testing.T) {
	t.Parallel()
	spans.Run(t, func(guard *protocol.Guard, tracer *sdktrace.TracerProvider) http.Handler {
		order := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
		}))
		return otelhttp.NewHandler(order, "orders", otelhttp.WithTracerProvider(tracer))
	})
}
