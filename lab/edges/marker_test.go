package edges_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// The client follows a policy with a custom marker: the replay of a 503 is final, and the
// field that the handler sets itself marks no response.
func TestClientFollowsTheNameOfTheMarker(t *testing.T) {
	t.Parallel()
	const name = "X-Order-Repeated"
	guard, err := protocol.New(memstore.New(), protocol.Config{Announce: protocol.Announcing{ReplayedHeader: name}})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close(context.WithoutCancel(t.Context()))
	runs := 0
	server := httptest.NewServer(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		w.Header().Set(name, "true")
		w.Header().Set("Idempotent-Replayed", "true")
		protocol.Keep(r.Context())
		w.WriteHeader(http.StatusServiceUnavailable)
	})))
	defer server.Close()
	transport, err := repriseclient.NewTransport(server.Client().Transport, repriseclient.Config{
		Service: repriseclient.Service{Replayed: name}, Delay: 1, MaxDelay: 1, MaxAttempts: 5, Budget: repriseclient.Budget{Off: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if attempts := repriseclient.Attempts(resp); runs != 1 || attempts != 2 || !repriseclient.Replayed(resp) || resp.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d runs, %d attempts, the header is %v", runs, attempts, resp.Header)
	}
}

// The client knows the words of a guard about a response: its body was not kept, or it
// was not recorded, or its key was not looked up.
func TestClientUnderstandsTheWordsOfAGuard(t *testing.T) {
	t.Parallel()
	const size = 2000
	for name, test := range map[string]struct {
		store store.Store
		cfg   protocol.Config
		want  []repriseclient.Outcome // of each call with the same key
	}{
		"a body that is not kept": {
			store: memstore.New(), cfg: protocol.Config{Limits: protocol.Limits{ResponseBody: size - 1}},
			want: []repriseclient.Outcome{repriseclient.Answered, repriseclient.AnsweredOmitted},
		},
		"a body that is kept": {
			store: memstore.New(), cfg: protocol.Config{Limits: protocol.Limits{ResponseBody: size}},
			want: []repriseclient.Outcome{repriseclient.Answered, repriseclient.AnsweredReplay},
		},
		"a record that is not written": {
			store: incomplete{memstore.New()},
			want:  []repriseclient.Outcome{repriseclient.AnsweredUnrecorded},
		},
		"a store that is away": {
			store: away{memstore.New()}, cfg: protocol.Config{FailOpen: true},
			want: []repriseclient.Outcome{repriseclient.AnsweredUnprotected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.cfg.Engine = reprise.Config{Observer: reprise.Observers(), ClaimTimeout: 100 * time.Millisecond, CompleteTimeout: 100 * time.Millisecond}
			guard, err := protocol.New(test.store, test.cfg)
			if err != nil {
				t.Fatal(err)
			}
			ended, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			cancel()
			t.Cleanup(func() { _ = guard.Close(ended) }) // the record is never written
			server := httptest.NewServer(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/orders/7")
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, strings.Repeat("x", size))
			})))
			defer server.Close()
			for i, want := range test.want {
				var seen outcomes
				transport, err := repriseclient.NewTransport(server.Client().Transport, repriseclient.Config{Observer: &seen})
				if err != nil {
					t.Fatal(err)
				}
				req, err := http.NewRequestWithContext(repriseclient.WithKey(t.Context(), "order-7"), http.MethodPost, server.URL, strings.NewReader("order"))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := (&http.Client{Transport: transport}).Do(req)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				if seen.last != want {
					t.Errorf("call %d ended %s (%v), want %s", i+1, seen.last, err, want)
				}
				var omitted *repriseclient.BodyOmittedError
				if errors.As(err, &omitted) != (want == repriseclient.AnsweredOmitted) {
					t.Errorf("call %d: %v", i+1, err)
				} else if omitted != nil && (omitted.Status != http.StatusCreated || omitted.Header.Get("Location") != "/orders/7") {
					t.Errorf("the error has the status %d and the fields %v", omitted.Status, omitted.Header)
				}
			}
		})
	}
}

// incomplete is a store that writes no record.
type incomplete struct{ store.Store }

func (incomplete) Complete(context.Context, store.CompleteRequest) error { return store.ErrUnavailable }

// away is a store whose server cannot be reached.
type away struct{ store.Store }

func (away) Claim(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
	return store.ClaimResult{}, store.ErrUnavailable
}

// outcomes keeps the outcome of the last call.
type outcomes struct{ last repriseclient.Outcome }

func (*outcomes) StartCall(ctx context.Context, _ repriseclient.CallStart) context.Context {
	return ctx
}
func (*outcomes) EndAttempt(context.Context, repriseclient.AttemptEnd) {}
func (o *outcomes) EndCall(_ context.Context, e repriseclient.CallEnd) { o.last = e.Outcome }
