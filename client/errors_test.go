package repriseclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/client/internal/secret"
)

// keyOfError returns the key of any error of a call.
func keyOfError(t *testing.T, err error) string {
	t.Helper()
	var with interface{ Key() string }
	if !errors.As(err, &with) {
		t.Fatalf("%T has no key", err)
	}
	return with.Key()
}

// omitted is the replay of a response whose body was not kept.
func omitted() (*http.Response, error) {
	return response(201, `{"status":"completed"}`, "Idempotent-Replayed", "true", "Idempotency-Body", "omitted", "Location", "/orders/7"), nil
}

// omittedEcho is that of a service whose responses have the key, as those of Stripe do.
func omittedEcho(_ int, req *http.Request) (*http.Response, error) {
	resp, err := omitted()
	resp.Header.Set("Idempotency-Key", req.Header.Get("Idempotency-Key"))
	return resp, err
}

// An error has the key with which its call can go on, also a generated one, and does not
// print it.
func TestErrorsHaveTheKeyAndDoNotPrintIt(t *testing.T) {
	t.Parallel()
	redirects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Location", "/orders/7")
		w.WriteHeader(http.StatusSeeOther)
	}))
	redirects.Config.ErrorLog = quiet
	t.Cleanup(redirects.Close)
	for name, test := range map[string]struct {
		base http.RoundTripper
		url  string
		want string
	}{
		"unknown outcome": {base: always(failure(errNetwork)), want: "*repriseclient.UnknownOutcomeError"},
		"not sent":        {base: always(failure(errors.New("unsupported protocol scheme"))), want: "*repriseclient.NotSentError"},
		"redirect":        {base: redirects.Client().Transport, url: redirects.URL, want: "*repriseclient.RedirectError"},
		"omitted, echoed": {base: &fake{answer: omittedEcho}, want: "*repriseclient.BodyOmittedError"},
		"omitted":         {base: always(omitted), want: "*repriseclient.BodyOmittedError"},
	} {
		for _, own := range []string{"", "order-of-the-caller"} {
			t.Run(name+", key "+own, func(t *testing.T) {
				t.Parallel()
				var key string
				transport := newTransport(t, test.base, Config{MaxAttempts: 1, NewKey: func() string { key = NewKey(); return key }})
				req := post(t.Context(), t, nil)
				if own != "" {
					key, req = own, req.WithContext(WithKey(t.Context(), own))
				}
				if test.url != "" {
					req.URL.Host, req.Host = strings.TrimPrefix(test.url, "http://"), ""
				}
				resp, err := (&http.Client{Transport: transport}).Do(req)
				if err == nil {
					_ = resp.Body.Close()
					t.Fatalf("answered with %d", resp.StatusCode)
				}
				if got := fmt.Sprintf("%T", errors.Unwrap(err)); got != test.want {
					t.Fatalf("%s, want %s", got, test.want)
				}
				if got := keyOfError(t, err); got != key {
					t.Errorf("the key is %q, want %q", got, key)
				}
				for how, text := range printed(t, errors.Unwrap(err)) {
					if strings.Contains(text, key) || strings.Contains(text, fmt.Sprintf("%x", key)) {
						t.Errorf("%s shows the key: %s", how, text)
					}
				}
				if !strings.Contains(err.Error(), secret.Hash("", "", key)) {
					t.Errorf("%v has no hash of the key", err)
				}
			})
		}
	}
}

