package protocol_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// raceEnabled tells the tests that count allocations that they cannot: the race detector
// drops pooled buffers at random.
var raceEnabled bool

// bench is a guard over a memory store, and a way to send it requests without a network:
// the conformance suite covers the network.
type bench struct {
	t     *testing.T
	guard *protocol.Guard
}

func setup(t *testing.T, cfg protocol.Config) *bench {
	t.Helper()
	return setupOver(t, memstore.New(), cfg)
}

// setupOver is setup over a store. The guard and its engine end with the test.
func setupOver(t *testing.T, st store.Store, cfg protocol.Config) *bench {
	t.Helper()
	cfg.Transactional = transacts(st)
	guard := must(protocol.New(st, cfg))
	t.Cleanup(func() { _ = guard.Close(context.WithoutCancel(t.Context())) })
	return &bench{t, guard}
}

func scope() (string, error) { return "tenant", nil }

func (b *bench) admit(key, body string) protocol.Admission {
	return b.admitIn(b.t.Context(), key, strings.NewReader(body))
}

func (b *bench) admitIn(ctx context.Context, key string, body io.Reader) protocol.Admission {
	return b.guard.Admit(ctx, protocol.Request{
		Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {key}}, Body: body,
	}, scope)
}

// run sends a request to a handler and returns the client's response.
func (b *bench) run(key string, handler func(*protocol.Recorder, http.Header, *protocol.Exchange)) *httptest.ResponseRecorder {
	b.t.Helper()
	w := httptest.NewRecorder()
	serve(w, b.admit(key, "body"), handler)
	return w
}

// serve answers an admitted request by w, whose header is that of the outer layers.
func serve(w *httptest.ResponseRecorder, a protocol.Admission, handler func(*protocol.Recorder, http.Header, *protocol.Exchange)) {
	if a.Exchange == nil {
		a.Response.Write(w.Header(), w)
		return
	}
	rec := new(protocol.Recorder)
	rec.Start(a.Exchange, w.Header(), w, http.DetectContentType)
	defer rec.Close()
	handler(rec, w.Header(), a.Exchange)
	rec.Finish()
}

func (b *bench) replay(key string) *httptest.ResponseRecorder {
	b.t.Helper()
	w := b.run(key, func(*protocol.Recorder, http.Header, *protocol.Exchange) { b.t.Error("the handler ran again") })
	if w.Header().Get("Idempotent-Replayed") != "true" {
		b.t.Errorf("status %d is not marked as a replay", w.Code)
	}
	return w
}

type hooked = teststore.Hooked

// unclaimed is a store that answers every claim with err.
func unclaimed(err error) store.Store {
	return &hooked{Store: memstore.New(), OnClaim: func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
		return store.ClaimResult{}, err
	}}
}

type transacting = teststore.Transacting

// atomically is a store with a transaction for every handler.
func atomically(st store.Store) *transacting { return &transacting{Store: st} }

// transacts reports whether a test's store has transactions, so that the guard uses them.
func transacts(st store.Store) bool {
	_, ok := st.(store.Transactor)
	return ok
}

// finish ends an exchange with a response that has no body.
func finish(x *protocol.Exchange, status int) {
	x.Finish(protocol.Captured{Status: status})
	x.Close()
}

// wantRun demands that the handler of a request runs.
func wantRun(t *testing.T, a protocol.Admission) {
	t.Helper()
	if a.Exchange == nil {
		t.Fatalf("answered %d %s, want a run", a.Response.Status, a.Response.Body)
	}
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
