package labfiber_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/logger"
	"github.com/gofiber/fiber/v2/middleware/recover"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

func TestPanicsAreInTheAccessLog(t *testing.T) {
	t.Parallel()
	guard := stack.Guard(t)
	var log bytes.Buffer
	app := fiber.New()
	app.Use(logger.New(logger.Config{Output: &log, Format: "${status}\n"}), recover.New(), reprisefiber.Middleware(guard, reprisefiber.Unscoped))
	app.Post("/orders", func(*fiber.Ctx) error { panic(stack.PanicValue) })
	stack.AccessLogOfPanic(t, &log, func(r *http.Request) (int, error) {
		response, err := app.Test(r)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	})
}
