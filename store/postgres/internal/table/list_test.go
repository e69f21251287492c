package table

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// TestCursorNamesItsTable: a listing goes on where it stopped, and refuses the cursor of
// another table and a damaged one.
func TestCursorNamesItsTable(t *testing.T) {
	t.Parallel()
	own := newTestTable(t, new(sql.DB), slog.Default())
	other := newTestTable(t, new(sql.DB), slog.Default())
	other.Names.Lock = "public.other"
	id := bytes.Repeat([]byte{7}, 32)
	if got, err := own.parseCursor(own.cursor(id)); err != nil || !bytes.Equal(got, id) {
		t.Errorf("its own cursor: %x, %v", got, err)
	}
	if got, err := own.parseCursor(""); err != nil || got == nil || len(got) != 0 {
		t.Errorf("the front: %x, %v", got, err)
	}
	for _, text := range []string{other.cursor(id), own.cursor(nil), own.cursor(id) + "x", "postgres"} {
		if _, err := own.parseCursor(text); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
