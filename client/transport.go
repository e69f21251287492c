package repriseclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/reprise-go/reprise/client/internal/secret"
)

// Transport is an [http.RoundTripper] that keys calls and retries them. Make one with
// [NewTransport] for each service. It is safe for concurrent use.
type Transport struct {
	base     http.RoundTripper
	config   Config
	service  Service
	newKey   func() string
	methods  map[string]bool // that are retried; true: and keyed
	waits    bool            // for 409 and 425 with Retry-After, as [Service].RetryStatuses says
	bucket   *bucket
	observer Observer
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a transport that makes its attempts with base;
// [http.DefaultTransport] if base is nil. The error names the invalid field of c.
//
// Instrumentation that should see every attempt, such as otelhttp or a signature over the
// time, belongs below, in base. Instrumentation that should see every call once belongs
// above.
func NewTransport(base http.RoundTripper, c Config) (*Transport, error) {
	waits := c.Service.RetryStatuses == nil
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport //nolint:forbidigo // what nil means everywhere in net/http
	}
	t := &Transport{
		base: base, config: c, service: c.Service, newKey: c.NewKey, methods: make(map[string]bool), waits: waits,
		bucket: newBucket(c.Budget), observer: c.Observer,
	}
	if t.observer == nil {
		t.observer = silent{}
	}
	for _, m := range c.Methods {
		t.methods[m] = isKeyed(m)
	}
	return t, nil
}

// CloseIdleConnections closes the idle connections of base, if base has such a method.
// [http.Client.CloseIdleConnections] calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper]. It returns the first response that no retry
// would change, or the last one that the bounds of [Config] allow: then [GaveUp] reports
// true. A keyed call fails with an [UnknownOutcomeError], a [NotSentError], a
// [BodyOmittedError] or a [RedirectError]; the unkeyed request that follows its redirect
// with a [RedirectError] too.
//
// The Request of the response carries the key that was sent.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.methods[req.Method] {
		return t.follow(req)
	}
	own, key, value, err := t.key(req)
	if err != nil {
		closeBody(req.Body)
		return nil, &NotSentError{Err: err}
	}
	c := &call{key: own, hash: secret.Hash(t.service.Scope, t.service.Endpoint, key), replayed: t.service.Replayed}
	began := time.Now()
	ctx := t.observer.StartCall(req.Context(), CallStart{Method: req.Method, Host: hostOf(req), KeyHash: c.hash})
	r := &run{Transport: t, req: req, ctx: ctx, call: c, value: value, observer: t.observer}
	if from := callOf(req.Response); from != nil {
		r.sent = from.open
	}
	resp, err := r.run() //nolint:contextcheck // it is in r

	end := CallEnd{Attempts: c.attempts, Duration: time.Since(began), Outcome: c.outcome, Code: r.last.code, Err: err}
	if resp != nil {
		end.Status = resp.StatusCode
	}
	t.observer.EndCall(ctx, end)
	return resp, err
}

func hostOf(req *http.Request) string {
	if req.URL == nil {
		return req.Host
	}
	return req.URL.Host
}

// run is one call.
type run struct {
	*Transport

	req      *http.Request
	ctx      context.Context // of the observer
	call     *call
	value    string // of the header; empty: the call has no key
	observer Observer
	body     requestBody

	sent bool    // an attempt may have reached the service, also one before a redirect
	last verdict // about the last attempt
}

func (r *run) run() (*http.Response, error) {
	r.bucket.deposit()
	body, err := openBody(r.req, r.config.MaxRequestBuffer)
	if err != nil {
		return nil, r.fail(err)
	}
	r.body = body
	if err := context.Cause(r.ctx); err != nil {
		closeBody(body.first)
		return nil, r.fail(err)
	}
	plan := r.newSchedule()
	for {
		r.call.attempts++
		r.call.open = r.sent
		began := time.Now()
		a := r.attempt()
		r.last = r.judge(r.req, a.resp, a.err)
		r.sent = r.sent || a.err == nil || a.sent(a.err)

		var wait time.Duration
		var why error // not to retry
		switch {
		case a.err != nil && r.ended() != nil:
			why = r.ended()
		case r.last.retryable:
			wait, why = plan.next(r.ctx, r.last, &r.body)
		}
		retry := r.last.retryable && why == nil
		r.observer.EndAttempt(r.ctx, a.end(r.call.attempts, time.Since(began), r.last.code, retry, wait))
		if !retry {
			return r.finish(a, why)
		}
		a.discard()
		if !sleep(r.ctx, r.req, wait) {
			return nil, r.fail(fmt.Errorf("%w; the last attempt: %w", r.ended(), a.problem()))
		}
	}
}

