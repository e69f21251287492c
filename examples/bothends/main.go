// Bothends is a service and its client in one program. The connection breaks after the
// order was taken, and the client still gets the response:
//
//	go run ./examples/bothends
//
//run:prints "order 1 after 2 attempts, replayed: true"
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		slog.Error("ended", slog.Any("error", err))
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	// The service, whose first connection breaks.
	guard := must(protocol.New(memstore.New(), protocol.Config{Required: true}))
	once := reprisehttp.Middleware(guard, reprisehttp.Unscoped)
	server := httptest.NewServer(cutFirst(once(http.HandlerFunc(createOrder))))
	defer server.Close()

	// Its client, which sends one key with all attempts of a POST.
	transport := must(repriseclient.NewTransport(server.Client().Transport, repriseclient.Config{}))
	client := &http.Client{Transport: transport}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("a book"))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err // errors.As: a *repriseclient.UnknownOutcomeError, if the order may have been taken
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	fmt.Fprintf(out, "%s after %d attempts, replayed: %v\n", answer, repriseclient.Attempts(resp), repriseclient.Replayed(resp))
	return err // order 1 after 2 attempts, replayed: true
}

// must is for constructors, which fail only if their configuration is invalid.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var orders atomic.Int64

func createOrder(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %d", orders.Add(1))
}

// cutFirst runs the first request, and breaks the connection before its response is sent.
func cutFirst(next http.Handler) http.Handler {
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}
