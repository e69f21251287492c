package transactional

import (
	"context"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

func TestTxFindsTheAttemptInTheContextOfAFramework(t *testing.T) {
	t.Parallel()
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	begun, err := engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = begun.Attempt.Release() }()
	own := pgtest.FrameworkContext{Context: t.Context(), Values: map[string]any{}}
	if attemptOf(own) != nil {
		t.Error("found an attempt before there was one")
	}
	a := &attempt{id: store.ID{1}, owner: store.NewOwner()}
	own.Values[store.ContextKey] = context.WithValue(begun.Attempt.Context(), txKey{}, a)
	if attemptOf(own) != a {
		t.Error("found no attempt with a transaction")
	}
}
