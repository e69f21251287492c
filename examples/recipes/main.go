// Recipes serves formats that other protocols define, over one store: webhooks of Stripe
// and of Standard Webhooks, the checkout of the Agentic Commerce Protocol, payments as
// Square takes them, tools of the Model Context Protocol, an AdCP seller, and mutations
// of GraphQL.
//
//	go run ./examples/recipes
//	curl -i localhost:8080/v2/payments -H 'Authorization: Bearer ada' -H 'Content-Type: application/json' -d '{"idempotency_key":"7c1f","source_id":"CASH","amount_money":{"amount":500,"currency":"EUR"}}'   # twice
//
//run:background until 8080; prints "HTTP/1.1 200"
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// The secrets of the two webhook receivers. A real sender shows its secret once.
const (
	stripeSecret   = "whsec_of_the_example"                   //nolint:gosec // of the example
	standardSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" //nolint:gosec // likewise
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx)
	stop()
	if err != nil {
		slog.Error("recipes", slog.Any("error", err))
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	engine := must(reprise.New(memstore.New(), reprise.Config{}))
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: newAPI(engine, new(ledger)), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), engine.Close(closing)) // first the requests, then their background work
}

// newAPI returns the recipes. Each has a policy of its own over the one engine.
func newAPI(engine *reprise.Engine, l *ledger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /stripe/webhooks", stripeWebhooks(engine, stripeSecret, l))
	mux.Handle("POST /webhooks", standardWebhooks(engine, standardSecret, l))
	acpCheckout(mux, engine, l)
	mux.Handle("POST /v2/payments", squarePayments(engine, l))
	mux.Handle("POST /mcp", mcpTools(engine, l))
	mux.Handle("POST /adcp", adcpSeller(engine, l))
	mux.Handle("POST /graphql", graphqlAPI(engine, l))
	return mux
}

// ledger counts the effects of the recipes, in place of databases.
type ledger struct{ effects atomic.Int64 }

// add records an effect and returns its number.
func (l *ledger) add() int64 { return l.effects.Add(1) }

// client is the scope of the recipes: it names the client that a bearer token belongs to.
// A real service checks the token.
func client(r *http.Request) (string, error) {
	name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "", errors.New("not authenticated")
	}
	return name, nil
}

// respond writes a response in JSON.
func respond(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(must(json.Marshal(value))) // the client may be gone
}

// refusal returns a response of a policy, in JSON.
func refusal(status int, value any) protocol.Response {
	return protocol.Response{
		Status: status, Body: must(json.Marshal(value)),
		Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "application/json"}),
	}
}

// must is for constructors, which fail only if their configuration is invalid.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
