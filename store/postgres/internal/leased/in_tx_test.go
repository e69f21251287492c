package leased

import (
	"context"
	"errors"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// run returns the context of an attempt of an engine over another store.
func run(t *testing.T) context.Context {
	t.Helper()
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	begun, err := engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: "key"})
	if err != nil || begun.Outcome != reprise.Claimed {
		t.Fatal(begun.Outcome, err)
	}
	t.Cleanup(func() {
		if err := begun.Attempt.Release(); err != nil {
			t.Error(err)
		}
	})
	return begun.Attempt.Context()
}

// TestInTxNeedsAnAttemptOfItsStore: in that of another store, and in a context that was
// bound without one, there is no attempt to complete.
func TestInTxNeedsAnAttemptOfItsStore(t *testing.T) {
	t.Parallel()
	for name, ctx := range map[string]context.Context{
		"of another store": run(t), "without an attempt": new(Store).Bind(t.Context(), store.ID{1}, store.NewOwner()),
	} {
		if err := InTx(ctx, nil, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("InTx %s: %v", name, err)
		}
		if err := InSQLTx(ctx, nil, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("InSQLTx %s: %v", name, err)
		}
	}
}

func TestInTxFindsTheAttemptInTheContextOfAFramework(t *testing.T) {
	t.Parallel()
	id, owner := store.ID{1}, store.NewOwner()
	own := pgtest.FrameworkContext{Context: t.Context(), Values: map[string]any{
		store.ContextKey: new(Store).Bind(run(t), id, owner),
	}}
	got, r, err := completionOf(own, []byte("answer"))
	if err != nil || got.owner != owner || r.ID != id || r.Owner != owner || string(r.Payload) != "answer" {
		t.Errorf("found %+v, %+v, %v", got, r, err)
	}
}
