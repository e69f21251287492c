package reprisepg

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

func TestHandlerWithoutAnAttemptHasNoTransaction(t *testing.T) {
	t.Parallel()
	if tx, ok := Tx(t.Context()); ok || tx != nil {
		t.Error("Tx returns a transaction")
	}
	if tx, ok := SQLTx(t.Context()); ok || tx != nil {
		t.Error("SQLTx returns a transaction")
	}
	if err := InTx(t.Context(), nil, nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("InTx: %v", err)
	}
	if err := InSQLTx(t.Context(), nil, nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("InSQLTx: %v", err)
	}
}
