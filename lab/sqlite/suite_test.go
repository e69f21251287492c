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
		storetest.Run(t, d.suite)
	})
}

// suite is the fixture of the leased store: two handles are two pools over one file.
func (d driver) suite(tb testing.TB) storetest.Fixture {
	return d.suiteOn(d.newFile(tb), func(tb testing.TB, file string) store.Store { return d.leased(tb, file) })
}

func (d driver) suiteOn(file string, open func(testing.TB, string) store.Store) storetest.Fixture {
	return storetest.Fixture{
		Open:    func(tb testing.TB) store.Store { return open(tb, file) },
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

// TestSQLiteTransactionalConformance: handles are of one process. An attempt of another
// one is invisible before its commit, and a claim waits for it: see contention_test.go.
func TestSQLiteTransactionalConformance(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		storetest.Run(t, func(tb testing.TB) storetest.Fixture {
			file := d.newFile(tb)
			st := d.transactional(tb, file)
			f := d.suiteOn(file, func(testing.TB, string) store.Store { return st })
			f.Atomic = true
			return f
		})
	})
}
