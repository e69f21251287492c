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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// mortal is the store of a process that dies: from then on it has no effect.
type mortal struct {
	store.Store
	dead *atomic.Bool
}

func (m mortal) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if m.dead.Load() {
		return store.ClaimResult{}, store.ErrUnavailable
	}
	return m.Store.Claim(ctx, r)
}

func (m mortal) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	if m.dead.Load() {
		return nil, store.ErrUnavailable
	}
	return m.Store.Renew(ctx, rs)
}

func (m mortal) Complete(ctx context.Context, r store.CompleteRequest) error {
	if m.dead.Load() {
		return store.ErrUnavailable
	}
	return m.Store.Complete(ctx, r)
}

func (m mortal) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	if m.dead.Load() {
		return store.ErrUnavailable
	}
	return m.Store.Release(ctx, id, owner)
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
				records, dead, died := memstore.New(), new(atomic.Bool), make(chan struct{})
				dies, stays := shopOver(t, mortal{records, dead}), shopOver(t, records)
				transport, err := repriseclient.NewTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
					w := httptest.NewRecorder()
					if dead.Load() {
						stays.ServeHTTP(w, r)
						return w.Result(), nil
					}
					go dies.ServeHTTP(w, r)
					<-died
					return nil, errors.New("connection reset by peer")
				}), repriseclient.Config{})
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(lived, func() {
					dead.Store(true)
					close(died)
				})
				placeAll(t, &http.Client{Transport: transport})
			})
		})
	}
}

// shopOver is a guard over a store, whose shop is counter.
func shopOver(t *testing.T, st store.Store) http.Handler {
	t.Helper()
	guard, err := protocol.New(st, protocol.Config{Engine: reprise.Config{Observer: reprise.Observers()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close(context.WithoutCancel(t.Context())) })
	return reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(counter))
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

// placeAll places 200 orders at a time, and fails the test unless each ends with the
// response of the second attempt at it.
func placeAll(t *testing.T, client *http.Client) {
	t.Helper()
	var placing sync.WaitGroup
	for i := range 200 {
		placing.Go(func() {
			op := fmt.Sprintf("order %d", i)
			got, err := post(t, client, "http://shop.test", op)
			if want := op + " at attempt 2"; err != nil || got.status != http.StatusCreated || string(got.body) != want {
				t.Errorf("%d %.60s, %v, want %s", got.status, got.body, err, want)
			}
		})
	}
	placing.Wait()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// end is how a call ended.
type end struct {
	status int
	body   []byte
}

// post makes a call.
func post(t *testing.T, c *http.Client, url, body string) (end, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return end{}, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return end{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return end{resp.StatusCode, got}, err
}
