package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
)

// chargeCall names the call to the bank. The handler derives the key of the call from
// this name, and the reconciler derives the same key.
const chargeCall = "charge"

// bank is the service's client of the bank's API.
type bank struct {
	url    string
	client *http.Client
}

// answer is the bank's response about a payment, as the service's clients get it.
type answer struct {
	status int // 201 booked, 402 declined
	body   []byte
}

var errNotBooked = errors.New("the bank does not know the payment")

// newBank returns a client of the bank. Its transport sends the same key with every
// attempt, and its errors say whether an attempt may have reached the bank.
func newBank(url string, base http.RoundTripper, l limits) (*bank, error) {
	transport, err := repriseclient.NewTransport(base, repriseclient.Config{
		MaxAttempts: 3, AttemptTimeout: l.attempt, Delay: l.attempt / 20, MaxElapsed: l.call,
	})
	if err != nil {
		return nil, err
	}
	return &bank{url, &http.Client{Transport: transport}}, nil
}

// pay asks the bank to pay. After any error but a *repriseclient.NotSentError, the bank
// may have booked the payment, or may still book it.
func (b *bank) pay(ctx context.Context, key string, p payment) (answer, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return answer{}, err
	}
	return b.ask(repriseclient.WithKey(ctx, key), http.MethodPost, "/payments", body)
}

// settle asks the bank about a payment whose outcome is unknown, by the key that the
// handler passed. The reconciler calls it when the bank can no longer book the handler's
// call, so a payment that the bank does not know was not executed.
func (b *bank) settle(ctx context.Context, r store.Record) (*store.Resolution, error) {
	got, err := b.ask(ctx, http.MethodGet, "/payments/"+r.Key(chargeCall), nil)
	switch {
	case errors.Is(err, errNotBooked):
		return &store.Resolution{Forget: true}, nil
	case err != nil:
		return nil, err
	}
	payload, err := stored.Encode(protocol.Response{
		Status: got.status, Body: got.body,
		Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "application/json"}),
	})
	return &store.Resolution{Payload: payload}, err
}

// ask sends a request. Only two responses are answers: booked and declined.
func (b *bank) ask(ctx context.Context, method, path string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	res, err := b.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	switch {
	case err != nil:
		return answer{}, err
	case res.StatusCode == http.StatusCreated, res.StatusCode == http.StatusPaymentRequired:
		return answer{res.StatusCode, got}, nil
	case res.StatusCode == http.StatusNotFound:
		return answer{}, errNotBooked
	default:
		return answer{}, fmt.Errorf("the bank answered %s", res.Status)
	}
}
