package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
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
