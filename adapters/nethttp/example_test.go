package reprisehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// A reverse proxy in front of a bank. A payment that may have been executed is not sent
// again: its client learns that the outcome is unknown, and an operator finds out.
func ExampleProxy() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())

	bank := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) // the connection breaks after the payment
	}))
	defer bank.Close()
	target, err := url.Parse(bank.URL)
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			attempt, _ := reprise.AttemptFrom(r.In.Context())
			if key, err := attempt.Key("bank"); err == nil { // the request has a key
				r.Out.Header.Set("Idempotency-Key", key) // the same in every attempt
			}
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // an example is quiet
	}
	handler := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(reprisehttp.Proxy(proxy))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("12 EUR")) //nolint:noctx // an example
		r.Header.Set("Idempotency-Key", "4f81")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var problem struct{ Code string }
		_ = json.Unmarshal(w.Body.Bytes(), &problem)
		fmt.Printf("%d %q\n", w.Code, problem.Code)
	}
	// Output:
	// 502 ""
	// 409 "outcome-unknown"
}
