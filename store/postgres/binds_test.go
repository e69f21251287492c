package reprisepg

import (
	"context"
	"database/sql"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// The leased store binds the attempt for InTx, and no effects: a policy over it promises
// nothing about a transaction.
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
		guard, err := protocol.New(c.store, protocol.Config{Engine: reprise.Config{Observer: reprise.Observers()}})
		if err != nil {
			t.Fatal(err)
		}
		answers := make(map[protocol.Code]bool)
		for _, p := range guard.Problems() {
			answers[p.Code] = true
		}
		if got := guard.Engine().Binds(); got != c.want || answers[protocol.CodeNotApplied] != c.want || answers[protocol.CodeResponseTooLarge] != c.want {
			t.Errorf("%T: binds %v, answers %v, want %v", c.store, got, answers, c.want)
		}
		if err := guard.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
