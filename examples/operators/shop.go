package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// shop is what the processes of the service share.
type shop struct {
	client *redis.Client
	store  *repriseredis.Store
	url    string
	prefix string
}

// api is a process of the service.
type api struct {
	url    string
	engine *reprise.Engine
	guard  *protocol.Guard
	server *http.Server
	served chan error
	slow   chan struct{} // closed when the slow orders may end
}

// listen starts to serve orders, and the console at /idempotency/.
func (s *shop) listen(ctx context.Context, addr string) (*api, error) {
	a := &api{served: make(chan error, 1), slow: make(chan struct{})}
	events := console.NewEvents()
	var err error
	// One second lets the demonstration go on soon after the kill; the default is 30.
	if a.engine, err = reprise.New(s.store, reprise.Config{Lease: time.Second, Observer: events}); err != nil {
		return nil, err
	}
	if a.guard, err = protocol.New(a.engine, protocol.Config{Name: "orders", Required: true, Preset: reprise.AtMostOnce}); err != nil {
		return nil, err
	}
	pages, err := console.Handler(console.Config{
		Title:   "Orders: idempotency",
		Stores:  []console.Store{{Name: "orders", Store: s.store}},
		Engines: []console.Engine{{Name: "orders", Engine: a.engine}},
		Guards:  []*protocol.Guard{a.guard},
		Events:  events,
		Allow:   func(*http.Request) bool { return true }, // on a loopback address; a service asks its own authentication
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", reprisehttp.Middleware(a.guard, func(*http.Request) (string, error) { return scope, nil })(http.HandlerFunc(a.order)))
	mux.Handle("/idempotency/", http.StripPrefix("/idempotency", pages))

	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	a.url = "http://" + ln.Addr().String()
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { a.served <- a.server.Serve(ln) }()
	return a, nil
}

// order takes an order. One with the field X-Slow runs until the process ends.
func (a *api) order(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Slow") != "" {
		<-a.slow
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/orders/1")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"order":1}`)
}

func (a *api) close(ctx context.Context) error {
	close(a.slow)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := errors.Join(a.server.Shutdown(ctx), a.engine.Close(ctx))
	if served := <-a.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// serveUntilKilled is the other process of the service: it prints its address, and never
// ends an order.
func (s *shop) serveUntilKilled(ctx context.Context, out io.Writer) error {
	a, err := s.listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, a.url)
	<-ctx.Done()
	return a.close(ctx)
}
