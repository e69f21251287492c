package reprisepg

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

func TestHandlerWithoutAnAttemptHasNoTransaction(t *testing.T) {
	t.Parallel()
	if tx, err := Tx(t.Context()); tx != nil || !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Tx returns %v, %v", tx, err)
	}
	if tx, err := SQLTx(t.Context()); tx != nil || !errors.Is(err, store.ErrInvalid) {
		t.Errorf("SQLTx returns %v, %v", tx, err)
	}
}
