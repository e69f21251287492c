// Nethttp is the orders API of this example on net/http: its instrumentation, then
// Reprise, then the order.
//
//	GOWORK=off go run -C examples/telemetry/nethttp .
//	curl -X POST localhost:8080/orders -H 'Idempotency-Key: "7c1f"'   # twice
//	curl -s localhost:8080/metrics | grep reprise_
//
// Spans are printed to standard output: the second one is linked to the first.
//
//run:long; background until 8080; prints "reprise_"
package main

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/examples/telemetry/internal/shop"
)

func main() { shop.Main(handler) }

func handler(guard *protocol.Guard) http.Handler {
	order := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	return otelhttp.NewHandler(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(order), "POST /orders")
}
