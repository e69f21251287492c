// Own serves the application of the lab's test servers behind Fiber v3's own idempotency
// middleware, with its defaults but for the name of the field. It has the flags of a test
// server; those of the store and the guard have no effect.
package main

import (
	"github.com/gofiber/fiber/v3/middleware/idempotency"

	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	appfiber3 "github.com/reprise-go/reprise/adapters/fiber3/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() {
	serve.Main("fiber3", func(a *testapp.App) testapp.Server {
		return appfiber3.NewBehind(a, idempotency.New(idempotency.Config{KeyHeader: "Idempotency-Key"}))
	})
}
