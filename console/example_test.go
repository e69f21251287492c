package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

func ExampleHandler() {
	store, events := memstore.New(), console.NewEvents()
	engine, err := reprise.New(store, reprise.Config{Observer: events})
	if err != nil {
		panic(err)
	}
	defer engine.Close(context.Background())
	access := func(r *http.Request) (string, console.Permission) {
		if name := r.Header.Get("X-Employee"); name != "" { // of the middleware that authenticates employees
			return name, console.Look | console.Reveal | console.Resolve
		}
		return "", 0
	}
	pages, err := console.Handler([]console.Store{{Name: "payments", Store: store}}, access, console.Config{
		Engines: []console.Engine{{Name: "payments", Engine: engine}},
		Events:  events,
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/idempotency/", http.StripPrefix("/idempotency", pages)) // inside that middleware

	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost/idempotency/", http.NoBody)
	r.Header.Set("X-Employee", "ada")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
