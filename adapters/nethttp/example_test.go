package reprisehttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
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

	tenantOf := func(r *http.Request) (string, error) {
		if tenant, _, ok := r.BasicAuth(); ok {
			return tenant, nil
		}
		return "", errors.New("not authenticated")
	}
	orders := 0
	createOrder := func(w http.ResponseWriter, _ *http.Request) {
		orders++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", orders)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", reprisehttp.Middleware(guard, tenantOf)(http.HandlerFunc(createOrder)))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"book"}`)) //nolint:noctx // an example
		r.SetBasicAuth("tenant-1", "")
		r.Header.Set("Idempotency-Key", "7c1f")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%d %s replayed:%q\n", w.Code, w.Body, w.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// 201 order 1 replayed:""
	// 201 order 1 replayed:"true"
}

// A handler may decide for its own response, and derive keys for the services that it
// calls.
func ExampleMiddleware_decisions() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())

	inStock := false
	createOrder := func(w http.ResponseWriter, r *http.Request) {
		if !inStock {
			protocol.Release(r.Context()) // the next request with the key runs again
			http.Error(w, "sold out", http.StatusConflict)
			return
		}
		attempt, _ := reprise.AttemptFrom(r.Context())
		key, err := attempt.Key("charge") // an error for a request that came without a key
		if err != nil {
			http.Error(w, "send an Idempotency-Key", http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "attempt %d, a key for the payment service: %v", attempt.Number(), len(key) > 0)
	}
	handler := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(createOrder))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":"book"}`)) //nolint:noctx // an example
		r.Header.Set("Idempotency-Key", "9d2e")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
		inStock = true
	}
	// Output:
	// 409 sold out
	// 200 attempt 1, a key for the payment service: true
}
