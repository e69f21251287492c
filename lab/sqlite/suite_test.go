package sqlite

import (
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
)

func TestSQLiteConformance(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		storetest.Run(t, func(tb testing.TB) storetest.Fixture { return d.suite(tb) })
	})
}

// suite is the fixture of the leased store: two handles are two pools over one file.
func (d driver) suite(tb testing.TB) storetest.Fixture {
	file := d.newFile(tb)
	return storetest.Fixture{
		Open:    func(tb testing.TB) store.Store { return d.leased(tb, file) },
		Advance: conformance.Sleep,
		Corrupt: func(tb testing.TB, id store.ID, how storetest.Corruption) { d.corrupt(tb, file, id, how) },
	}
}

// corrupt damages a row.
func (d driver) corrupt(tb testing.TB, file string, id store.ID, how storetest.Corruption) {
	tb.Helper()
	change := map[storetest.Corruption]string{
		storetest.UnknownVersion: "version = 2",
		storetest.UnknownState:   "state = 7, payload = NULL",
		storetest.Truncated:      "fingerprint = substr(fingerprint, 1, 31)",
		storetest.WrongType:      "lease_until = 'soon'",
	}[how]
	d.exec(tb, file, "UPDATE reprise_records SET revision = revision + 1, "+change+" WHERE id = ?", id[:])
}
