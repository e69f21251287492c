// Gin is the orders API of this example on Gin: its instrumentation, then
// Reprise, then the order.
//
//	GOWORK=off go run -C examples/telemetry/gin .
//	curl -X POST localhost:8080/orders -H 'Idempotency-Key: "7c1f"'   # twice
//	curl -s localhost:8080/metrics | grep reprise_
//
// Spans are printed to standard output: the second one is linked to the first.
//
//run:long; background until 8080; prints "reprise_"
package main

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/examples/telemetry/internal/shop"
)

func main() { shop.Main(handler) }

func handler(guard *protocol.Guard) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(otelgin.Middleware("orders"), reprisegin.Middleware(guard, reprisegin.Unscoped))
	router.POST("/orders", func(c *gin.Context) { c.Status(http.StatusCreated) })
	return router
}
