package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// records is what the shop needs of its store: the console lists and resolves, too.
type records interface {
	store.Store
	store.Inspector
}

// shop is a process of the service.
type shop struct {
	url     string
	file    string // of the records
	records records
	guard   *protocol.Guard
	server  *http.Server
	served  chan error

	sent    atomic.Int64  // requests for an order
	taken   atomic.Int64  // orders
	failing atomic.Bool   // the next order fails
	dying   bool          // every order is slow
	slow    chan struct{} // a slow order receives twice before it is taken
}

// newShop starts to serve orders at /orders, and the console at /idempotency/.
func newShop(ctx context.Context, out io.Writer, addr, file string, records records) (*shop, error) {
	events := console.NewEvents()
	guard, err := protocol.New(records, protocol.Config{
		Name: "orders", Required: true,
		Preset: reprise.AtMostOnce, // an order whose process died is left to an operator
		// A lease of a second lets the demonstration go on soon after the crash; the default is
		// 30. The console shows what the log would say.
		Engine: reprise.Config{Lease: time.Second, Observer: events, Log: slog.New(slog.DiscardHandler)},
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
	ln, err := listen(ctx, out, addr)
	if err != nil {
		return nil, err
	}
	s := &shop{url: "http://" + ln.Addr().String(), file: file, records: records, guard: guard, served: make(chan error, 1), slow: make(chan struct{})}
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
	if s.failing.Swap(false) {
		protocol.Release(r.Context()) // nothing was done: the retry runs
		http.Error(w, "the warehouse does not answer", http.StatusServiceUnavailable)
		return
	}
	if wanted.Item == "slow" || s.dying {
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

// crash starts this program as another process, and kills it while it takes the order of
// a key. It returns when the record has lapsed.
func (s *shop) crash(ctx context.Context, key string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.CommandContext(ctx, self, "-dying", s.file, "-addr", "127.0.0.1:0") //nolint:gosec // this program
	process.Stderr = os.Stderr
	printed, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	url, err := bufio.NewReader(printed).ReadString('\n')
	if err == nil {
		go func() { _, _ = (&shop{url: strings.TrimSpace(url)}).order(ctx, key, book) }() // is never answered
		err = s.await(ctx, key, store.StateRunning)
	}
	err = errors.Join(err, process.Process.Kill())
	_ = process.Wait() // it was killed
	if err != nil {
		return err
	}
	return s.await(ctx, key, store.StateLapsed)
}

// await waits until the record of a key has a state.
func (s *shop) await(ctx context.Context, key string, state store.RecordState) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		record, err := s.records.Inspect(ctx, idOf(key))
		switch {
		case err == nil && record.State == state:
			return nil
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not %v: %w", key, state, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
