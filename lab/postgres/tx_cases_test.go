package postgres

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

func TestPostgresEndedByTheHandler(t *testing.T) {
	t.Parallel()
	onBoth(t, 6, 0, func(t *testing.T, h *labtest.SQLHandlers) {
		h.EndsAreFoundOut(t, []string{"COMMIT"}, []string{"ROLLBACK"}, []string{"COMMIT", "BEGIN", labtest.Second}, []string{"ROLLBACK", "BEGIN", labtest.Second},
			[]string{"COMMIT AND CHAIN", labtest.Second}, []string{"ROLLBACK AND CHAIN", labtest.Second})
	})
}

// TestPostgresHabitsDoNoHarm: a handler over database/sql that ends its *sql.Tx, or rolls
// it back when it returns, ends nothing.
func TestPostgresHabitsDoNoHarm(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	pgSetup(t, server).handlers(t, server.URL(), true).HabitsDoNoHarm(t, reprisepg.ErrTxManaged)
}

func TestPostgresTransactionTimesOut(t *testing.T) {
	t.Parallel()
	onBoth(t, 6, time.Second, func(t *testing.T, h *labtest.SQLHandlers) { h.TimesOut(t, "SELECT pg_sleep(60)", "TRUNCATE effects") })
}

// TestPostgresPoolsOfAnySize: fifty handlers at once, over pools in which there is hardly
// room for one, all commit; claims and renewals find a connection meanwhile.
func TestPostgresPoolsOfAnySize(t *testing.T) {
	t.Parallel()
	for _, conns := range []int32{2, 4} {
		onBoth(t, conns, 4*time.Second, func(t *testing.T, h *labtest.SQLHandlers) { h.FiftyAtOnce(t) })
	}
	labtest.Want(t, "a pool of one", pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(1)).Leased(t).Transacts(), store.ErrInvalid)
}
