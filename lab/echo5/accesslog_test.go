package labecho5_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	repriseecho5 "github.com/reprise-go/reprise/adapters/echo5"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

func TestPanicsAreInTheAccessLog(t *testing.T) {
	t.Parallel()
	guard := stack.Guard(t)
	var log bytes.Buffer
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	e.Use(middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogStatus: true, HandleError: true,
		LogValuesFunc: func(_ *echo.Context, v middleware.RequestLoggerValues) error {
			_, err := fmt.Fprintln(&log, v.Status)
			return err
		},
	}), middleware.Recover())
	e.POST("/orders", func(*echo.Context) error { panic(stack.PanicValue) }, repriseecho5.Middleware(guard, repriseecho5.Unscoped))
	stack.AccessLogOfPanic(t, &log, stack.Recorded(e))
}
