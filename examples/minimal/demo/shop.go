package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// shop is the service.
type shop struct {
	url     string
	records *memstore.Store
	guard   *protocol.Guard
	server  *http.Server
	served  chan error

	sent    atomic.Int64  // requests for an order
	taken   atomic.Int64  // orders
	failing atomic.Bool   // the next order fails
	slow    chan struct{} // a slow order receives twice before it is taken
}

// newShop starts to serve orders at /orders, and the console at /idempotency/.
func newShop(ctx context.Context, addr string, records *memstore.Store) (*shop, error) {
	events := console.NewEvents()
	guard, err := protocol.New(records, protocol.Config{
		Label: "orders", Required: true,
		Engine: reprise.Config{Observer: events, Log: slog.New(slog.DiscardHandler)}, // the console shows what the log would say
	})
	if err != nil {
		return nil, err
	}
	// On a loopback address everyone may do everything; a service asks its authentication.
	access := func(*http.Request) (string, console.Permission) {
		return "you", console.Look | console.Reveal | console.Resolve
	}
	pages, err := console.Handler([]console.Store{{Name: "orders", Store: records}}, access, console.Config{
		Title: "Orders: idempotency", Log: slog.New(slog.DiscardHandler), Engines: []console.Engine{{Name: "orders", Engine: guard.Engine()}}, Guards: []*protocol.Guard{guard}, Events: events,
	})
	if err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &shop{url: "http://" + ln.Addr().String(), records: records, guard: guard, served: make(chan error, 1), slow: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", reprisehttp.Middleware(guard, customer)(http.HandlerFunc(s.take)))
	mux.Handle("/idempotency/", http.StripPrefix("/idempotency", pages))
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { s.served <- s.server.Serve(ln) }()
	return s, nil
}

// customer is the scope of a key: this shop has one customer.
func customer(*http.Request) (string, error) { return "customer-1", nil }

// idOf returns the ID of the record of a key.
func idOf(key string) store.ID { return store.DeriveID("customer-1", "", key) }

// take takes an order.
func (s *shop) take(w http.ResponseWriter, r *http.Request) {
	var wanted struct{ Item string }
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil || wanted.Item == "" {
		http.Error(w, "want an item", http.StatusBadRequest)
		return
	}
	switch {
	case s.failing.Swap(false):
		protocol.Release(r.Context()) // nothing was done: the retry runs
		http.Error(w, "the warehouse does not answer", http.StatusServiceUnavailable)
		return
	case wanted.Item == "lost":
		protocol.Unknown(r.Context(), "the warehouse did not say whether it took the order") // no retry runs
		http.Error(w, "the order may have been taken: ask again later", http.StatusGatewayTimeout)
		return
	case wanted.Item == "slow":
		<-s.slow
		<-s.slow
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"order":%d}`, s.taken.Add(1)) // the client may have left
}

// close ends the service: first the requests, then their background work.
func (s *shop) close(ctx context.Context) error {
	close(s.slow)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := errors.Join(s.server.Shutdown(closing), s.guard.Close(closing))
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// reply is a response to a client.
type reply struct {
	status   int
	replayed bool
	body     string
}

// client reuses no connections, so that the one which a step drops affects no other
// request.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// order sends an order. Without a key the request carries none.
func (s *shop) order(ctx context.Context, key, order string) (reply, error) {
	s.sent.Add(1)
	return s.send(ctx, http.MethodPost, "/orders", "application/json", key, order)
}

func (s *shop) send(ctx context.Context, method, path, kind, key, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", kind)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", string(text)}, err
}