// ended returns why the caller ended the call, nil if it did not.
func (r *run) ended() error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	select {
	case <-r.req.Cancel: //nolint:staticcheck // deprecated, and still used by callers
		return context.Canceled
	default:
		return nil
	}
}

// finish returns the result of a call that is not retried.
func (r *run) finish(a *attempt, why error) (*http.Response, error) {
	if a.err != nil {
		switch {
		case why == nil || errors.Is(why, errBounds) || errors.Is(a.err, why):
			return nil, r.fail(a.err)
		default:
			return nil, r.fail(fmt.Errorf("%w; the last attempt: %w", why, a.err))
		}
	}
	if r.call.outcome = Answered; r.value != "" {
		r.call.outcome = r.outcomeOf(a.resp.Header)
	}
	switch {
	case r.last.retryable:
		r.call.outcome = GaveUpRetrying
	case r.value != "" && movedToGet(a.resp):
		a.discard()
		r.call.outcome = OutcomeUnknown
		return nil, &RedirectError{a.resp.StatusCode, locationOf(a.resp, r.call.key), r.call.hash, nil, secret.Of(r.call.key)}
	case r.call.outcome == AnsweredOmitted && !r.config.AcceptOmitted:
		a.discard()
		header := a.resp.Header.Clone()
		header.Del(r.service.Header) // some services send it back
		return nil, &BodyOmittedError{a.resp.StatusCode, header, r.call.attempts, r.call.hash, secret.Of(r.call.key)}
	}
	// callOf finds the call through the request of the response.
	a.resp.Request = a.req.WithContext(context.WithValue(r.req.Context(), callOfContext, r.call))
	return a.resp, nil
}

// fail returns the error of a call without a response.
func (r *run) fail(err error) error {
	if r.value == "" {
		return err
	}
	if r.sent {
		r.call.outcome = OutcomeUnknown
		return &UnknownOutcomeError{r.call.attempts, r.call.hash, err, secret.Of(r.call.key)}
	}
	r.call.outcome = OutcomeNotSent
	return &NotSentError{r.call.attempts, r.call.hash, err, secret.Of(r.call.key)}
}

// attempt is one request and its result.
type attempt struct {
	req    *http.Request
	resp   *http.Response
	err    error
	cancel context.CancelCauseFunc
	progress
}

var errNothing = errors.New("repriseclient: the base transport returned neither a response nor an error")

// attempt makes the next attempt.
func (r *run) attempt() *attempt {
	ctx, cancel := context.WithCancelCause(r.ctx)
	a := &attempt{cancel: cancel}
	body, err := r.body.of(r.call.attempts)
	if err != nil {
		cancel(nil)
		a.err = err
		return a
	}
	a.req = r.req.Clone(httptrace.WithClientTrace(ctx, a.trace()))
	if a.req.Header == nil {
		a.req.Header = make(http.Header)
	}
	if r.value != "" {
		a.req.Header.Set(r.service.Header, r.value)
	}
	a.req.Body, a.req.GetBody, a.req.ContentLength = body, r.body.again, r.body.length
	a.req.Trailer = r.req.Trailer // filled while the body is read; never changed here

	inTime := func() bool { return true }
	if r.config.AttemptTimeout > 0 {
		inTime = time.AfterFunc(r.config.AttemptTimeout, func() { cancel(ErrAttemptTimeout) }).Stop
	}
	a.resp, a.err = r.base.RoundTrip(a.req) //nolint:bodyclose // receive, fail or the caller closes it
	if a.err == nil && a.resp == nil {
		a.err = errNothing
	}
	whole := false
	if a.err == nil {
		a.written.Store(true) // also by a transport that does not trace
		whole, a.err = r.receive(a)
	}
	if !inTime() && !whole {
		a.fail(errTimeout(a.err))
	}
	if a.err != nil {
		a.fail(a.err)
	}
	return a
}

