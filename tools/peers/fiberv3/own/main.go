// Own serves the application of the lab's test servers behind Fiber v3's own idempotency
// middleware, with its defaults but for the name of the field. It has the flags of a test
// server. With -redis-url its records are in Redis; the other flags of the store and the
// guard have no effect.
package main

import (
	"os"
	"slices"

	"github.com/gofiber/fiber/v3/middleware/idempotency"
	fiberredis "github.com/gofiber/storage/redis/v3"

	appfiber3 "github.com/reprise-go/reprise/adapters/fiber3/nativeapp"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() {
	own := idempotency.Config{KeyHeader: "Idempotency-Key"}
	if i := slices.Index(os.Args, "-redis-url"); i > 0 && i+1 < len(os.Args) {
		own.Storage = fiberredis.New(fiberredis.Config{URL: os.Args[i+1]})
	}
	serve.Main("fiber3", func(a *testapp.App) testapp.Server { return appfiber3.NewBehind(a, idempotency.New(own)) })
}
