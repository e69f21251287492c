package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
)

// The requests of the clients.
const (
	scope = "customer-1"
	order = `{"item":"book"}`

	stuck = "order-stuck"
)

// client is the clients of the shop, and the operator's browser.
var client = &http.Client{Timeout: time.Hour}

// answer is a client's response.
type answer struct {
	status   int
	replayed bool
	body     string
}

// send sends an order.
func send(ctx context.Context, url, key string, slow bool) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(order))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	r.Header.Set("Content-Type", "application/json")
	if slow {
		r.Header.Set("X-Slow", "yes")
	}
	got, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header.Get("Idempotent-Replayed") == "true", string(body)}, err
}

func idOf(key string) store.ID { return store.DeriveID(scope, "", key) }

// seed leaves a replayed, a running, a resolved, an unreadable and a stuck record, and
// returns the ID of the stuck one.
func (s shop) seed(ctx context.Context, a *api) (store.ID, error) {
	for range 2 {
		if _, err := send(ctx, a.url, "order-done", false); err != nil {
			return store.ID{}, err
		}
	}
	if err := s.begin(ctx, a.url, "order-running"); err != nil {
		return store.ID{}, err
	}
	const resolved = "order-resolved"
	if err := s.crash(ctx, resolved, stuck); err != nil {
		return store.ID{}, err
	}
	record, err := s.records.Inspect(ctx, idOf(resolved))
	if err != nil {
		return store.ID{}, err
	}
	err = stored.Resolve(ctx, s.records, stored.Resolution{
		ID: record.ID, State: record.State, Fence: record.Fence, Answer: protocol.Response{Status: http.StatusCreated, Body: []byte(`{"order":2}`)},
		Reason: "the order is in the books", Operator: "seed",
	}, slog.DiscardHandler)
	if err != nil {
		return store.ID{}, err
	}
	const unreadable = "order-unreadable"
	if _, err := send(ctx, a.url, unreadable, false); err != nil {
		return store.ID{}, err
	}
	return idOf(stuck), s.records.spoil(ctx, idOf(unreadable))
}

// crash kills another process of the service while it runs orders. It returns when they
// have lapsed.
func (s shop) crash(ctx context.Context, keys ...string) error {
	err := crashProcess(ctx, func(url string) error {
		for _, key := range keys {
			if err := s.begin(ctx, url, key); err != nil {
				return err
			}
		}
		return nil
	}, s.records.flags()...)
	for _, key := range keys {
		if err == nil {
			err = s.await(ctx, key, store.StateLapsed, nil)
		}
	}
	return err
}

// begin sends an order that does not end, and returns when it runs.
func (s shop) begin(ctx context.Context, url, key string) error {
	ended := make(chan error, 1)
	go func() {
		got, err := send(ctx, url, key, true)
		if err == nil {
			err = fmt.Errorf("the client got %+v", got)
		}
		ended <- err
	}()
	return s.await(ctx, key, store.StateRunning, ended)
}

// await waits until the record of an order has a state. It fails when the order ends
// before.
func (s shop) await(ctx context.Context, key string, state store.RecordState, ended <-chan error) error {
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
		case err := <-ended:
			return fmt.Errorf("%s ended before it was %v: %w", key, state, err)
		case <-ctx.Done():
			return fmt.Errorf("%s is not %v: %w", key, state, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
