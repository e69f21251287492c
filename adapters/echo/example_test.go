package repriseecho_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/labstack/echo/v4"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func ExampleMiddleware() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())

	tenantOf := func(c echo.Context) (string, error) {
		if tenant, _, ok := c.Request().BasicAuth(); ok {
			return tenant, nil
		}
		return "", errors.New("not authenticated")
	}
	orders := 0
	createOrder := func(c echo.Context) error {
		orders++
		ctx := c.Request().Context() // echo.Context is not a context.Context
		if orders == 1 {
			protocol.Release(ctx) // sold out today: the next request with the key runs again
			return echo.NewHTTPError(http.StatusConflict, "sold out")
		}
		attempt, _ := reprise.AttemptFrom(ctx)
		return c.String(http.StatusCreated, fmt.Sprintf("order %d, attempt %d", orders, attempt.Number()))
	}
	e := echo.New()
	e.POST("/orders", createOrder, repriseecho.Middleware(guard, tenantOf))

	for range 3 {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"book"}`)) //nolint:noctx // an example
		r.SetBasicAuth("tenant-1", "")
		r.Header.Set("Idempotency-Key", "7c1f")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		fmt.Printf("%d %s replayed:%q\n", w.Code, strings.TrimSpace(w.Body.String()), w.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// 409 {"message":"sold out"} replayed:""
	// 201 order 2, attempt 1 replayed:""
	// 201 order 2, attempt 1 replayed:"true"
}
