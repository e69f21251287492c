package edges_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// guarded returns a handler of net/http behind a guard, which closes without waiting for
// records that are never written.
func guarded(t *testing.T, st store.Store, cfg protocol.Config, handler http.Handler) http.Handler {
	t.Helper()
	cfg.Engine.Observer = reprise.Observers()
	guard, err := protocol.New(st, cfg)
	labtest.Must(t, err)
	ended, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cancel()
	t.Cleanup(func() { _ = guard.Close(ended) })
	return reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler)
}

// retrying returns a transport of the client over base, which is a new one if nil.
func retrying(t *testing.T, base http.RoundTripper, c repriseclient.Config) *repriseclient.Transport {
	t.Helper()
	if base == nil {
		connections := new(http.Transport)
		t.Cleanup(connections.CloseIdleConnections)
		base = connections
	}
	transport, err := repriseclient.NewTransport(base, c)
	labtest.Must(t, err)
	return transport
}

// reply is a response, and the body that it had.
type reply struct {
	*http.Response

	body string
}

// post makes a call.
func post(ctx context.Context, transport http.RoundTripper, url, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return reply{resp, string(got)}, err
}

// The client knows the words of a guard about a response: its body was not kept, or it
// was not recorded, or its key was not looked up.
func TestClientUnderstandsTheWordsOfAGuard(t *testing.T) {
	t.Parallel()
	const size = 2000
	for name, test := range map[string]struct {
		fails []faultstore.Op // of the store
		cfg   protocol.Config
		want  []repriseclient.Outcome // of each call with the same key
	}{
		"a body that is not kept": {
			cfg:  protocol.Config{Limits: protocol.Limits{ResponseBody: size - 1}},
			want: []repriseclient.Outcome{repriseclient.Answered, repriseclient.AnsweredOmitted},
		},
		"a body that is kept": {
			cfg:  protocol.Config{Limits: protocol.Limits{ResponseBody: size}},
			want: []repriseclient.Outcome{repriseclient.Answered, repriseclient.AnsweredReplay},
		},
		"a record that is not written": {
			fails: []faultstore.Op{faultstore.Complete},
			want:  []repriseclient.Outcome{repriseclient.AnsweredUnrecorded},
		},
		"a store that is away": {
			fails: []faultstore.Op{faultstore.Claim}, cfg: protocol.Config{FailOpen: true},
			want: []repriseclient.Outcome{repriseclient.AnsweredUnprotected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, faults := faultstore.New(memstore.New())
			for _, op := range test.fails {
				faults.Always(op, faultstore.FailBefore(store.ErrUnavailable))
			}
			test.cfg.Engine = reprise.Config{ClaimTimeout: 100 * time.Millisecond, CompleteTimeout: 100 * time.Millisecond}
			server := httptest.NewServer(guarded(t, st, test.cfg, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/orders/7")
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, strings.Repeat("x", size))
			})))
			t.Cleanup(server.Close)
			for i, want := range test.want {
				seen := new(attempts)
				_, err := post(repriseclient.WithKey(t.Context(), "order-7"), retrying(t, nil, repriseclient.Config{Observer: seen}), server.URL, "order")
				if len(seen.calls) != 1 || seen.calls[0].Outcome != want {
					t.Errorf("call %d ended with %+v (%v), want %s", i+1, seen.calls, err, want)
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

// The crash of the README in virtual time, with the default configuration of both sides:
// a lease lasts 30 s. The process dies soon after a claim, just before a renewal, or
// after several.
func TestEveryCallOutlivesTheDefaultLeaseOfADeadProcess(t *testing.T) {
	t.Parallel()
	for _, lived := range []time.Duration{time.Second, 8500 * time.Millisecond, 45 * time.Second} {
		t.Run(lived.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				records, died := memstore.New(), make(chan struct{})
				mortal, faults := faultstore.New(records)
				dies := guarded(t, mortal, protocol.Config{}, http.HandlerFunc(counter))
				stays := guarded(t, records, protocol.Config{}, http.HandlerFunc(counter))
				transport := retrying(t, roundTripper(func(r *http.Request) (*http.Response, error) {
					select {
					case <-died:
						w := httptest.NewRecorder()
						stays.ServeHTTP(w, r)
						return w.Result(), nil
					default:
					}
					go dies.ServeHTTP(httptest.NewRecorder(), r)
					<-died
					return nil, errors.New("connection reset by peer")
				}), repriseclient.Config{})
				time.AfterFunc(lived, func() {
					for _, op := range []faultstore.Op{faultstore.Claim, faultstore.Renew, faultstore.Complete, faultstore.Release} {
						faults.Always(op, faultstore.FailBefore(store.ErrUnavailable))
					}
					close(died)
				})
				var placing sync.WaitGroup
				for i := range 200 {
					placing.Go(func() {
						op := fmt.Sprintf("order %d", i)
						got, err := post(t.Context(), transport, "http://shop.test", op)
						if want := op + " at attempt 2"; err != nil || got.StatusCode != http.StatusCreated || got.body != want {
							t.Errorf("%.60q, %v, want %s", got.body, err, want)
						}
					})
				}
				placing.Wait()
			})
		})
	}
}

// counter is a shop whose first attempt at an order hangs, and whose second says its
// number.
func counter(w http.ResponseWriter, r *http.Request) {
	op, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	attempt, _ := reprise.AttemptFrom(r.Context())
	if attempt.Number() == 1 {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "%s at attempt %d", op, attempt.Number())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
