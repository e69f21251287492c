// Own serves the application of the testserver behind Fiber v3's own idempotency
// middleware, with its defaults but for the name of the field, for reprise judge to
// compare with. It has the flags of the testserver; those of the store and the guard have
// no effect.
package main

import (
	"github.com/gofiber/fiber/v3/middleware/idempotency"

	appfiber3 "github.com/reprise-go/reprise/adapters/fiber3/nativeapp"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() {
	serve.Main("fiber3", func(a *testapp.App) testapp.Server {
		return appfiber3.NewBehind(a, idempotency.New(idempotency.Config{KeyHeader: "Idempotency-Key"}))
	})
}
