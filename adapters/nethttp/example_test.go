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
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		panic(err)
	}
	defer engine.Close(context.Background())
	guard, err := protocol.New(engine, protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}

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
