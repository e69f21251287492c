package reprisegin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
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

	tenantOf := func(c *gin.Context) (string, error) {
		if tenant, _, ok := c.Request.BasicAuth(); ok {
			return tenant, nil
		}
		return "", errors.New("not authenticated")
	}
	orders := 0
	createOrder := func(c *gin.Context) {
		orders++
		if orders == 1 {
			protocol.Release(c) // sold out today: the next request with the key runs again
			c.JSON(http.StatusConflict, gin.H{"error": "sold out"})
			return
		}
		attempt, _ := reprise.AttemptFrom(c)
		c.JSON(http.StatusCreated, gin.H{"order": orders, "attempt": attempt.Number()})
	}
	gin.SetMode(gin.TestMode)
	router := gin.New()
	router.Use(gin.Recovery())
	router.POST("/orders", reprisegin.Middleware(guard, tenantOf), createOrder)

	for range 3 {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"book"}`)) //nolint:noctx // an example
		r.SetBasicAuth("tenant-1", "")
		r.Header.Set("Idempotency-Key", "7c1f")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		fmt.Printf("%d %s replayed:%q\n", w.Code, w.Body, w.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// 409 {"error":"sold out"} replayed:""
	// 201 {"attempt":1,"order":2} replayed:""
	// 201 {"attempt":1,"order":2} replayed:"true"
}
