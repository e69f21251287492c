package sqlite

import (
	"context"
	"database/sql"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// child runs the orders of a process that a test started.
func child(ctx context.Context, o *labtest.Orders) error {
	db, err := sql.Open(o.Driver, o.URL)
	if err != nil {
		return err
	}
	defer db.Close()
	st, err := reprisesqlite.New(db, reprisesqlite.Config{})
	if err != nil {
		return err
	}
	return o.Run(ctx, &labtest.SQLHandlers{DB: db, Store: st, Tx: reprisesqlite.Tx})
}

// TestKilledProcessesLeaveEachEffectOnce: processes that share a file die by SIGKILL at
// every point, and their operations are run again. The effect of an operation that is
// transactional is there once.
func TestKilledProcessesLeaveEachEffectOnce(t *testing.T) {
	t.Parallel()
	kills := 200
	if testing.Short() {
		kills = 16
	}
	onDrivers(t, func(t *testing.T, d driver) {
		for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				file := d.withEffects(t)
				h := labtest.SQLHandlers{DB: d.open(t, file)}
				h.Kills(t, labtest.Orders{Driver: d.name, URL: "file:" + file + d.settings, Transactional: transactional}, kills, nil)
			})
		}
	})
}
