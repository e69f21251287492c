// Production is the program of docs/guides/production.md: transfers of tenants that
// authenticate with a JSON Web Token or an API key, with records in Redis, metrics for
// Prometheus, and spans on standard output: that of a replay is linked to the first run.
//
//	REDIS_ADDR=127.0.0.1:6379 TOKEN_SECRET=0123456789abcdef0123456789abcdef API_KEY=demo-key go run ./examples/production
//	curl -i -X POST localhost:8080/transfers -H 'X-Api-Key: demo-key' -H 'Idempotency-Key: 7c1f' -d '{"cents":100}'   # twice
//	curl -s localhost:8080/metrics | grep reprise_
//
//run:background until 8080; needs redis; prints "HTTP/1.1 201"; prints "reprise_"
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	repriseotel "github.com/reprise-go/reprise/otel"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func main() {
	if err := serve(); err != nil {
		slog.Error("production", slog.Any("error", err))
		os.Exit(1)
	}
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	secret := os.Getenv("TOKEN_SECRET")
	if len(secret) < 32 {
		return errors.New("TOKEN_SECRET has less than 32 bytes")
	}
	client := redis.NewClient(&redis.Options{
		Addr:                  os.Getenv("REDIS_ADDR"),
		ContextTimeoutEnabled: true, // else go-redis ignores the deadlines of the engine
	})
	defer client.Close()
	st, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: "transfers:"}) // refuses a Redis on which a guarantee does not hold
	if err != nil {
		return fmt.Errorf("%w; the program needs Redis 7.0 or newer at REDIS_ADDR (Debian and Ubuntu: apt-get install redis-server)", err)
	}
	tenants := authenticator{secret: []byte(secret), keys: digests(map[string]string{os.Getenv("API_KEY"): "demo"})}
	telemetry, err := newTelemetry(os.Stdout)
	if err != nil {
		return err
	}
	handler, guard, err := newAPI(st, tenants, telemetry)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 25*time.Second) // less than the orchestrator waits before it kills
		defer cancel()
		return errors.Join(server.Shutdown(closing), guard.Close(closing)) // first the requests, then their records
	}
}

// newAPI returns the API and its guard, which the caller closes.
func newAPI(st store.Store, tenants authenticator, t *telemetry) (http.Handler, *protocol.Guard, error) {
	guard, err := protocol.New(t.Store(st), protocol.Config{
		Label:     "transfers", // in metrics, records and alerts
		Required:  true,
		Preset:    reprise.AtMostOnce, // a transfer must not run twice
		Retention: 48 * time.Hour,     // longer than clients retry
		Keep:      protocol.Keeping{Annotate: repriseotel.Annotate},
		Engine:    reprise.Config{MaxRun: 20 * time.Second, Observer: t, Detach: repriseotel.Detach},
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := t.Watch("transfers", guard.Engine()); err != nil { // until the process ends
		return nil, nil, err
	}
	if _, err := t.WatchStore("transfers", st); err != nil {
		return nil, nil, err
	}
	once := reprisehttp.Middleware(guard, tenantOf)(http.HandlerFunc(transfer))
	mux := http.NewServeMux()
	mux.Handle("POST /transfers", t.traced("POST /transfers", tenants.authenticate(once)))
	mux.Handle("GET /metrics", t.page)
	return mux, guard, nil
}

func transfer(w http.ResponseWriter, r *http.Request) {
	var t struct{ Cents int64 }
	if err := json.NewDecoder(r.Body).Decode(&t); err != nil || t.Cents <= 0 {
		http.Error(w, "a transfer needs cents", http.StatusUnprocessableEntity) // a response like any other: replayed
		return
	}
	tenant, _ := tenantOf(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"tenant": tenant, "cents": t.Cents}) // the client may have left
}
