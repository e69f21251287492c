package reprisepg

import (
	"context"
	"errors"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// frameworkContext finds values by strings only, as that of Gin does.
type frameworkContext struct {
	context.Context //nolint:containedctx // it stands for a framework's

	values map[string]any
}

func (c frameworkContext) Value(key any) any {
	if name, ok := key.(string); ok {
		return c.values[name]
	}
	return nil
}

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

// TestAnAttemptIsFoundInTheContextOfAFramework: a handler may pass that one to Tx and to
// InTx.
func TestAnAttemptIsFoundInTheContextOfAFramework(t *testing.T) {
	t.Parallel()
	own := frameworkContext{t.Context(), map[string]any{}}
	if attemptOf(own) != nil {
		t.Error("found an attempt before there was one")
	}
	a := &attempt{id: store.ID{1}, owner: store.NewOwner()}
	ctx := new(Store).Bind(run(t), a.id, a.owner)
	own.values[store.ContextKey] = context.WithValue(ctx, txKey{}, a)
	if attemptOf(own) != a {
		t.Error("found no attempt with a transaction")
	}
	got, r, err := completionOf(own, []byte("answer"))
	if err != nil || got.owner != a.owner || r.ID != a.id || r.Owner != a.owner || string(r.Payload) != "answer" {
		t.Errorf("found %+v, %+v, %v", got, r, err)
	}
}

// TestInTxNeedsAnAttemptOfItsStore: in that of another store, and in a context that was
// bound without one, there is nothing to complete.
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
