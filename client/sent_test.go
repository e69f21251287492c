package repriseclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
)

// A response shows that a request was sent, whatever the base transport traced.
func TestNotSentIsFalseOnceThereWasAResponse(t *testing.T) {
	t.Parallel()
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GetConn(r.URL.Host) // and no GotConn
		return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(iotest.ErrReader(errNetwork)), ContentLength: 4}, nil
	})
	req := post(t.Context(), t, strings.NewReader("12 EUR"))
	resp, err := newTransport(t, base, Config{MaxAttempts: 1}).RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatalf("answered with %d", resp.StatusCode)
	}
	if NotSent(err) {
		t.Errorf("NotSent is true for %v", err)
	}
}

func TestNotSentIsFalseForErrorsOfOthers(t *testing.T) {
	t.Parallel()
	not := &NotSentError{Err: errNetwork}
	for _, err := range []error{
		nil, errNetwork, &net.OpError{Op: "dial", Err: errNetwork}, context.Canceled, &UnknownOutcomeError{Err: not},
		errors.Join(not, &UnknownOutcomeError{Err: errNetwork}),
	} {
		if NotSent(err) {
			t.Errorf("NotSent is true for %v", err)
		}
	}
	if !NotSent(fmt.Errorf("pay: %w", &url.Error{Op: "Post", Err: not})) {
		t.Error("NotSent is false for a wrapped NotSentError")
	}
}
