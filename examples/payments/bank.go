package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// chargeCall names the call to the bank. The handler derives the key of the call from
// this name, and the reconciler derives the same key.
const chargeCall = "charge"

// bank is the service's client of the bank's API.
type bank struct {
	url    string
	client *http.Client
}

// newBank returns a client of the bank. Its transport sends the same key with every
// attempt, and its errors say whether an attempt may have reached the bank.
func newBank(url string, l limits) (*bank, error) {
	transport, err := repriseclient.NewTransport(nil, repriseclient.Config{
		MaxAttempts: 3, AttemptTimeout: l.attempt, Delay: l.attempt / 20, MaxElapsed: l.call,
	})
	if err != nil {
		return nil, err
	}
	return &bank{url, &http.Client{Transport: transport}}, nil
}

// pay asks the bank to pay, and returns its answer: 201 booked, 402 declined. After any
// error but a *repriseclient.NotSentError, the bank may have booked the payment, or may
// still book it.
func (b *bank) pay(ctx context.Context, key string, p payment) (protocol.Response, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return protocol.Response{}, err
	}
	answer, err := b.ask(repriseclient.WithKey(ctx, key), http.MethodPost, "/payments", body)
	if err == nil && answer.Status == http.StatusNotFound {
		err = errNoAnswer(answer.Status)
	}
	return answer, err
}

// settle asks the bank about a payment whose outcome is unknown, by the key that the
// handler passed. The reconciler calls it when the bank can no longer book the handler's
// call, so a payment that the bank does not know was not executed.
func (b *bank) settle(ctx context.Context, r reprise.Record) (response *protocol.Response, known bool, err error) {
	answer, err := b.ask(ctx, http.MethodGet, "/payments/"+r.Key(chargeCall), nil)
	switch {
	case err != nil: // the bank cannot say
		return nil, false, err
	case answer.Status == http.StatusNotFound: // not executed
		return nil, true, nil
	}
	return &answer, true, nil
}

// errNoAnswer is a status with which the bank says nothing about the payment.
type errNoAnswer int

func (e errNoAnswer) Error() string { return fmt.Sprintf("the bank answered %d", int(e)) }

// ask sends a request. Only three statuses are answers: booked, declined and not found.
func (b *bank) ask(ctx context.Context, method, path string, body []byte) (answer protocol.Response, err error) {
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	res, err := b.client.Do(req)
	if err != nil {
		return answer, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	switch res.StatusCode {
	case http.StatusCreated, http.StatusPaymentRequired, http.StatusNotFound:
		kind := protocol.Field{Name: "Content-Type", Value: "application/json"}
		return protocol.Response{Status: res.StatusCode, Header: protocol.NewHeader(kind), Body: text}, err
	}
	return answer, errNoAnswer(res.StatusCode)
}
