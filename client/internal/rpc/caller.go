// Package rpc makes unary calls of gRPC and Connect by the rules of a
// [repriseclient.Transport]. The transport sees each attempt as an HTTP exchange, so
// keys, retries, bounds, the budget, errors and events have one implementation for all
// protocols.
package rpc

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/client/internal/secret"
)

// Caller makes the calls of one service. It is safe for concurrent use.
type Caller struct {
	transport *repriseclient.Transport
	service   repriseclient.Service
}

// NewCaller returns a caller with the rules of c; it ignores c.Methods.
func NewCaller(c repriseclient.Config) (*Caller, error) {
	if c.Service.Header == "" {
		c.Service.Header = "Idempotency-Key"
	}
	c.Methods = []string{http.MethodPost}
	own := c.Retry
	c.Retry = func(resp *http.Response, err error, retry bool) bool {
		var local *localError
		retry = retry && !errors.As(err, &local)
		if own != nil {
			return own(resp, err, retry)
		}
		return retry
	}
	transport, err := repriseclient.NewTransport(exchange{c.Service.Header}, c)
	if err != nil {
		return nil, err
	}
	return &Caller{transport, c.Service}, nil
}

// Header returns the name of the metadata that has the key.
func (c *Caller) Header() string { return c.service.Header }

// Call is a unary call.
type Call struct {
	Host, Procedure string
	Keys            []string // in the metadata that the caller set

	// Attempt makes one attempt with a key, in the form in which it is sent. Its context is
	// a descendant of the call's, and has a trace of package httptrace, which says how far
	// the attempt got.
	Attempt func(ctx context.Context, key string) Result

	last Result
}

type callOfContext struct{}

// Do makes the attempts of a call. It returns the error of the last one, or a
// [repriseclient.UnknownOutcomeError] or [repriseclient.NotSentError] if no attempt got
// the result of the operation.
func (c *Caller) Do(ctx context.Context, call *Call) error {
	req := &http.Request{
		Method: http.MethodPost, Host: call.Host,
		URL:    &url.URL{Scheme: "http", Host: call.Host, Path: call.Procedure},
		Header: http.Header{http.CanonicalHeaderKey(c.service.Header): call.Keys},
	}
	resp, err := c.transport.RoundTrip(req.WithContext(context.WithValue(ctx, callOfContext{}, call)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if repriseclient.GaveUp(resp) {
		key := repriseclient.KeyOf(resp)
		return &repriseclient.UnknownOutcomeError{
			Attempts: repriseclient.Attempts(resp), KeyHash: secret.Hash(c.service.Scope, c.service.Endpoint, key), Err: call.last.Err, Keyed: secret.Of(key),
		}
	}
	return call.last.Err
}

// exchange is the base of the transport, and makes attempts.
type exchange struct{ header string }

// RoundTrip implements [http.RoundTripper].
func (e exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	call := req.Context().Value(callOfContext{}).(*Call)
	call.last = call.Attempt(req.Context(), req.Header.Get(e.header))
	return call.last.response(req)
}
