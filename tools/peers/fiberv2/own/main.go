// Own serves the application of the lab's test servers behind Fiber v2's own idempotency
// middleware, with its defaults but for the name of the field. It has the flags of a test
// server; those of the store and the guard have no effect.
package main

import (
	"github.com/gofiber/fiber/v2/middleware/idempotency"

	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	appfiber "github.com/reprise-go/reprise/adapters/fiber/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() {
	serve.Main("fiber", func(a *testapp.App) testapp.Server {
		return appfiber.NewBehind(a, idempotency.New(idempotency.Config{KeyHeader: "Idempotency-Key"}))
	})
}
