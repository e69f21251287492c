package sqlite

import (
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

func TestSQLiteConformance(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		storetest.Run(t, d.suite)
	})
}

// suite is the fixture of the store: two handles are two pools over one file.
func (d driver) suite(tb testing.TB) storetest.Fixture {
	tb.Helper()
	file := d.newFile(tb)
	return storetest.Fixture{
		Open:    func(tb testing.TB) store.Store { tb.Helper(); return d.store(tb, file) },
		Advance: conformance.Sleep,
		Corrupt: func(tb testing.TB, id store.ID, how storetest.Corruption) {
			tb.Helper()
			d.exec(tb, file, "UPDATE reprise_records SET revision = revision + 1, "+labtest.Damage[how]+" WHERE id = ?", id[:])
		},
		Effects: labtest.SQLEffects(tb, d.open(tb, file), reprisesqlite.Tx),
	}
}
