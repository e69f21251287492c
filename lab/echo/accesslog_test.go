package labecho_test

import (
	"bytes"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

func TestPanicsAreInTheAccessLog(t *testing.T) {
	t.Parallel()
	guard := stack.Guard(t)
	var log bytes.Buffer
	e := echo.New()
	e.Logger.SetOutput(new(bytes.Buffer)) // of the recovery
	e.Use(middleware.LoggerWithConfig(middleware.LoggerConfig{Output: &log, Format: "${status}\n"}), middleware.Recover())
	e.POST("/orders", func(echo.Context) error { panic(stack.PanicValue) }, repriseecho.Middleware(guard, repriseecho.Unscoped))
	stack.AccessLogOfPanic(t, &log, stack.Recorded(e))
}
