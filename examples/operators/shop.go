package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/examples/internal/listen"
)

// backend keeps the records of the shop.
type backend interface {
	store.Store
	store.Inspector
	io.Closer

	// flags returns the flags of this program that name the records.
	flags() []string

	// spoil makes the record of id one that this release cannot read.
	spoil(ctx context.Context, id store.ID) error
}

// shop is the state that the instances of the service share.
type shop struct{ records backend }

// api is an instance of the service.
type api struct {
	url    string
	guard  *protocol.Guard
	server *http.Server
	served chan error
	slow   chan struct{} // closed when the slow orders may end
}

// serveShop starts to serve orders, and the console at /idempotency/.
func serveShop(ctx context.Context, out io.Writer, addr string, store store.Store) (*api, error) {
	a := &api{served: make(chan error, 1), slow: make(chan struct{})}
	events := console.NewEvents()
	var err error
	// One second lets the demonstration go on soon after the crash; the default is 30.
	a.guard, err = protocol.New(store, protocol.Config{
		Name: "orders", Required: true, Preset: reprise.AtMostOnce, Engine: reprise.Config{Lease: time.Second, Observer: events, Log: slog.New(slog.DiscardHandler)}, // the console shows what it would say
	})
	if err != nil {
		return nil, err
	}
	// On a loopback address everyone may do everything; a service asks its authentication.
	access := func(*http.Request) (string, console.Permission) {
		return "you", console.Look | console.Reveal | console.Resolve
	}
	pages, err := console.Handler([]console.Store{{Name: "orders", Store: store}}, access, console.Config{
		Title:   "Orders: idempotency",
		Engines: []console.Engine{{Name: "orders", Engine: a.guard.Engine()}},
		Guards:  []*protocol.Guard{a.guard},
		Events:  events,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", reprisehttp.Middleware(a.guard, func(*http.Request) (string, error) { return scope, nil })(http.HandlerFunc(a.order)))
	mux.Handle("/idempotency/", http.StripPrefix("/idempotency", pages))

	ln, err := listen.On(ctx, out, addr)
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
	err := errors.Join(a.server.Shutdown(ctx), a.guard.Close(ctx))
	if served := <-a.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
