package sqlstore

import (
	"path/filepath"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
)

var (
	_ store.Purger     = (*Store)(nil)
	_ store.Maintainer = (*Store)(nil)
)

// damage has the statements for what the constraints of the table let happen.
var damage = map[storetest.Corruption]string{
	storetest.UnknownVersion: `UPDATE record SET version = 2 WHERE id = ?`,
	storetest.UnknownState:   `UPDATE record SET state = 'new' WHERE id = ?`,
	storetest.Truncated:      `UPDATE record SET owner = substr(owner, 2) WHERE id = ?`,
}

func TestStorePassesTheSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(tb testing.TB) storetest.Fixture {
		file := filepath.Join(tb.TempDir(), "records.db")
		open := func(tb testing.TB) *Store {
			st, err := Open(tb.Context(), file)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = st.Close() })
			return st
		}
		return storetest.Fixture{
			Open:    func(tb testing.TB) store.Store { return open(tb) },
			Advance: conformance.Sleep,
			Corrupt: func(tb testing.TB, id store.ID, how storetest.Corruption) {
				statement, possible := damage[how]
				if !possible {
					tb.Skip("the columns of a STRICT table have no values of other types")
				}
				if _, err := open(tb).db.ExecContext(tb.Context(), statement, id[:]); err != nil {
					tb.Fatal(err)
				}
			},
		}
	})
}