func errTimeout(err error) error {
	if err == nil || errors.Is(err, ErrAttemptTimeout) {
		return ErrAttemptTimeout
	}
	return &timeoutError{err}
}

// timeoutError is the error of an attempt that [ErrAttemptTimeout] cancelled. It is not
// [context.Canceled], which means that the caller ended the call.
type timeoutError struct{ error }

func (e *timeoutError) Error() string      { return ErrAttemptTimeout.Error() + ": " + e.error.Error() }
func (e *timeoutError) As(target any) bool { return errors.As(e.error, target) }

func (e *timeoutError) Is(target error) bool {
	return target == ErrAttemptTimeout || target != context.Canceled && errors.Is(e.error, target)
}

// receive reads the body of the response into memory, within the bounds of the
// configuration, and reports whether it is whole.
func (r *run) receive(a *attempt) (whole bool, err error) {
	resp := a.resp
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if writer, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &upgradedBody{writer, a.cancel}
		return true, nil
	}
	limit := r.config.MaxResponseBuffer
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); limit < 0 || media == "text/event-stream" {
		resp.Body = &streamedBody{resp.Body, resp.Body, a.cancel}
		return false, nil
	}
	read, more, err := readUpTo(resp.Body, limit)
	switch {
	case err != nil:
		return false, fmt.Errorf("read the response body after %d bytes: %w", len(read), err)
	case more:
		rest := restored(read, nil, resp.Body)
		resp.Body = &streamedBody{rest, rest, a.cancel}
		return false, nil
	}
	_ = resp.Body.Close() // read to its end
	a.cancel(nil)
	resp.Body = restored(read, nil, http.NoBody)
	return true, nil
}

// fail ends an attempt without a response.
func (a *attempt) fail(err error) {
	if a.resp != nil && a.resp.Body != nil {
		_ = a.resp.Body.Close()
	}
	a.resp, a.err = nil, err
	a.cancel(nil)
}

const (
	maxDrain     = 64 << 10
	drainTimeout = time.Second
)

// discard reads the rest of a response that is not returned, so that its connection can
// be used again, unless that takes too long.
func (a *attempt) discard() {
	if a.resp == nil {
		return
	}
	timer := time.AfterFunc(drainTimeout, func() { a.cancel(nil) })
	_, _ = io.CopyN(io.Discard, a.resp.Body, maxDrain)
	timer.Stop()
	_ = a.resp.Body.Close()
	a.cancel(nil)
}

// problem describes an attempt that was to be retried.
func (a *attempt) problem() error {
	if a.err != nil {
		return a.err
	}
	return fmt.Errorf("status %d", a.resp.StatusCode)
}

func (a *attempt) end(n int, took time.Duration, code Code, retry bool, wait time.Duration) AttemptEnd {
	e := AttemptEnd{Number: n, Duration: took, Code: code, Err: a.err, Retry: retry}
	if retry {
		e.Wait = wait
	}
	if a.resp != nil {
		e.Status = a.resp.StatusCode
	}
	return e
}

// streamedBody is a response body that is read from the connection. Close ends the
// attempt.
type streamedBody struct {
	io.Reader
	closer io.Closer
	cancel context.CancelCauseFunc
}

func (b *streamedBody) Close() error {
	defer b.cancel(nil)
	return b.closer.Close()
}

// upgradedBody is the body of a response that switched protocols.
type upgradedBody struct {
	io.ReadWriteCloser
	cancel context.CancelCauseFunc
}

func (b *upgradedBody) Close() error {
	defer b.cancel(nil)
	return b.ReadWriteCloser.Close()
}
