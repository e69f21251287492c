// Minimal takes orders, on net/http with records in memory: the program of the guide
// "Five minutes".
package main

import (
	"fmt"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

var orders atomic.Int64

func createOrder(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %d\n", orders.Add(1))
}

func main() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true}) // one per process and store
	if err != nil {
		log.Fatal(err)
	}
	once := reprisehttp.Middleware(guard, reprisehttp.Unscoped) // all clients share their keys; a function separates tenants

	mux := http.NewServeMux()
	mux.Handle("POST /orders", once(http.HandlerFunc(createOrder)))
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
