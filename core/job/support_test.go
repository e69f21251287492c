package job_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// The defaults of an engine, and the bound of those tests that exceed it.
const (
	lease     = 30 * time.Second
	retention = 24 * time.Hour
	maxRun    = time.Minute
)

// bench is one process: an engine over a store that a test can interfere with.
type bench struct {
	*reprise.Engine
	store *hooked
}

// setup makes a process over a new memory store, without abilities. It is closed at the
// end of the test.
func setup(t *testing.T, cfg reprise.Config) *bench {
	t.Helper()
	st := &hooked{Store: memstore.New()}
	return &bench{newEngine(t, st, cfg), st}
}

// setupTransacting is setup over a store whose handlers are in a transaction.
func setupTransacting(t *testing.T) (*bench, *teststore.Transacting) {
	t.Helper()
	inner := &hooked{Store: memstore.New()}
	st := &teststore.Transacting{Store: inner}
	return &bench{newEngine(t, st, reprise.Config{}), inner}, st
}

// newEngine makes an engine that is closed at the end of the test, and fails it if an
// attempt did not end by then.
func newEngine(t *testing.T, st store.Store, cfg reprise.Config) *reprise.Engine {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	e := must(reprise.New(st, cfg))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Hour)
		defer cancel()
		if err := e.Close(ctx); err != nil && !t.Failed() {
			t.Errorf("at the end of the test: %v", err)
		}
		if s := e.Stats(); s.Running != 0 {
			t.Errorf("attempts that began are %d more than those that ended: %v, %v", s.Running, s.Outcomes, s.Ends)
		}
	})
	return e
}

func order(key string) reprise.Operation {
	return reprise.Operation{Scope: "tenant", Key: key, Fingerprint: store.Fingerprint{1}}
}

// away makes claims fail with err.
func (b *bench) away(err error) {
	b.store.OnClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
		return store.ClaimResult{}, err
	}
}

// wantUnknown fails the test unless the record of op says for this reason that its
// outcome is unknown.
func (b *bench) wantUnknown(t *testing.T, op reprise.Operation, reason string) {
	t.Helper()
	inspector, _ := store.As[store.Inspector](b.store.Store)
	r := must(inspector.Inspect(t.Context(), store.DeriveID(op.Scope, op.Endpoint, op.Key)))
	if r.State != store.StateUnknown || r.Reason != reason || !r.AtMostOnce {
		t.Fatalf("the record is %+v, want unknown: %s", r, reason)
	}
}

type hooked = teststore.Hooked

var inTime, wantError = teststore.InTimeNamed, teststore.WantError

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
