package contract_test

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"os"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/contract"
)

// The policy of a guard is the source of an API's contract.
func ExampleOf() {
	guard, err := protocol.New(memstore.New(), protocol.Config{
		Required: true, Retention: 72 * time.Hour, Announce: protocol.Announcing{Expires: true, PolicyURL: "https://api.example.com/idempotency"},
	})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())
	policy := contract.Of(guard)

	cors := policy.CORS()
	fmt.Println("allow:", strings.Join(cors.AllowHeaders, ", "))
	fmt.Println("expose:", strings.Join(cors.ExposeHeaders, ", "))

	openapi, _, _ := bytes.Cut(policy.OpenAPIYAML(), []byte("components:"))
	fmt.Printf("%s", openapi)

	page, _, _ := bytes.Cut(policy.Markdown(), []byte("\n\n## Requests"))
	fmt.Printf("%s\n", page)
	// Output:
	// allow: Idempotency-Key
	// expose: Idempotent-Replayed, Idempotency-Status, Idempotency-Body, Idempotency-Key-Expires, Retry-After, Link
	// openapi: "3.1.0"
	// info:
	//   title: "The idempotency of this API"
	//   version: "1"
	//   description: "The policy is published at https://api.example.com/idempotency."
	// # Idempotent requests
	//
	// Send the header `Idempotency-Key` with a key of your own, and repeat the request with the same key until you have a response.
	// The operation runs once, and every retry gets its response.
}

// A page of another form comes from a template, whose data is the policy.
func ExamplePolicy() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())
	page := template.Must(template.New("policy").Parse(
		"<p>Send <code>{{.Header}}</code>. Responses are kept for {{.Retention.Hours}} hours.</p>\n" +
			"<p>Not kept:{{range .NotKept}} {{.}}{{end}}</p>\n",
	))
	if err := page.Execute(os.Stdout, contract.Of(guard)); err != nil {
		panic(err)
	}
	// Output:
	// <p>Send <code>Idempotency-Key</code>. Responses are kept for 24 hours.</p>
	// <p>Not kept: 307–308 401 407–408 425 429 499–599</p>
}
