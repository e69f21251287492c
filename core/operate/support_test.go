package operate_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

const lease = 30 * time.Second // of an engine by default

var inTime, inTimeNamed = teststore.InTime, teststore.InTimeNamed

// bench is one process: an engine over a memory store, which it may share with others.
type bench struct {
	*reprise.Engine
	records *memstore.Store
}

func setup(t *testing.T, cfg reprise.Config) *bench {
	t.Helper()
	records := memstore.New()
	return &bench{newEngine(t, records, cfg), records}
}

// newEngine makes an engine that is closed at the end of the test.
func newEngine(t *testing.T, st store.Store, cfg reprise.Config) *reprise.Engine {
	t.Helper()
	e := must(reprise.New(st, cfg))
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	return e
}

// want begins an operation and fails the test unless it has the outcome.
func (b *bench) want(t *testing.T, op reprise.Operation, outcome reprise.Outcome) reprise.Result {
	t.Helper()
	res := must(b.Begin(t.Context(), op))
	if res.Outcome != outcome {
		t.Fatalf("Begin answered %v, want %v", res.Outcome, outcome)
	}
	return res
}

// unrenewing is a store that renews no lease, and shows no record.
type unrenewing struct{ store.Store }

func (unrenewing) Renew(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
	return nil, store.ErrUnavailable
}

func order(key string) reprise.Operation {
	return reprise.Operation{Scope: "tenant", Key: key, Fingerprint: store.Fingerprint{1}}
}

func idOf(op reprise.Operation) store.ID { return store.DeriveID(op.Scope, op.Endpoint, op.Key) }

func scope() (string, error) { return "tenant", nil }

func secret(tb testing.TB, id string) protocol.Secret {
	tb.Helper()
	return must(protocol.NewSecret(id, bytes.Repeat([]byte(id), 32)))
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
