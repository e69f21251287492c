package contract_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/contract"
)

// The policy of a guard is the source of an API's contract.
func ExampleOf() {
	guard, err := protocol.New(memstore.New(), protocol.Config{
		Required: true, Retention: 72 * time.Hour, Expires: true,
	})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())
	policy := contract.Of(guard)

	cors := policy.CORS()
	fmt.Println("allow:", strings.Join(cors.AllowHeaders, ", "))
	fmt.Println("expose:", strings.Join(cors.ExposeHeaders, ", "))

	openapi, _, _ := bytes.Cut(policy.OpenAPIJSON(), []byte(`,
  "components"`))
	fmt.Printf("%s\n", openapi)

	page, _, _ := bytes.Cut(policy.Markdown(), []byte("\n\n## Requests"))
	fmt.Printf("%s\n", page)
	// Output:
	// allow: Idempotency-Key
	// expose: Idempotent-Replayed, Idempotency-Status, Idempotency-Body, Idempotency-Key-Expires, Retry-After
	// {
	//   "openapi": "3.1.0",
	//   "info": {
	//     "title": "The idempotency of this API",
	//     "version": "1"
	//   }
	// # Idempotent requests
	//
	// Send the header `Idempotency-Key` with a key of your own, and repeat the request with the same key until you have a response.
	// The operation runs once, and every retry gets its response.
}
