package proxy_test

import (
	"context"
	"encoding/json"
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
	"github.com/reprise-go/reprise/proxy"
)

func Example() {
	orders := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		orders++ // it knows nothing of the header
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", orders)
	}))
	defer upstream.Close()

	config, err := proxy.Parse([]byte("upstream = '" + upstream.URL + "'\nscope = 'header:Authorization'\n"))
	if err != nil {
		panic(err)
	}
	handler, err := proxy.New(memstore.New(), config, proxy.Options{Engine: reprise.Config{MaxRun: -1}})
	if err != nil {
		panic(err)
	}
	defer handler.Close(context.Background())

	for range 2 {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders", strings.NewReader("seat 1"))
		r.Header.Set("Authorization", "Bearer alice")
		r.Header.Set("Idempotency-Key", `"7c1f"`)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body, w.Header().Get("Idempotent-Replayed") == "true")
	}
	// Output:
	// 201 order 1 false
	// 201 order 1 true
}

// A reverse proxy in front of a bank. A payment that may have been executed is not sent
// again: its client learns that the outcome is unknown, and an operator finds out.
func ExampleForward() {
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
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			attempt, _ := reprise.AttemptFrom(r.In.Context())
			if key, err := attempt.Key("bank"); err == nil { // the request has a key
				r.Out.Header.Set("Idempotency-Key", key) // the same in every attempt
			}
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // an example is quiet
	}
	handler := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(proxy.Forward(reverse))

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
