package labecho_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/combinations"
)

//nolint:paralleltest // Run needs the processor for itself
func TestCombinations(t *testing.T) {
	combinations.Run(t, 1000, func(guard *protocol.Guard, scope combinations.Scope, next http.Handler) http.Handler {
		e := echo.New()
		e.Any("/*", echo.WrapHandler(next), repriseecho.Middleware(guard, func(c echo.Context) (string, error) { return scope(c.Request()) }))
		return e
	})
}
