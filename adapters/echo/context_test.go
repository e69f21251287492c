package repriseecho

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestContextOfAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	left := make(chan *http.Request, 1)
	b.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			outer := harness.WithOuter(c.Request())
			c.SetRequest(outer)
			err := next(c)
			if c.Request() != outer {
				t.Error("a layer outside does not find its request again")
			}
			return err
		}
	}, b.guarded)
	b.POST("/orders/:id", func(c echo.Context) error {
		harness.CheckContext(t, c.Request().Context())
		if body, err := io.ReadAll(c.Request().Body); err != nil || string(body) != "body" {
			t.Errorf("body %q, %v", body, err)
		}
		if err := http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(harness.Patience)); err != nil {
			t.Errorf("the deadlines of the connection: %v", err)
		}
		left <- c.Request()
		return created(c)
	})
	b.Twice("POST", "/orders/7")
	harness.CheckEnded(t, <-left)
}

// Echo reuses its contexts: no part of a request may be visible to the next one.
func TestPooledContextsAreClean(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/orders", func(c echo.Context) error {
		if _, own := c.Response().Writer.(*writer); own != (c.Request().Header.Get("Idempotency-Key") != "") {
			t.Errorf("recorded: %v", own)
		}
		if c.Response().Committed || c.Response().Size != 0 || len(c.Response().Header()) != 0 {
			t.Errorf("the response is not new: %+v", c.Response())
		}
		return created(c)
	}, b.guarded)
	b.POST("/panics", func(echo.Context) error { panic("cut") }, recovery, b.guarded)
	for range 50 {
		b.Send("POST", "/orders")
		b.Send("POST", "/panics", "Idempotency-Key", "p")
		b.Twice("POST", "/orders")
	}
}
