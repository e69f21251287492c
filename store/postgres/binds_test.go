package reprisepg

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// The leased store binds the attempt for InTx, and no effects: a policy over it promises
// nothing about a transaction, and its problems name none.
func TestOnlyTheTransactionalStoreBindsEffects(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(&pgtest.Refusing{})
	db.SetMaxOpenConns(3)
	defer db.Close()
	leased, err := NewSQL(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	transactional, err := NewTransactionalSQL(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		store store.Store
		want  bool
	}{{leased, false}, {transactional, true}} {
		engine, err := reprise.New(c.store, reprise.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if got := engine.Binds(); got != c.want {
			t.Errorf("%T: binds %v, want %v", c.store, got, c.want)
		}
		if err := engine.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