// A client that knows its scope prints the digits with which an operator finds the record
// (reprise show): those of docs/reference/vectors.json.
func TestErrorsNameTheRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ scope, endpoint, key, want string }{
		{"acme", "", "7c1f", "8101b459acd8"},
		{"acme", "orders", "8e03978e-40d5-43dd-bc93-6894a57f9324", "08e1190bf040"},
		{SharedScope, "", "7c1f", "8b4164bedcb5"},
	} {
		var seen recorded
		transport := newTransport(t, always(failure(errNetwork)), Config{MaxAttempts: 1, Service: Service{Scope: c.scope, Endpoint: c.endpoint}, Observer: &seen})
		var unknown *UnknownOutcomeError
		err := fails(t, transport, post(WithKey(t.Context(), c.key), t, nil))
		if !errors.As(err, &unknown) || unknown.KeyHash != c.want || seen.starts[0].KeyHash != c.want || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// printed returns an error, and the struct of which it is, in every form that logs have.
func printed(t *testing.T, err error) map[string]string {
	t.Helper()
	value := func() any { // also where it is copied from its pointer
		switch e := err.(type) { //nolint:errorlint // the error itself is printed
		case *UnknownOutcomeError:
			return *e
		case *NotSentError:
			return *e
		case *RedirectError:
			return *e
		case *BodyOmittedError:
			return *e
		}
		t.Fatalf("%T is not printed", err)
		return nil
	}()
	forms := make(map[string]string)
	for _, v := range []any{err, value, struct{ Err any }{err}, []any{value}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			forms[fmt.Sprintf("%s of %T", verb, v)] = fmt.Sprintf(verb, v)
		}
		document, err := json.Marshal(v)
		if err != nil {
			document = []byte(err.Error())
		}
		forms[fmt.Sprintf("json of %T", v)] = string(document)
		var log bytes.Buffer
		for _, h := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
			slog.New(h).InfoContext(t.Context(), "failed", slog.Any("err", v))
		}
		forms[fmt.Sprintf("slog of %T", v)] = log.String()
	}
	return forms
}

// The stand-in for a body that was not kept is no response, unless the caller asks for
// it.
func TestTheStandInOfAnOmittedBodyIsAnError(t *testing.T) {
	t.Parallel()
	var seen recorded
	err := fails(t, newTransport(t, always(omitted), Config{Observer: &seen}), post(WithKey(t.Context(), "order-7"), t, nil))
	var gone *BodyOmittedError
	if !errors.As(err, &gone) || gone.Status != 201 || gone.Header.Get("Location") != "/orders/7" || gone.Attempts != 1 || gone.KeyHash != secret.Hash("", "", "order-7") {
		t.Errorf("got %+v", err)
	}
	if NotSent(err) {
		t.Error("NotSent is true for an operation that ran")
	}
	if end := seen.ends[0]; end.Outcome != AnsweredOmitted || end.Err == nil {
		t.Errorf("the observer saw %+v", end)
	}

	resp, body := do(t, newTransport(t, always(omitted), Config{AcceptOmitted: true}), post(t.Context(), t, nil))
	if resp.StatusCode != http.StatusCreated || body != `{"status":"completed"}` || OutcomeOf(resp) != AnsweredOmitted || !Replayed(resp) || GaveUp(resp) {
		t.Errorf("got %d, %q and the outcome %s", resp.StatusCode, body, OutcomeOf(resp))
	}
}

// A stand-in is as final as any replay, whatever its status, and its connection is used
// again.
func TestAnOmittedBodyIsFinal(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	addresses := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		addresses <- r.RemoteAddr
		w.Header().Set("Idempotent-Replayed", "true")
		w.Header().Set("Idempotency-Body", "omitted")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":"completed"}`)
	}))
	defer server.Close()
	transport := newTransport(t, server.Client().Transport, Config{MaxResponseBuffer: -1})
	for range 2 {
		req := post(t.Context(), t, nil)
		req.URL.Host, req.Host = server.Listener.Addr().String(), ""
		var gone *BodyOmittedError
		if err := fails(t, transport, req); !errors.As(err, &gone) || gone.Status != http.StatusServiceUnavailable {
			t.Errorf("got %v", err)
		}
	}
	if n, one, two := requests.Load(), <-addresses, <-addresses; n != 2 || one != two {
		t.Errorf("%d requests, over %s and %s", n, one, two)
	}
}
