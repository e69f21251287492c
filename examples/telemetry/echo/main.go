// Echo is the orders API of this example on Echo: its instrumentation, then
// Reprise, then the order.
//
//	GOWORK=off go run -C examples/telemetry/echo .
//	curl -X POST localhost:8080/orders -H 'Idempotency-Key: "7c1f"'   # twice
//	curl -s localhost:8080/metrics | grep reprise_
//
// Spans are printed to standard output: the second one is linked to the first.
//
//run:long; background until 8080; prints "reprise_"
package main

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/examples/telemetry/internal/shop"
)

func main() { shop.Main(handler) }

func handler(guard *protocol.Guard) http.Handler {
	router := echo.New()
	router.Use(otelecho.Middleware("orders"), repriseecho.Middleware(guard, repriseecho.Unscoped))
	router.POST("/orders", func(c echo.Context) error { return c.NoContent(http.StatusCreated) })
	return router
}
