package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// payment is the body of a client's request, and of the service's to the bank.
type payment struct {
	Reference string `json:"reference"`
	Cents     int64  `json:"cents"`
}

// service pays, and asks the bank about payments whose outcome is unknown.
type service struct {
	guard  *protocol.Guard
	bank   *bank
	limits limits
}

func newService(records store.Store, bankURL string, l limits) (*service, error) {
	// With AtMostOnce no attempt takes over from one that died. So an attempt whose own call
	// was not sent may say that nothing was paid: each attempt before it was reconciled.
	guard, err := protocol.New(records, protocol.Config{
		Label: "payments", Required: true, Preset: reprise.AtMostOnce, Engine: reprise.Config{Lease: l.lease},
	})
	if err != nil {
		return nil, err
	}
	client, err := newBank(bankURL, l)
	return &service{guard, client, l}, err
}

// pay runs once for each key.
func (s *service) pay(w http.ResponseWriter, r *http.Request) {
	var p payment
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil || p.Reference == "" || p.Cents <= 0 {
		http.Error(w, "want a reference and a positive amount", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.call)
	defer cancel()
	attempt, _ := reprise.AttemptFrom(ctx)
	key, err := attempt.Key(chargeCall)
	if err != nil { // the middleware is missing: the policy requires a key
		http.Error(w, "this service is set up wrongly", http.StatusInternalServerError)
		return
	}
	answer, err := s.bank.pay(ctx, key, p)
	switch {
	case err == nil: // booked or declined: kept
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body)
	case repriseclient.NotSent(err): // not booked: the retry runs
		protocol.Release(ctx)
		http.Error(w, "the bank is unavailable, and nothing was paid: try again", http.StatusServiceUnavailable)
	default: // it may be booked: no retry runs until the reconciler has asked the bank
		protocol.Unknown(ctx, err.Error())
		http.Error(w, "the bank has not answered: ask again later, with the same key", http.StatusGatewayTimeout)
	}
}

// reconcile asks the bank about the payments that handlers left unknown and processes
// that died left lapsed, until ctx ends.
func (s *service) reconcile(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := s.guard.Reconcile(ctx, s.limits.settled, s.bank.settle); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "payments are asked about again", slog.Any("error", err))
		}
		select {
		case <-time.After(s.limits.pause):
		case <-ctx.Done():
		}
	}
}

// serve pays and reconciles until ctx ends, and then waits for running requests.
func (s *service) serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("POST /payments", reprisehttp.Middleware(s.guard, customer)(http.HandlerFunc(s.pay)))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	reconciled := make(chan struct{})
	go func() {
		defer close(reconciled)
		s.reconcile(ctx)
	}()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	<-reconciled
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), s.guard.Close(closing)) // first the requests, then their background work
}
