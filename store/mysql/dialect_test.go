package reprisemysql

import (
	"errors"
	"fmt"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// serverError is an error as drivers have it.
type serverError struct{ Number uint16 }

func (e *serverError) Error() string { return fmt.Sprintf("Error %d", e.Number) }

func TestErrorsOfTheServerAreClassified(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16]struct{ statement, commit error }{
		1205: {sqlstore.ErrLostRace, sqlstore.ErrLostRace},
		1213: {sqlstore.ErrLostRace, sqlstore.ErrLostRace},
		1062: {sqlstore.ErrLostRace, sqlstore.ErrLostRace},
		1114: {store.ErrFull, store.ErrFull},
		1290: {store.ErrUnavailable, store.ErrUnavailable},
		1836: {store.ErrUnavailable, store.ErrUnavailable},
		1146: {store.ErrMisconfigured, store.ErrMisconfigured},
		1712: {store.ErrCorrupt, store.ErrCorrupt},
		1053: {store.ErrUnavailable, store.ErrUnknown}, // shutdown, as the next one
		1317: {store.ErrUnavailable, store.ErrUnknown}, // interrupted: at any point of a commit
		9999: {store.ErrUnavailable, store.ErrUnknown},
	} {
		err := fmt.Errorf("wrapped: %w", &serverError{number})
		if got := classify(err, false); !errors.Is(got, want.statement) {
			t.Errorf("%d in a statement: %v, want %v", number, got, want.statement)
		}
		if got := classify(err, true); !errors.Is(got, want.commit) {
			t.Errorf("%d in a commit: %v, want %v", number, got, want.commit)
		}
	}
}

func TestVersionsOfEachProduct(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"8.0.36-28": true, "8.4.3": true, "5.7.44-log": false,
		"10.6.12-MariaDB-log": true, "10.5.29-MariaDB": false,
	} {
		product, major, minor := oldest(version)
		if got := probe.AtLeast(version, major, minor); got != want {
			t.Errorf("%s %s is supported: %t, want %t", product, version, got, want)
		}
	}
}
